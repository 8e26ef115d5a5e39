"""Connections that one capture has twice, as a gateway sees them before and after it changes addresses: their rows are
those of kwire table, however the capture is split."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from calls import Call

from kwire.tables.columns import DEFAULT

SOURCE, DESTINATION = 14 + 12, 14 + 16  # behind Ethernet, in IPv4
PORTS = 14 + 20
Packet = tuple[int, bytes, int, int]  # time, bytes, length on the wire, link


def translated(packets: Sequence[Packet], lag: int, answers: bool = False) -> list[Packet]:
    """The packets, and each again after lag ns with other addresses. answers: only the broker's."""
    out = []
    for time, data, length, link in packets:
        out.append((time, data, length, link))
        changed = bytearray(data)
        if data[12:14] == b"\x08\x00" and data[23] == 6:
            if answers and data[PORTS : PORTS + 2] > data[PORTS + 2 : PORTS + 4]:
                continue
            changed[SOURCE] ^= 0x40
            changed[DESTINATION] ^= 0x40
        out.append((time + lag, bytes(changed), length, link))
    return sorted(out, key=lambda packet: packet[0])


@pytest.mark.parametrize(
    ("name", "size", "lag", "answers"),
    [
        ("old39.pcap.gz", 12_000, 1000, False),
        ("old39.pcap.gz", 36_101, 1000, False),
        ("old39.pcap.gz", 71_101, 30_000_000, False),
        ("old39.pcap.gz", 1 << 20, 1000, False),
        ("old39.pcap.gz", 37_001, 1000, True),
        ("pyclients.pcap", 12_000, 1000, False),
        ("pyclients.pcap", 50_000, 1000, False),
    ],
)
def test_each_connection_is_counted_once(
    tmp_path: Path, unpacked: Callable[[str], Path], packets_of: Call, save: Call, expected: Call, cut: Call, name: str,
    size: int, lag: int, answers: bool,
) -> None:  # fmt: skip
    path = save(tmp_path / "a.pcap", translated(packets_of(unpacked(name)), lag, answers))
    rows, _ = cut([path], DEFAULT, size, size)
    assert rows == expected([path], DEFAULT, size)
    again = [row for row in rows["connections"] if "seen a second time" in row]
    assert len(again) == len(rows["connections"]) // 2
    assert not any("63.0.0.1" in row for row in rows["messages"] if not answers and size == 1 << 20)


@pytest.mark.parametrize(
    ("size", "lag", "answers"),
    [
        (29_701, 1000, False),
        (36_101, 1000, False),
        (27_188, 30_000_000, True),
        (56_341, 30_000_000, True),
        (9_232, 1000, True),
        (65_751, 1000, True),
    ],
)
def test_splits_end_where_they_like(
    tmp_path: Path, unpacked: Callable[[str], Path], packets_of: Call, save: Call, expected: Call, cut: Call, size: int,
    lag: int, answers: bool,
) -> None:  # fmt: skip
    path = save(tmp_path / "a.pcap", translated(packets_of(unpacked("old39.pcap.gz")), lag, answers))
    assert cut([path], DEFAULT, size, 1 << 22)[0] == expected([path], DEFAULT)


@pytest.mark.parametrize(("lag", "window"), [(50_000, 37_341), (30_000_000, 15_656)])
def test_a_table_is_the_same_in_blocks_of_any_size(
    tmp_path: Path, unpacked: Callable[[str], Path], packets_of: Call, save: Call, expected: Call, lag: int,
    window: int,
) -> None:  # fmt: skip
    path = save(tmp_path / "a.pcap", translated(packets_of(unpacked("franz.pcap.gz")), lag, True))
    assert expected([path], DEFAULT, window) == expected([path], DEFAULT)
