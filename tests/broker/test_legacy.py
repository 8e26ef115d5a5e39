"""Message sets into batches and back: keys, values, timestamps, offsets and compression stay."""

from __future__ import annotations

import pytest

from kwire.broker.legacy import Converter, magic_for_fetch, to_batch
from kwire.broker.refused import Refused
from kwire.records import Record, build, read_records
from kwire.schema import codes

PAIRS: list[tuple[bytes | None, bytes | None]] = [(b"k", b"one"), (None, b"two"), (b"k", None)]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4"])
def test_there_and_back(magic: int, compression: str) -> None:
    old = build(PAIRS, magic=magic, compression=compression, timestamp=5)
    (batch,) = read_records(to_batch(old))
    time = -1 if magic == 0 else 5
    assert [(r.offset, r.timestamp, r.key, r.value) for r in batch.records] == [
        (n, time, key, value) for n, (key, value) in enumerate(PAIRS)
    ]
    assert (batch.magic, batch.compression, batch.crc_ok) == (2, compression, True)
    (again,) = Converter(magic).convert([build(batch.records, compression=compression)])
    records = [record for found in read_records(again) for record in found.records]
    assert [(r.offset, r.timestamp, r.key, r.value) for r in records] == [
        (n, None if magic == 0 else time, key, value) for n, (key, value) in enumerate(PAIRS)
    ]


def test_what_old_clients_cannot_know_is_left_out() -> None:
    headers = build([Record(0, 5, b"k", b"v", [("h", b"x")])], compression="zstd")
    control = build([(b"k", b"v")], is_control=True)
    (only,) = Converter(1).convert([control, headers])
    (batch,) = read_records(only)
    assert (batch.compression, batch.records) == ("none", [Record(0, 5, b"k", b"v", [])])


@pytest.mark.parametrize(
    ("data", "code", "why"),
    [
        (build([]), codes.INVALID_RECORD, "no message set"),
        (b"x" * 40, codes.CORRUPT_MESSAGE, "records: [0].Magic: magic 120, there are 0, 1 and 2"),
        (build(PAIRS, magic=1)[:-1] + b"\1", codes.CORRUPT_MESSAGE, "the checksum is wrong"),
        (b"", codes.INVALID_RECORD, "no message set"),
    ],
)
def test_what_is_no_message_set(data: bytes, code: int, why: str) -> None:
    with pytest.raises(Refused) as refused:
        to_batch(data)
    assert (refused.value.code, refused.value.why) == (code, why)


def test_what_cannot_be_opened_is_refused() -> None:
    data = bytearray(build(PAIRS, compression="gzip"))
    data[61:] = bytes(len(data) - 61)
    with pytest.raises(Refused) as refused:
        Converter(1).convert([bytes(data)])
    assert refused.value.code == codes.CORRUPT_MESSAGE


def test_formats_by_fetch_version() -> None:
    assert [magic_for_fetch(version) for version in (0, 1, 2, 3, 4, 18)] == [0, 0, 1, 1, 2, 2]


def test_a_fetch_converts_no_more_than_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = build([(None, b"v")] * 10)
    monkeypatch.setattr("kwire.broker.legacy.OPENED", 25)
    converter = Converter(1)
    assert len(converter.convert([batch] * 5)) == 2
    assert converter.convert([batch]) == []
    monkeypatch.setattr("kwire.broker.legacy.OPENED", 9)
    with pytest.raises(Refused, match="a batch of 10 records is not converted"):
        Converter(1).convert([batch])


def test_a_bomb_is_not_converted() -> None:
    bomb = build([(None, bytes(9 << 20))], compression="zstd")
    with pytest.raises(Refused, match="decompresses to more than 8,388,608 bytes"):
        Converter(0).convert([bomb])


def test_message_sets_come_to_so_many_bytes() -> None:
    wrapper = build([(None, bytes(1 << 20))], magic=1, compression="gzip")
    to_batch(wrapper * 7)
    with pytest.raises(Refused, match=r"more than [\d,]+ bytes"):
        to_batch(wrapper * 9)
