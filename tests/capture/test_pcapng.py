"""pcapng: sections, interfaces and their clocks, packets in three forms, statistics, secrets, damage."""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path
from struct import pack
from typing import Any

import pytest
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from scapy.utils import wrpcapng

from kwire.capture import pcapng
from kwire.capture.damage import MOST_NOTES
from kwire.capture.packets import UNKNOWN_LINK
from kwire.capture.pcapng import TLS_KEY_LOG, PcapngReader
from kwire.errors import CaptureError

DATA = [random.Random(number).randbytes(20 + 7 * number) for number in range(8)]
TIME = 1_700_000_000_123_456_789
ORDERS = pytest.mark.parametrize("order", "<>")


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    body += bytes(-len(body) % 4)
    size = 12 + len(body)
    return pack(order + "II", kind, size) + body + pack(order + "I", size)


def option(code: int, value: bytes, order: str = "<") -> bytes:
    return pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)


def section(order: str = "<", options: bytes = b"") -> bytes:
    return block(0x0A0D0D0A, pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1) + options, order)


def interface(
    link: int = 1, order: str = "<", resolution: int | None = 9, offset: int = 0, snaplen: int = 0, name: str = ""
) -> bytes:
    options = option(2, name.encode(), order) if name else b""
    options += b"" if resolution is None else option(9, bytes([resolution]), order)
    options += option(14, pack(order + "q", offset), order) if offset else b""
    return block(1, pack(order + "HHI", link, 0, snaplen) + options + bytes(4), order)


def packet(data: bytes, time: int = 0, number: int = 0, order: str = "<", length: int | None = None) -> bytes:
    length = len(data) if length is None else length
    head = pack(order + "IIIII", number, time >> 32, time & 0xFFFFFFFF, len(data), length)
    return block(6, head + data + bytes(-len(data) % 4) + option(1, b"a comment", order), order)


def old(data: bytes, time: int, number: int, order: str = "<") -> bytes:
    head = pack(order + "HHIIII", number, 77, time >> 32, time & 0xFFFFFFFF, len(data), len(data) + 5)
    return block(2, head + data, order)


def simple(data: bytes, order: str = "<", length: int | None = None) -> bytes:
    return block(3, pack(order + "I", len(data) if length is None else length) + data, order)


def statistics(number: int, dropped: int, by_system: int | None = None, order: str = "<") -> bytes:
    options = option(4, bytes(8), order) + option(5, pack(order + "Q", dropped), order)
    options += b"" if by_system is None else option(7, pack(order + "Q", by_system), order)
    return block(5, pack(order + "III", number, 0, 0) + options, order)


def secret(data: bytes, order: str = "<", kind: int = TLS_KEY_LOG) -> bytes:
    return block(10, pack(order + "II", kind, len(data)) + data, order)


Row = tuple[int, int, int, bytes]


def read(raw: bytes, step: int = 1 << 30) -> tuple[list[Row], PcapngReader]:
    """Number, time, link and bytes of each packet; the file comes step bytes at a time."""
    reader, rows, view, rest = PcapngReader("some.pcapng"), [], raw[:step], raw[step:]
    while True:
        blocks, used = reader.read(memoryview(view), not rest)
        for found in blocks:
            columns = (found.number, found.time, found.link, found.start, found.captured)
            for number, time, link, start, size in zip(*(column.tolist() for column in columns), strict=True):
                rows.append((number, time, link, bytes(found.buffer[start : start + size])))
        view = view[used:] + rest[:step]
        if not rest:
            return rows, reader
        rest = rest[step:]


def whole(order: str = "<") -> bytes:
    return section(order) + interface(1, order) + b"".join(
        packet(data, TIME + number, 0, order) for number, data in enumerate(DATA)
    )  # fmt: skip


def expected(*lost: int) -> list[Row]:
    kept = [(TIME + number, 1, data) for number, data in enumerate(DATA) if number not in lost]
    return [(number, *row) for number, row in enumerate(kept, 1)]


def at(number: int) -> int:
    """Where the block of DATA[number] begins in whole()."""
    return len(section() + interface()) + sum(len(packet(data)) for data in DATA[:number])


@ORDERS
@pytest.mark.parametrize("step", [1 << 30, 200, 17, 1])
def test_packets_come_over_any_windows(order: str, step: int) -> None:
    rows, reader = read(whole(order), step)
    assert rows == expected()
    assert (reader.notes, reader.dropped, reader.secrets) == ([], 0, [])


