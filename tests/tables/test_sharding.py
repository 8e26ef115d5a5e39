"""Each connection falls to one worker with both its directions, and nothing of a block is lost."""

# mypy: disable-error-code="index"

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kwire.capture.files import open_capture
from kwire.capture.segmenter import Block, Segmenter
from kwire.capture.tcp import ConnectionFilter
from kwire.tables.sharding import COLUMNS, leave, take
from kwire.tables.shared_memory import MemorySlot

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"
NAMES = ["classic.pcap.gz", "ipv6.pcap", "notkafka.pcap", "mtu1500.pcap.gz"]


def blocks(name: str) -> list[Block]:
    segmenter = Segmenter(ConnectionFilter())
    return [segmenter.read(packets) for packets in open_capture(CAPTURES / name).blocks()]


def rows(block: Block) -> list[tuple[object, ...]]:
    """Each segment with its bytes and its flow's key."""
    out = []
    for at, segments in enumerate(block.segments):
        for row in range(len(segments)):
            values = {column: int(getattr(segments, column)[row]) for column in COLUMNS}
            data = bytes(segments.buffer[values["start"] : values["start"] + values["have"]])
            key = segments.keys[values.pop("flow")]
            out.append((at, key, data, *values.values()))
    return out


@pytest.mark.parametrize("of", [1, 2, 5])
@pytest.mark.parametrize("name", NAMES)
def test_workers_have_together_what_a_block_has(name: str, of: int) -> None:
    slot = MemorySlot()
    for block in blocks(name):
        left = leave(slot, block)
        shares = [take(slot, left, number, of) for number in range(of)]
        assert sorted(row for share in shares for row in rows(share)) == sorted(rows(block))
        ends = [{frozenset((key[:3], key[3:])) for _, key, *_ in rows(share)} for share in shares]
        assert sum(map(len, ends)) == len(set().union(*ends))
        for share in shares:
            assert share[:3] == block[:3]
            times = np.concatenate([segments.time for segments in block.segments])
            assert [segments.now for segments in share.segments] == [times.max()]
            for segments in share.segments:
                assert len(set(segments.flow.tolist())) == len(segments.keys)


def test_a_block_without_segments() -> None:
    slot, block = MemorySlot(), Segmenter(ConnectionFilter(ports=frozenset({1})))
    (packets,) = open_capture(CAPTURES / "ipv6.pcap").blocks()
    left = leave(slot, block.read(packets))
    (segments,) = take(slot, left, 0, 2).segments
    assert (len(segments), segments.keys, segments.now) == (0, [], None)
