"""Segments that a split leaves to the stitch are the same at the driver, and take little room on the way."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from kwire.capture.tcp import Key, Segments
from kwire.pipeline.leftover_segments import COLUMNS, LeftoverSegments, leftover_of, pair
from kwire.pipeline.reading import survey
from kwire.pipeline.splits import plan
from kwire.pipeline.survey import SurveyNames
from kwire.session.reader import Settings


def sent(left: LeftoverSegments) -> tuple[LeftoverSegments, int]:
    """As it arrives, and the bytes that this took."""
    data = zlib.compress(pickle.dumps(left))
    return pickle.loads(zlib.decompress(data)), len(data)


def told(left: LeftoverSegments) -> Any:
    segments = left.segments
    columns = [getattr(segments, name).tolist() for name in (*COLUMNS, "flow")]
    return left.block, left.joined, bytes(segments.buffer), columns, segments.keys


def of(count: int, flows: int, lost: float) -> Segments:
    """Segments of a hundred bytes of many streams at once, some of which are lost, late or cut."""
    random, rows = Random(3), []
    nexts = [random.randrange(1 << 32) for _ in range(flows)]
    for number in range(count):
        flow = random.randrange(flows)
        rows.append((number, 1_790_000_000 * 10**9 + number * 17_000, nexts[flow], 24, 100, 100, flow))
        nexts[flow] = (nexts[flow] + 100) % (1 << 32)
    rows = [row if random.random() > lost else (*row[:4], random.choice((-4, 0, 60)), *row[5:]) for row in rows]
    rows = [row for row in rows if random.random() > lost]
    number, time, seq, flags, have, length, flow = np.array(rows, np.int64).T
    starts = np.maximum(have, 0)
    keys: list[Key] = [(0, at, 1024, 0, 9, 9092) for at in range(flows)]
    buffer = memoryview(bytes(int(starts.sum())))
    return Segments(
        buffer, number, time, seq, flags, np.cumsum(starts) - starts, have, length, flow.astype(np.intp), keys
    )  # fmt: skip


@pytest.mark.parametrize(("count", "lost"), [(1, 0.0), (500, 0.0), (500, 0.3)])
def test_they_arrive_as_they_were(count: int, lost: float) -> None:
    left = LeftoverSegments(3, True, of(count, 1 if count == 1 else 7, lost))
    got = sent(left)[0]
    both = [
        sorted(zip(*(getattr(one.segments, name).tolist() for name in COLUMNS), strict=True)) for one in (left, got)
    ]
    assert both[0] == both[1]
    assert told(sent(got)[0]) == told(got)
    assert [got.segments.keys[flow] for flow in got.segments.flow] == [
        left.segments.keys[flow] for flow in left.segments.flow
    ]


def test_a_segment_takes_little_beside_its_bytes() -> None:
    left = LeftoverSegments(0, False, of(20_000, 200, 0.02))
    assert sent(left)[1] < 4 * len(left.segments)


@pytest.mark.parametrize("name", ["classic.pcap.gz", "mtu1500.pcap.gz"])
def test_those_of_a_capture_arrive_as_they_were(unpacked: Callable[[str], Path], name: str) -> None:
    (split,) = plan([unpacked(name)])
    keys = {pair(part.key) for part in survey(split, Settings(), SurveyNames()).parts}
    found = list(leftover_of(split, Settings(), keys))
    assert found
    assert [told(sent(left)[0]) for left in found] == [told(left) for left in found]