@pytest.mark.parametrize("step", [1 << 30, 50, 1])
def test_sections_differ_in_order_and_begin_interfaces_anew(step: int) -> None:
    raw = b""
    for order, link in zip("<><", (1, 101, 113), strict=True):
        raw += section(order, option(1, b"a comment", order)) + interface(link, order) + interface(0, order, 6)
        raw += packet(DATA[0], TIME, 0, order) + packet(DATA[1], TIME // 1000, 1, order)
    rows, reader = read(raw, step)
    micro = TIME // 1000 * 1000
    assert [row[1:] for row in rows] == [
        row for link in (1, 101, 113) for row in ((TIME, link, DATA[0]), (micro, 0, DATA[1]))
    ]
    assert ([row[0] for row in rows], reader.notes) == ([1, 2, 3, 4, 5, 6], [])


@ORDERS
@pytest.mark.parametrize(
    ("resolution", "unit"),
    [
        (None, Fraction(1, 10**6)),
        (0, Fraction(1)),
        (3, Fraction(1, 10**3)),
        (6, Fraction(1, 10**6)),
        (9, Fraction(1, 10**9)),
        (12, Fraction(1, 10**12)),
        (0x80, Fraction(1)),
        (0x80 | 10, Fraction(1, 1 << 10)),
        (0x80 | 32, Fraction(1, 1 << 32)),
        (0x80 | 40, Fraction(1, 1 << 40)),
    ],
)
def test_clocks_of_any_resolution(order: str, resolution: int | None, unit: Fraction) -> None:
    seconds = 1_700_000_000 if unit > Fraction(1, 10**11) else 1_700_000  # 64 bits hold no more
    units = [(seconds + Fraction(part, 1000)) // unit for part in (0, 1, 500, 999)]
    raw = section(order) + interface(1, order, resolution) + b"".join(packet(b"x", at, 0, order) for at in units)
    exact = [at * unit * 10**9 for at in units]
    rounding = 1 if resolution == 0x80 | 40 else 0  # the fraction's last bits tell less than a tenth of a nanosecond
    for row, time in zip(read(raw)[0], exact, strict=True):
        assert int(time) - rounding <= row[1] <= int(time)


@ORDERS
@pytest.mark.parametrize("offset", [3600, -3600, 1_700_000_000])
def test_the_offset_of_an_interface_is_added(order: str, offset: int) -> None:
    raw = section(order) + interface(1, order, 9, offset) + packet(b"x", 5_000_000_000_000, 0, order)
    assert read(raw)[0] == [(1, 5_000_000_000_000 + offset * 10**9, 1, b"x")]


@pytest.mark.parametrize("offset", [(1 << 63) - 1, -(1 << 63), 10**10])
@pytest.mark.parametrize("resolution", [0, 9, 0x7F, 0xFF, 0xBF, 0xC0])
def test_absurd_clocks_raise_nothing(offset: int, resolution: int) -> None:
    raw = section() + interface(1, "<", resolution, offset) + packet(b"x", (1 << 64) - 1) + packet(b"y", 5)
    assert [row[3] for row in read(raw)[0]] == [b"x", b"y"]


@ORDERS
def test_packets_of_all_forms_stand_side_by_side(order: str) -> None:
    raw = section(order) + interface(1, order) + interface(101, order, 6)
    raw += packet(b"enhanced", TIME, 0, order) + simple(b"simple", order) + old(b"old", TIME // 1000, 1, order)
    raw += simple(b"again", order) + packet(b"last", 7, 1, order)
    micro = TIME // 1000 * 1000
    assert read(raw)[0] == [
        (1, TIME, 1, b"enhanced"), (2, TIME, 1, b"simple"), (3, micro, 101, b"old"), (4, micro, 1, b"again"),
        (5, 7000, 101, b"last"),
    ]  # fmt: skip


def test_a_simple_packet_gets_the_time_of_the_one_before_it_over_windows() -> None:
    raw = section() + interface() + simple(b"none") + packet(b"first", TIME) + simple(b"then")
    assert [row[1] for row in read(raw)[0]] == [0, TIME, TIME]
    assert [row[1] for row in read(raw, 8)[0]] == [0, TIME, TIME]


def test_the_snaplen_says_how_much_of_a_simple_packet_there_is() -> None:
    raw = section() + interface(snaplen=5) + simple(b"abcde", length=900) + simple(b"abc")
    reader = PcapngReader("x")
    (found,) = reader.read(memoryview(raw), True)[0]
    assert (found.captured.tolist(), found.length.tolist()) == ([5, 3], [900, 3])


def test_an_old_packet_tells_its_own_length() -> None:
    (found,) = PcapngReader("x").read(memoryview(section() + interface() + old(b"abc", 1, 0)), True)[0]
    assert (found.captured.tolist(), found.length.tolist()) == ([3], [8])


def test_a_packet_of_an_interface_that_is_not_there_has_no_link() -> None:
    assert read(section() + packet(b"x", 7))[0] == [(1, 0, UNKNOWN_LINK, b"x")]
    assert read(section() + simple(b"x"))[0] == [(1, 0, UNKNOWN_LINK, b"x")]
    assert [row[2] for row in read(section() + interface() + packet(b"x", 7, 1) + packet(b"y", 7))[0]] == [0xFFFF, 1]


def test_a_packet_that_claims_more_than_its_block_gets_what_is_there() -> None:
    head = pack("<IIIII", 0, 0, 0, 1 << 30, 1 << 30)
    raw = section() + interface() + block(6, head + b"abcd") + block(6, b"") + block(3, b"") + packet(b"x")
    assert [row[3] for row in read(raw)[0]] == [b"abcd", b"", b"", b"x"]


@ORDERS
def test_drops_are_the_last_statistics_of_each_interface_of_each_section(order: str) -> None:
    raw = section(order) + interface(1, order) * 2
    raw += statistics(0, 5, None, order) + statistics(1, 10, 3, order) + statistics(0, 7, 1, order)
    assert read(raw)[1].dropped == 7 + 1 + 10 + 3
    assert read(raw * 2, 40)[1].dropped == 2 * (7 + 1 + 10 + 3)


@ORDERS
def test_secrets_are_kept_aside(order: str) -> None:
    keys = b"CLIENT_RANDOM 00 11\n" * 3 + b"#"
    raw = whole(order) + secret(keys, order) + secret(b"wireguard", order, 0x57474B4C) + secret(b"", order)
    rows, reader = read(raw, 99)
    assert (rows, reader.secrets, reader.notes) == (expected(), [keys, b""], [])


def test_a_secret_that_claims_more_than_its_block_gets_what_is_there() -> None:
    raw = section() + block(10, pack("<II", TLS_KEY_LOG, 1 << 31) + b"abcd")
    assert read(raw)[1].secrets == [b"abcd"]


def test_blocks_of_other_kinds_are_skipped() -> None:
    names, custom = block(4, bytes(8) + b"names"), block(0xBAD, pack("<I", 32473) + b"whatever")
    parts = [packet(data, TIME + number) for number, data in enumerate(DATA)]
    raw = section() + names + interface() + custom.join(parts) + block(9, b"journal")
    assert (read(raw)[0], read(raw)[1].notes) == (expected(), [])


@pytest.mark.parametrize("kind", [1, 5, 10])
def test_a_block_that_is_too_short_is_said(kind: int) -> None:
    raw = whole() + block(kind, b"")
    rows, reader = read(raw)
    assert rows == expected()
    assert reader.notes == [f"the block at byte {len(whole())} is too short"]


@pytest.mark.parametrize("step", [1 << 30, 50, 1])
def test_the_last_block_may_be_cut_anywhere(step: int) -> None:
    raw = whole()
    for size in range(at(7), len(raw)):
        rows, reader = read(raw[:size], step)
        assert rows == expected(7)
        note = f"the file ends in the middle of a block, which begins at byte {at(7)}"
        assert reader.notes == [note] * (size > at(7))


@ORDERS
@pytest.mark.parametrize("step", [1 << 30, 333, 51, 1])
@pytest.mark.parametrize("length", [0, 8, 41, 1 << 27, 0xFFFFFFFC])
def test_a_damaged_block_is_skipped(order: str, step: int, length: int) -> None:
    raw = bytearray(whole(order))
    raw[at(3) + 4 : at(3) + 8] = pack(order + "I", length)
    rows, reader = read(bytes(raw), step)
    assert rows == expected(3)
    assert reader.notes == [f"damaged at byte {at(3)}: {at(4) - at(3)} bytes skipped"]


@pytest.mark.parametrize("step", [1 << 30, 333, 7])
@pytest.mark.parametrize("end", [b"", b"\6\0\0\0", b"\6\0\0\0 \0\0\0", b"\6\0\0\0 \0\0\0ab"])
def test_damage_up_to_the_end_is_said_once(step: int, end: bytes) -> None:
    rows, reader = read(whole()[: at(5)] + b"\xff" * 120 + end, step)
    assert rows == expected()[:5]
    assert reader.notes == [f"damaged at byte {at(5)}: {120 + len(end)} bytes skipped"]


def test_a_section_behind_damage_is_found() -> None:
    raw = whole() + b"\xff" * 64 + whole()
    rows, reader = read(raw)
    assert [row[3] for row in rows] == DATA * 2
    assert reader.notes == [f"damaged at byte {len(whole())}: 64 bytes skipped"]


def test_a_section_without_byte_order_is_an_error_at_the_beginning_and_damage_behind() -> None:
    bad = bytearray(section())
    bad[8:12] = b"\xee" * 4
    with pytest.raises(CaptureError, match=r"^some\.pcapng: the section at byte 0 has no byte-order magic$"):
        read(bytes(bad))
    rows, reader = read(whole() + bytes(bad) + packet(b"more", TIME))
    assert rows == [*expected(), (9, TIME, 1, b"more")]
    assert reader.notes == [f"damaged at byte {len(whole())}: {len(bad)} bytes skipped"]


def test_scapy_writes_what_is_read(tmp_path: Path) -> None:
    packets: list[Any] = [Ether() / IP() / TCP(dport=9092) / data for data in DATA]
    for number, one in enumerate(packets):
        one.time = 1_700_000_000 + number / 8
    path = tmp_path / "scapy.pcapng"
    wrpcapng(str(path), packets)
    assert read(path.read_bytes())[0] == [
        (number + 1, 1_700_000_000_000_000_000 + number * 125_000_000, 1, bytes(one))
        for number, one in enumerate(packets)
    ]


@pytest.mark.parametrize("step", [1 << 30, 90, 1])
def test_interfaces_and_sections_between_packets_hold_from_there_on(step: int) -> None:
    random_ = random.Random(7)
    raw, rows, order = b"", list[Row](), "<"
    known: list[tuple[int, int]] = []
    for _ in range(300):
        kind = random_.randrange(6) if raw else 0
        if kind == 0:
            order = random_.choice("<>")
            raw, known = raw + section(order), []
        elif kind == 1:
            link, unit = random_.choice((1, 101, 113)), random_.choice((9, 6, 3))
            raw, known = raw + interface(link, order, unit), [*known, (link, 10 ** (9 - unit))]
        else:
            number, data = random_.randrange(4), random_.choice(DATA)
            raw += packet(data, 1000 + len(rows), number, order)
            link, unit = known[number] if number < len(known) else (UNKNOWN_LINK, 0)
            rows.append((len(rows) + 1, (1000 + len(rows)) * unit, link, data))
    found, reader = read(raw, step)
    assert (found, reader.notes, reader.plain) == (rows, [], False)


def test_only_so_many_interfaces_and_drops_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pcapng, "MOST_INTERFACES", 2)
    raw = section() + b"".join(interface(link) + statistics(link, 1) for link in (1, 101, 113)) + packet(b"x", 5, 1)
    rows, reader = read(raw + packet(b"y", 5, 2) + statistics(101, 4))
    assert [row[2] for row in rows] == [101, UNKNOWN_LINK]
    assert reader.notes == [
        f"the interface at byte {len(section()) + 2 * len(interface() + statistics(1, 1))} is not read: over 2"
    ]
    assert reader.dropped == 5


def test_key_logs_are_kept_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pcapng, "MOST_SECRETS", 2 * pcapng.SECRET_COST + 8)
    _, reader = read(section() + secret(b"keys") * 3 + interface())
    assert reader.secrets == [b"keys"] * 2
    assert reader.notes == ["TLS keys of 4 bytes are left out: over 0 MiB of them"]


def test_damage_everywhere_is_said_up_to_a_bound() -> None:
    raw = section() + interface() + (bytes(12) + packet(DATA[0])) * 3000
    rows, reader = read(raw)
    assert (len(rows), len(reader.notes)) == (3000, MOST_NOTES + 1)
    assert reader.notes[-1] == "2,000 more places damaged, 24,000 bytes skipped there"
