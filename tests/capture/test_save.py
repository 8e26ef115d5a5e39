"""What is written reads back, here and in scapy."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from scapy.utils import PcapNgReader, PcapReader

from kwire.capture.files import open_capture
from kwire.capture.save import SNAPLEN, PcapngWriter, PcapWriter
from kwire.errors import CaptureError

TIME = 1_700_000_000_123_456_789
ROWS = [(TIME + number * 999_999_999, bytes(range(number)), number + number % 3) for number in range(14, 40)]


def read(path: Path) -> list[tuple[int, bytes, int, int]]:
    out = []
    for block in open_capture(path).blocks():
        columns = (block.time, block.start, block.captured, block.length, block.link)
        for time, start, size, length, link in zip(*(column.tolist() for column in columns), strict=True):
            out.append((time, bytes(block.buffer[start : start + size]), length, link))
    return out


@pytest.mark.parametrize("link", [1, 101, 276])
def test_pcap_reads_back(tmp_path: Path, link: int) -> None:
    path = tmp_path / "x.pcap"
    with path.open("wb") as file:
        writer = PcapWriter(file)
        for row in ROWS:
            writer.write(*row, link)
    assert read(path) == [(*row, link) for row in ROWS]
    with PcapReader(str(path)) as scapy:
        assert (scapy.linktype, scapy.snaplen, scapy.nano) == (link, SNAPLEN, True)
        packets = [(int(info.sec * 10**9 + info.usec), data, info.wirelen) for data, info in _raw(scapy)]
    assert packets == ROWS


def _raw(reader: PcapReader) -> list[tuple[bytes, PcapReader.PacketMetadata]]:
    return [reader._read_packet() for _ in ROWS]


def test_pcap_holds_one_link_type() -> None:
    writer = PcapWriter(io.BytesIO())
    writer.write(TIME, b"x", 1, 1)
    with pytest.raises(CaptureError, match=r"^pcap: packets of several link types need --format pcapng$"):
        writer.write(TIME, b"x", 1, 101)


def test_pcapng_reads_back_with_an_interface_for_each_link_and_name(tmp_path: Path) -> None:
    path, links = tmp_path / "x.pcapng", [(1, ""), (101, ""), (1, "eth0"), (1, "")]
    with path.open("wb") as file:
        writer = PcapngWriter(file)
        for number, row in enumerate(ROWS):
            writer.write(*row, *links[number % 4])
    assert read(path) == [(*row, links[number % 4][0]) for number, row in enumerate(ROWS)]
    with PcapNgReader(str(path)) as scapy:
        packets = [scapy._read_packet() for _ in ROWS]
        assert [interface[0] for interface in scapy.interfaces] == [1, 101, 1]
    for number, ((data, info), (time, sent, length)) in enumerate(zip(packets, ROWS, strict=True)):
        assert (data, info.wirelen, info.linktype) == (sent, length, links[number % 4][0])
        assert (info.tshigh << 32) + info.tslow == time
        assert info.ifname == (b"eth0" if number % 4 == 2 else None)


def test_a_pcapng_file_without_packets_is_a_section() -> None:
    file = io.BytesIO()
    PcapngWriter(file)
    raw = file.getvalue()
    assert raw[:12].hex() == "0a0d0d0a" + "2c000000" + "4d3c2b1a"
    assert (len(raw), raw[-4:], raw[28:33]) == (44, b"\x2c\0\0\0", b"kwire")
