"""What several points captured: each read by itself, which connections are the same, and what is left of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from calls import Call
from tablerows import untimed

from kwire.errors import SameNames
from kwire.pipeline.duplicates import Copy, Origin, copies, named_apart, shifts_of
from kwire.pipeline.formats import table_of
from kwire.pipeline.job import Job
from kwire.pipeline.run import run
from kwire.tables.build import tables_of
from kwire.tables.columns import COLUMNS

KEY = (0, 1, 50000, 0, 2, 9092)
Pair = tuple[int | None, int | None]
SECOND = 10**9
LATER = 3 * 10**6  # ns that the second point's clock is ahead
OWN = {
    "capture",
    "connection",
    "position",
    "index",
    "packet",
    "last_packet",
    "request_packet",
    "response_packet",
    "request_index",
    "response_index",
}  # what each point says by itself


def origin(
    capture: str = "a", syns: Pair = (99, 499), zeros: Pair = (100, 500),
    lengths: tuple[int, int] = (1000, 2000), times: tuple[int, int] = (0, 9 * SECOND), key: Any = KEY,
) -> Origin:  # fmt: skip
    return Origin(capture, f"{capture}-1", key, syns, zeros, lengths, times)


NONE = (None, None)


@pytest.mark.parametrize(
    ("other", "shifts"),
    [
        (origin("b"), (0, 0)),
        (origin("b", times=(200 * SECOND, 209 * SECOND)), (0, 0)),
        (origin("b", times=(310 * SECOND, 320 * SECOND)), None),
        (origin("b", syns=(98, 499)), None),
        (origin("b", key=(0, 1, 50001, 0, 2, 9092)), None),
        (origin("b", syns=(None, 499), zeros=(350, 500)), (250, 0)),
        (origin("b", syns=NONE, zeros=(350, 2300), lengths=(9000, 9000)), (250, 1800)),
        (origin("b", syns=NONE, zeros=(350, 2500)), None),
        (origin("b", syns=NONE, zeros=(350, None), lengths=(9, 0)), (250, 0)),
        (origin("b", syns=NONE, zeros=NONE, lengths=(0, 0)), None),
        (origin("b", syns=NONE, lengths=(1 << 31, 10)), None),
        (origin("b", syns=NONE, zeros=((1 << 32) - 100, 400)), (-200, -100)),
    ],
)
def test_connections_are_the_same_by_syns_or_by_what_overlaps(other: Origin, shifts: tuple[int, int] | None) -> None:
    assert shifts_of(origin(), other) == shifts
    back = shifts_of(other, origin())
    assert back == (None if shifts is None else (-shifts[0], -shifts[1]))


def test_copies_are_counted_from_the_one_that_began_first() -> None:
    found = copies([
        origin("c", syns=NONE, zeros=(1000, 2400), times=(5, 6)), origin("lone", key=(0, 1, 7, 0, 2, 9092)),
        origin("b", syns=NONE, zeros=(150, 500), times=(2, 6)), origin("a", times=(1, 6)),
    ])  # fmt: skip
    assert found == [
        Copy("a", "a-1", 0, 0, 0, 0), Copy("b", "b-1", 0, 1, 50, 0), Copy("c", "c-1", 0, 2, 900, 1900)
    ]  # fmt: skip


def test_captures_of_one_name_are_refused() -> None:
    named_apart(["x/a.pcap", "x/b.pcap"])
    with pytest.raises(SameNames, match=r"two captures are called a\.pcap"):
        named_apart(["x/a.pcap", "y/a.pcap"])


@pytest.fixture
def points(tmp_path: Path, packets_of: Call, save: Call, unpacked: Call) -> Callable[..., list[Path]]:
    """The same traffic from two points, each without some packets; the second one's clock is ahead."""

    def make(name: str, first: Callable[[int], bool], second: Callable[[int], bool]) -> list[Path]:
        packets = packets_of(unpacked(name))
        kept = [packet for at, packet in enumerate(packets) if first(at)]
        other = [(time + LATER, *rest) for at, (time, *rest) in enumerate(packets) if second(at)]
        return [save(tmp_path / "first.pcap", kept), save(tmp_path / "second.pcap", other)]

    return make


