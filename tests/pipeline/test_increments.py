"""Files that come one after the other: state that is kept between them, and what of it becomes final."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from calls import Call
from tablerows import untimed

from kwire.pipeline import plan as planning
from kwire.pipeline.increments import Advance, StreamState, load
from kwire.pipeline.reading import survey
from kwire.pipeline.splits import plan
from kwire.session.reader import Settings
from kwire.tables.columns import DEFAULT
from kwire.tables.schemas import SCHEMAS

CAPTURES = sorted(path.name for path in (Path(__file__).parents[2] / "fixtures" / "captures").glob("*.pcap*"))
FOREVER = 1 << 60
SETTINGS = Settings()


def one_by_one(
    paths: list[Path], lateness: int, *, end: bool = True, in_order: bool = False
) -> tuple[dict[str, list[str]], StreamState]:
    """The tables when each file comes in a batch of its own, and the state is written and read between them."""
    want, state = planning.wanted(DEFAULT), StreamState()
    parts: dict[str, list[pa.RecordBatch]] = {name: [] for name in DEFAULT}
    advance = Advance(DEFAULT, SETTINGS, lateness=lateness, in_order=in_order)
    for path in [*paths, *([None] if end else [])]:
        files = []
        if path is not None:
            state.hear(path.name, str(path).encode(), 0)
            splits = plan([path], 7000)
            files = planning.survey_all(
                splits, lambda some: [survey(split, SETTINGS, want) for split in some], SETTINGS, want
            )
        state = load(state.saved())
        made = advance.by(state, files, path is None)
        for name, batch in made.rows:
            if name == "clients":  # all of them each time
                parts[name] = []
            parts[name].append(batch)
        for task in made.tasks:
            planning.read_task(task, DEFAULT, lambda name, batch: parts[name].append(batch), SETTINGS, made.names)
    rows = {
        name: sorted(map(repr, untimed(pa.Table.from_batches(found, SCHEMAS[name])).to_pylist()))
        for name, found in parts.items()
    }
    return rows, state


@pytest.fixture
def pieces(tmp_path: Path, packets_of: Call, save: Call, unpacked: Call) -> Callable[..., list[Path]]:
    """A capture in so many files, cut at places that a seed chooses."""

    def cut(name: str, count: int, seed: int = 1) -> list[Path]:
        packets = packets_of(unpacked(name))
        ends = sorted({0, len(packets), *random.Random(seed).sample(range(1, len(packets)), count - 1)})
        return [
            save(tmp_path / f"{at}.pcap", packets[low:high]) for at, (low, high) in enumerate(itertools.pairwise(ends))
        ]

    return cut


@pytest.mark.parametrize("name", CAPTURES)
def test_files_in_their_order(pieces: Call, expected: Call, name: str) -> None:
    paths = pieces(name, 4)
    assert one_by_one(paths, 0)[0] == expected(paths, DEFAULT)


@pytest.mark.parametrize("seed", range(4))
def test_files_in_any_order(pieces: Call, expected: Call, seed: int) -> None:
    paths = pieces("old39.pcap.gz", 5, seed)
    assert one_by_one(random.Random(seed).sample(paths, 5), FOREVER)[0] == expected(paths, DEFAULT)


def test_a_file_that_comes_too_late_is_read_by_itself_and_named(pieces: Call) -> None:
    first, second = pieces("classic.pcap.gz", 2)
    rows = one_by_one([second, first], 0)[0]
    assert next(row for row in rows["quality"] if "'late'" in row).startswith("{'capture': '0.pcap'")


def test_what_waits_is_not_written_before_the_end(pieces: Call) -> None:
    paths = pieces("classic.pcap.gz", 2)
    rows, state = one_by_one(paths, FOREVER, end=False)
    assert (rows["messages"], len(state.waiting)) == ([], 2)


def test_a_chain_that_nothing_can_follow_ends_and_its_open_connections_are_named(
    tmp_path: Path,
    pieces: Call,
    packets_of: Call,
    save: Call,
    unpacked: Call,
) -> None:
    first, _ = pieces("classic.pcap.gz", 2, 3)
    later = [(time + 3600 * 10**9, *rest) for time, *rest in packets_of(unpacked("kafkajs.pcap"))]
    rows, state = one_by_one([first, save(tmp_path / "later.pcap", later)], 0, end=False)
    assert len(state.chains) == 1
    named = [row for row in rows["quality"] if "'given up'" in row]
    assert named
    assert all("its rest did not come" in row and "'capture': '0.pcap'" in row for row in named)


def unnumbered(rows: dict[str, list[str]]) -> dict[str, list[str]]:
    """Without the packets' numbers, which count from the beginning of each piece."""
    return {table: sorted(re.sub(r"packet': \d+", "", row) for row in found) for table, found in rows.items()}


def test_what_comes_in_order_follows_what_has_its_name_whatever_the_times(
    tmp_path: Path,
    packets_of: Call,
    save: Call,
    unpacked: Call,
    expected: Call,
) -> None:
    points = [unpacked("kafkajs.pcap"), unpacked("old39.pcap.gz")]  # recorded hours apart
    pieces = []
    for point in points:
        packets = packets_of(point)
        for at in range(0, len(packets), 70):
            (tmp_path / f"{at:05}").mkdir(exist_ok=True)
            pieces.append(save(tmp_path / f"{at:05}" / point.name, packets[at : at + 70]))
    assert unnumbered(one_by_one(sorted(pieces), 0, in_order=True)[0]) == unnumbered(expected(points, DEFAULT))


def test_a_message_is_heard_once_among_the_last_ones() -> None:
    state = StreamState()
    said = [state.hear(point, digest, 7, most=2) for point, digest in
            [("a", b"1"), ("a", b"1"), ("b", b"1"), ("a", b"2"), ("a", b"3"), ("a", b"2"), ("a", b"1")]]  # fmt: skip
    assert said == [True, False, True, True, True, False, True]
    assert (state.heard["a"].last, state.heard["a"].digests) == (7, [b"3", b"1"])
