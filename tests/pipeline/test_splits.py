"""Splits give every packet once, whatever their size; a guess that was wrong shows; what cannot be cut is not."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from struct import pack
from typing import Any

import pytest
from calls import Call

from kwire.capture.files import open_capture
from kwire.pipeline import plan as planning
from kwire.pipeline.reading import survey
from kwire.pipeline.splits import Split, SplitReader, expand, plan
from kwire.session.reader import Settings

SIZES = (300, 1111, 5000, 40000, 1 << 30)


def block(kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    return pack("<II", kind, len(body) + 12) + body + pack("<I", len(body) + 12)


def pcapng(packets: list[Any], extra: int = 0) -> bytes:
    """A section, an interface, packets; a second interface behind so many of them."""
    section = block(0x0A0D0D0A, pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    out = [section, block(1, pack("<HHI", packets[0][3], 0, 0))]
    for number, (time, data, length, link) in enumerate(packets):
        if extra and number == extra:
            out.append(block(1, pack("<HHI", link, 0, 0)))
        high, low = divmod(time // 1000, 1 << 32)
        out.append(block(6, pack("<IIIII", 0, high, low, len(data), length) + data))
    out.append(block(5, pack("<III", 0, 0, 0) + pack("<HHQ", 5, 8, 7) + pack("<HH", 0, 0)))
    return b"".join(out)


def all_packets(splits: list[Split]) -> tuple[list[tuple[int, bytes]], int]:
    """The packets of all splits, and how many began where the one before did not end."""
    out, wrong, reached = [], 0, None
    for split in splits:
        cut = SplitReader(split)
        for _, packets in cut.blocks():
            places = zip(packets.time.tolist(), packets.start.tolist(), packets.captured.tolist(), strict=True)
            out += [(time, bytes(packets.buffer[start : start + size])) for time, start, size in places]
        wrong += reached is not None and cut.begin != reached
        reached = cut.reached
    return out, wrong


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["classic.pcap.gz", "mtu1500.pcap.gz", "ipv6.pcap"])
def test_every_packet_once(unpacked: Callable[[str], Path], packets_of: Call, name: str, size: int) -> None:
    path = unpacked(name)
    splits = plan([path], size)
    assert all_packets(splits) == ([packet[:2] for packet in packets_of(path)], 0)
    assert [split.start for split in splits[1:]] == [split.end for split in splits[:-1]]


@pytest.mark.parametrize("size", SIZES)
def test_pcapng_is_cut_too(
    tmp_path: Path,
    unpacked: Callable[[str], Path],
    packets_of: Call,
    expected: Call,
    cut: Call,
    size: int,
) -> None:
    path = tmp_path / "some.pcapng"
    path.write_bytes(pcapng(packets_of(unpacked("classic.pcap.gz"))))
    assert all_packets(plan([path], size)) == ([packet[:2] for packet in packets_of(path)], 0)
    names = ("messages", "exchanges", "connections", "quality")
    rows, planned = cut([path], names, size)
    assert rows == expected([path], names)
    assert any("7 packets were dropped" in row for row in rows["quality"])
    assert planned.packets == len(packets_of(path))


def test_a_file_whose_interfaces_change_is_read_whole(
    tmp_path: Path,
    unpacked: Callable[[str], Path],
    packets_of: Call,
    expected: Call,
    cut: Call,
) -> None:
    path = tmp_path / "some.pcapng"
    path.write_bytes(pcapng(packets_of(unpacked("kafkajs.pcap")), 60))
    rows, planned = cut([path], ["messages"], 3000)
    assert rows == expected([path], ["messages"])
    assert all(task.split.why == "its interfaces change" for task in planned.tasks)


def test_packed_files_are_not_cut(tmp_path: Path, unpacked: Callable[[str], Path]) -> None:
    path = tmp_path / "some.pcap.gz"
    path.write_bytes(gzip.compress(unpacked("classic.pcap.gz").read_bytes()))
    splits = plan([path], 1000)
    assert [(split.whole, split.why) for split in splits] == [(True, "it is compressed")]


def test_what_is_no_capture_is_not_cut() -> None:
    source = Path(__file__)
    splits = plan([source], 1 << 30)
    assert len(splits) == 1
    assert splits[0].why == "it is no capture"


@pytest.mark.parametrize(("size", "ends"), [(700, [700, 1000, 1400, 2000]), (1500, [2000, 4000])])
def test_splits_and_windows(tmp_path: Path, size: int, ends: list[int]) -> None:
    path = tmp_path / "some.pcap"
    path.write_bytes(b"\xd4\xc3\xb2\xa1" + bytes(4996))
    assert [split.end for split in plan([path], size, 1000)][: len(ends)] == ends


def test_a_packet_that_looks_like_packets_does_not_mislead(tmp_path: Path, save: Call, packets_of: Call,
                                                           unpacked: Callable[[str], Path]) -> None:  # fmt: skip
    inner = unpacked("kafkajs.pcap").read_bytes()
    packets = [(time, inner, len(inner), link) for time, _, _, link in packets_of(unpacked("kafkajs.pcap"))[:20]]
    path = save(tmp_path / "nested.pcap", packets)
    settings, want = Settings(), planning.wanted(["messages"])
    splits = plan([path], 30000)
    made = [survey(split, settings, want) for split in splits]
    checked = planning.checked(made, settings, want)
    assert sum(found.packets for found in checked) == 20
    assert sum(len(packets) for packets in open_capture(path).blocks()) == 20


def test_folders_are_expanded(tmp_path: Path) -> None:
    for name in ("b.pcap", "a.pcap", ".hidden", "_SUCCESS"):
        (tmp_path / name).touch()
    (tmp_path / "deeper").mkdir()
    assert [Path(path).name for path in expand([tmp_path])] == ["a.pcap", "b.pcap"]
    with pytest.raises(FileNotFoundError):
        expand([tmp_path / "nothing"])