@pytest.fixture
def once(spark: Any, tmp_path: Path) -> Callable[..., dict[str, list[dict[str, Any]]]]:
    def rows(paths: list[Path], names: tuple[str, ...], size: int = 1 << 27) -> dict[str, list[dict[str, Any]]]:
        out = str(tmp_path / "out")
        done = run(
            spark, list(map(str, paths)), out, Job(names), split_size=size, rollups=False, drop_duplicates=True
        )  # fmt: skip
        found = {
            name: [row.asDict(True) for row in table_of(spark, out, name).select(*_columns(name)).collect()]
            for name in names
        }
        assert done.rows == {name: len(there) for name, there in found.items()}
        assert sorted(path.name for path in Path(out).iterdir()) == sorted([*names, "files"])
        return found

    return rows


def _columns(name: str) -> list[str]:
    return [f"`{column}`" for column, kind, _ in COLUMNS[name] if kind != "timestamp"]


def texts(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, default=str, sort_keys=True) for row in rows)


def all_but(columns: set[str], rows: list[dict[str, Any]]) -> list[str]:
    """Rows without columns; times without what the second clock is ahead."""
    out = []
    for row in rows:
        ahead = LATER if row["capture"] == "second.pcap" else 0
        out.append({
            name: value - ahead if name in ("time_ns", "last_time_ns", "response_time_ns") and value else value
            for name, value in row.items() if name not in columns
        })  # fmt: skip
    return texts(out)


def test_two_points_are_read_apart(points: Call) -> None:
    paths = points("kafkajs.pcap", lambda _: True, lambda _: True)
    both, alone = tables_of(paths, ["messages"])["messages"], [tables_of([path], ["messages"]) for path in paths]
    assert texts(untimed(both).to_pylist()) == texts(
        [row for found in alone for row in untimed(found["messages"]).to_pylist()]
    )


def test_of_a_whole_copy_nothing_stays(points: Call, once: Call) -> None:
    paths = points("classic.pcap.gz", lambda _: True, lambda _: True)
    names = ("messages", "group_events", "connections")
    found, want = once(paths, names, 9000), tables_of(paths[:1], names)
    for name in names:
        assert texts(found[name]) == texts(untimed(want[name]).to_pylist()), name


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (lambda at: at % 50 != 33, lambda _: True),  # what the first lost, the second has
        (lambda at: at < 110, lambda at: at > 70),  # the second began in the middle, the first ended before
    ],
    ids=["losses", "middle"],
)
def test_what_one_point_lost_is_taken_from_the_other(
    points: Call,
    once: Call,
    unpacked: Call,
    first: Callable[[int], bool],
    second: Callable[[int], bool],
) -> None:
    paths = points("kafkajs.pcap", first, second)
    names = ("messages", "exchanges", "partitions")
    found, want = once(paths, names), tables_of([unpacked("kafkajs.pcap")], names)
    whole = [row for row in found["messages"] if row["quality"] == "ok" and row["note"] is None]
    exact = [row for row in untimed(want["messages"]).to_pylist() if row["note"] is None]
    assert set(all_but(OWN | {"latency_ns", "client_id"}, exact)) == set(
        all_but(OWN | {"latency_ns", "client_id"}, whole)
    )
    done, all_done = (
        [row for row in rows if row["outcome"] in ("ok", "error")]
        for rows in (found["exchanges"], untimed(want["exchanges"]).to_pylist())
    )
    assert len(done) == len(all_done) > 30
    assert {row["capture"] for row in done} == {"first.pcap", "second.pcap"}
    assert all_but(OWN, found["partitions"]) == all_but(OWN, untimed(want["partitions"]).to_pylist())


def test_tables_that_were_not_asked_for_do_not_stay(points: Call, once: Call) -> None:
    paths = points("kafkajs.pcap", lambda _: True, lambda _: True)
    want = tables_of(paths[:1], ["connections"])["connections"]
    want = untimed(want).to_pylist()
    for there in (paths, paths[:1]):
        assert texts(once(there, ("connections",))["connections"]) == texts(want)
