"""Old and new record formats at the edge of the log: message sets become batches, and batches message sets again.

The log holds batches of magic 2 alone, as Kafka 4 does; it converts what Produce v0 to v2 brings and what Fetch v0 to
v3 may carry (Kafka's LogValidator and RecordsUtil.downConvert did the same). Keys, values, timestamps and compression
stay; record headers have no place in the old formats.
"""

from __future__ import annotations

from collections.abc import Sequence

from kwire.broker.codes import Code, Refused
from kwire.errors import KwireError
from kwire.records import Record, build, read_records

NEWEST = 2


def magic_for_fetch(version: int) -> int:
    """The newest format that a Fetch version may carry."""
    return 2 if version >= 4 else 1 if version >= 2 else 0


def to_batch(data: bytes) -> bytes:
    """A message set as one batch. Raises Refused."""
    try:
        batches = read_records(data)
    except KwireError as error:
        raise Refused(Code.CORRUPT_MESSAGE, str(error)) from error
    bad = next((batch for batch in batches if not batch.crc_ok or batch.note), None)
    if bad is not None:
        raise Refused(Code.CORRUPT_MESSAGE, bad.note or "the checksum is wrong")
    records = [record for batch in batches for record in batch.records]
    if not records or any(batch.magic == NEWEST for batch in batches):
        raise Refused(Code.INVALID_RECORD, "no message set")
    numbered = [
        record._replace(offset=number, timestamp=-1 if record.timestamp is None else record.timestamp)
        for number, record in enumerate(records)
    ]
    return build(numbered, compression=batches[0].compression, base_offset=0)


def from_batches(batches: Sequence[bytes], magic: int) -> list[bytes]:
    """Batches as message sets of an older magic; control batches are left out, as no old client knows them. Raises
    Refused for a batch that cannot be opened."""
    out = []
    for data in batches:
        for batch in read_records(data):
            if batch.note:
                raise Refused(Code.CORRUPT_MESSAGE, batch.note)
            if batch.is_control:
                continue
            records = [Record(r.offset, None if magic == 0 else r.timestamp, r.key, r.value, []) for r in batch.records]
            packed = "none" if batch.compression == "zstd" else batch.compression
            append_time = batch.max_timestamp if batch.timestamp_type == "LogAppendTime" and magic == 1 else None
            out.append(build(records, magic=magic, compression=packed, log_append_time=append_time))
    return out
