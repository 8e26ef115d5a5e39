"""Ports that are used again within a split: several connections between the same endpoints, each with its epoch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from calls import Call

NAMES = ("messages", "exchanges", "connections", "quality")
Packet = tuple[int, bytes, int, int]


def shifted(packet: Packet, later: int, more: int) -> Packet:
    """The packet of Ethernet and IPv4 at a later time, its sequence number so much larger."""
    time, data, *rest = packet
    seq = 14 + (data[14] & 15) * 4 + 4
    number = (int.from_bytes(data[seq : seq + 4], "big") + more) % (1 << 32)
    return (time + later, data[:seq] + number.to_bytes(4, "big") + data[seq + 4 :], *rest)  # type: ignore[return-value]


@pytest.mark.parametrize("gap", [10**6, 2 * 10**9, 20 * 10**9])
@pytest.mark.parametrize(("window", "times"), [(1 << 23, 1), (4000, 1), (4000, 6), (20000, 2)])
def test_each_connection_has_its_epoch(
    tmp_path: Path, packets_of: Call, save: Call, unpacked: Callable[[str], Path], expected: Call,
    cut: Call, gap: int, window: int, times: int,
) -> None:  # fmt: skip
    packets = packets_of(unpacked("kafkajs.pcap"))
    span = packets[-1][0] - packets[0][0] + gap
    again = [shifted(packet, turn * span, turn * 77_777) for turn in range(4) for packet in packets]
    path = save(tmp_path / "again.pcap", again)
    rows, planned = cut([path], NAMES, window * times, window)
    assert rows == expected([path], NAMES, window)
    assert any("#4'" in row for row in rows["connections"])
    if times == 6:
        assert sum(batch.num_rows for name, batch in planned.rows if name == "messages") < len(rows["messages"]) / 2


@pytest.mark.parametrize("later", [-3600 * 10**9, -20 * 10**9])
@pytest.mark.parametrize("times", [1, 3])
def test_clocks_that_go_back_end_no_connection(
    tmp_path: Path, packets_of: Call, save: Call, unpacked: Callable[[str], Path], expected: Call, cut: Call,
    later: int, times: int,
) -> None:  # fmt: skip
    """Several captures one after the other in a file, each begun before the one that precedes it."""
    source = unpacked("kafkajs.pcap")
    packets = packets_of(source)
    several = [shifted(packet, turn * later, turn * 77_777) for turn in range(3) for packet in packets]
    path = save(tmp_path / "several.pcap", several)
    window = path.stat().st_size * 10 // 25  # which ends in the midst of the second, and holds all of the first
    rows, _ = cut([path], NAMES, window * times // 2, window)
    assert rows == expected([path], NAMES, window)
    for name, one in expected([source], NAMES).items():
        assert len(rows[name]) == 3 * len(one)
