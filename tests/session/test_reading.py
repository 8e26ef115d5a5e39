"""Captures by their files: those that follow each other are one, others stand side by side."""

from __future__ import annotations

import gzip
from pathlib import Path
from struct import pack, unpack_from

import pytest

from kwire.session.reading import Reading, span_of

CLASSIC = Path(__file__).parents[2] / "fixtures" / "captures" / "classic.pcap.gz"


def pieces(count: int, shift: int = 0) -> list[bytes]:
    """The capture in so many files, as a ring buffer writes them; shift: seconds added to the times of the last one."""
    raw = gzip.decompress(CLASSIC.read_bytes())
    records, pos = [], 24
    while pos < len(raw):
        seconds, rest, size, length = unpack_from("<IIII", raw, pos)
        records.append((seconds, rest, size, length, raw[pos + 16 : pos + 16 + size]))
        pos += 16 + size
    each = -(-len(records) // count)
    out = []
    for number in range(count):
        late = shift if number == count - 1 else 0
        chosen = records[number * each : (number + 1) * each]
        out.append(raw[:24] + b"".join(pack("<IIII", a + late, b, c, d) + data for a, b, c, d, data in chosen))
    return out


def saved(folder: Path, parts: list[bytes]) -> list[Path]:
    paths = [folder / f"ring{number}.pcap" for number in range(len(parts))]
    for path, part in zip(paths, parts, strict=True):
        path.write_bytes(part)
    return paths


@pytest.mark.parametrize("count", [2, 3, 7])
def test_captures_that_follow_each_other_are_read_as_one(tmp_path: Path, count: int) -> None:
    paths = saved(tmp_path, pieces(count))
    reading, whole = Reading(paths[::-1]), Reading([CLASSIC])
    found = [(one.time, one.api, one.correlation_id, one.latency, one.ending) for one in reading.exchanges()]
    assert found == [(one.time, one.api, one.correlation_id, one.latency, one.ending) for one in whole.exchanges()]
    assert reading.chains == [paths]


def test_packets_are_counted_through_them(tmp_path: Path) -> None:
    joined = [one.first.packet for one in Reading(saved(tmp_path, pieces(3))).exchanges()]
    assert joined == [one.first.packet for one in Reading([CLASSIC]).exchanges()]


def test_a_capture_of_another_hour_stands_alone(tmp_path: Path) -> None:
    paths = saved(tmp_path, pieces(2, shift=3600))
    assert Reading(paths).chains == [[path] for path in paths]


def test_captures_of_the_same_time_stand_side_by_side(tmp_path: Path) -> None:
    (part,) = pieces(1)
    paths = saved(tmp_path, [part, part])
    reading = Reading(paths)
    times = [one.time for one in reading.exchanges()]
    assert (len(reading.chains), len(times), times) == (2, 332, sorted(times))


def test_the_span_of_a_capture() -> None:
    first, last = span_of(CLASSIC)
    assert (last - first) // 1_000_000_000 == 22
