"""However captures are cut into splits, the tables are those of somebody who reads them whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from calls import Call

from kwire.pipeline import plan as planning
from kwire.pipeline.reading import survey
from kwire.pipeline.splits import plan
from kwire.session.reader import Settings
from kwire.tables.columns import DEFAULT

CAPTURES = sorted(path.name for path in (Path(__file__).parents[2] / "fixtures" / "captures").glob("*.pcap*"))
FAST = ("messages", "exchanges", "connections", "quality")


@pytest.mark.parametrize("name", CAPTURES)
@pytest.mark.parametrize("size", [700, 9000, 1 << 30])
def test_tables_are_the_same_for_splits_of_any_size(
    unpacked: Callable[[str], Path], expected: Call, cut: Call, name: str, size: int
) -> None:
    path = unpacked(name)
    assert cut([path], FAST, size)[0] == expected([path], FAST)


@pytest.mark.parametrize("name", CAPTURES)
@pytest.mark.parametrize(("window", "times"), [(2000, 1), (12000, 2)])
def test_all_tables_are_the_same_where_splits_are_as_large_as_what_is_read_at_once(
    unpacked: Callable[[str], Path],
    expected: Call,
    cut: Call,
    name: str,
    window: int,
    times: int,
) -> None:
    path = unpacked(name)
    assert cut([path], DEFAULT, window * times, window)[0] == expected([path], DEFAULT, window)


@pytest.mark.parametrize("name", ["classic.pcap.gz", "kafkajs.pcap", "sasl.pcap.gz", "txn.pcap.gz"])
def test_a_split_that_is_read_a_second_time_gives_the_same(
    unpacked: Callable[[str], Path], expected: Call, cut: Call, name: str
) -> None:
    path = unpacked(name)
    assert cut([path], DEFAULT, 4000, 4000, again=True)[0] == expected([path], DEFAULT, 4000)


@pytest.mark.parametrize("at", [1, 40, 77, 123, 200])
def test_a_capture_in_two_files_is_read_as_one(
    tmp_path: Path, packets_of: Call, save: Call, expected: Call, cut: Call,
    unpacked: Callable[[str], Path], at: int,
) -> None:  # fmt: skip
    packets = packets_of(unpacked("pyclients.pcap"))
    paths = [save(tmp_path / "a.pcap", packets[:at]), save(tmp_path / "b.pcap", packets[at:])]
    assert cut(paths, DEFAULT, 3000, 3000)[0] == expected(paths, DEFAULT, 3000)


def test_most_exchanges_of_a_long_connection_are_read_by_the_splits(unpacked: Callable[[str], Path], cut: Call) -> None:
    rows, planned = cut([unpacked("old39.pcap.gz")], FAST, 12000, 12000)
    assert planned.again == 0
    assert sum(batch.num_rows for name, batch in planned.rows if name == "messages") < len(rows["messages"]) / 4


def test_a_file_that_is_no_capture_fails_alone(
    tmp_path: Path, unpacked: Callable[[str], Path], expected: Call, cut: Call
) -> None:
    good, bad = unpacked("kafkajs.pcap"), tmp_path / "bad.pcap"
    bad.write_bytes(b"GET / HTTP/1.1\r\n\r\n" * 9)
    rows, planned = cut([good, bad], FAST, 5000)
    assert rows["messages"] == expected([good], FAST)["messages"]
    assert list(planned.failed) == [str(bad)]
    assert len(rows["quality"]) == 1
    assert "'capture': 'bad.pcap'" in rows["quality"][0]
    assert "neither pcap nor pcapng" in rows["quality"][0]


def test_a_damaged_file_is_read_as_a_whole_and_says_what_whoever_reads_it_says(
    tmp_path: Path, unpacked: Callable[[str], Path], expected: Call, cut: Call
) -> None:
    data = bytearray(unpacked("classic.pcap.gz").read_bytes())
    data[len(data) // 2 : len(data) // 2 + 300] = b"\xff" * 300
    path = tmp_path / "damaged.pcap"
    path.write_bytes(data[:-5])
    rows = cut([path], FAST, 6000)[0]
    assert rows == expected([path], FAST)
    assert any("'damaged'" in row for row in rows["quality"])


def test_a_split_that_began_in_a_wrong_place_is_made_anew(unpacked: Callable[[str], Path]) -> None:
    settings, want = Settings(), planning.wanted(FAST)
    splits = plan([unpacked("classic.pcap.gz")], 9000)
    made = [survey(split, settings, want) for split in splits]
    right = [found.begin for found in made]
    made[2].begin += 16
    checked = planning.checked(made, settings, want)
    assert [found.begin for found in checked] == right
    assert checked[2] is not made[2]
