"""Old and new record formats at the edge of the log: message sets become batches, and batches message sets again.

The log holds batches of magic 2 alone, as Kafka 4 does; it converts what Produce v0 to v2 brings and what Fetch v0 to
v3 may carry (Kafka's LogValidator and RecordsUtil.downConvert did the same). Keys, values, timestamps and compression
stay; record headers have no place in the old formats.
"""

from __future__ import annotations

from collections.abc import Sequence

from kwire.broker.refused import Refused
from kwire.errors import KwireError
from kwire.records import Batch, Record, build, read_records
from kwire.records.batch import read_header
from kwire.records.read import walk
from kwire.schema import codes

NEWEST = 2
OPENED = 20_000  # records that one Fetch converts
INFLATED = 8 << 20  # bytes of records that one request converts
MESSAGE = 26  # bytes of an empty message


def magic_for_fetch(version: int) -> int:
    """The newest format that a Fetch version may carry."""
    return 2 if version >= 4 else 1 if version >= 2 else 0


def to_batch(data: bytes) -> bytes:
    """A message set as one batch. Raises Refused."""
    batches: list[Batch] = []
    left = INFLATED
    try:
        for start, end in walk(data):
            batches += read_records(data[start:end], left)
            left -= sum(MESSAGE + len(r.key or b"") + len(r.value or b"") for r in batches[-1].records)
            if left < 0:
                raise Refused(codes.MESSAGE_TOO_LARGE, f"the messages come to more than {INFLATED:,} bytes")
    except KwireError as error:
        raise Refused(codes.CORRUPT_MESSAGE, str(error)) from error
    bad = next((batch for batch in batches if not batch.crc_ok or batch.note), None)
    if bad is not None:
        raise Refused(codes.CORRUPT_MESSAGE, bad.note or "the checksum is wrong")
    records = [record for batch in batches for record in batch.records]
    if not records or any(batch.magic == NEWEST for batch in batches):
        raise Refused(codes.INVALID_RECORD, "no message set")
    numbered = [
        record._replace(offset=number, timestamp=-1 if record.timestamp is None else record.timestamp)
        for number, record in enumerate(records)
    ]
    return build(numbered, compression=batches[0].compression, base_offset=0)


class Converter:
    """Batches as message sets of an older magic, for one Fetch. Control batches are left out, as no old client knows
    them. What it opens is bounded: batches that find the bound reached are left for the next Fetch."""

    def __init__(self, magic: int) -> None:
        self.magic = magic
        self._records, self._bytes = OPENED, INFLATED

    def convert(self, batches: Sequence[bytes]) -> list[bytes]:
        """Raises Refused for a batch that cannot be opened, or is too large to be."""
        out = []
        for data in batches:
            count = read_header(data, 0).record_count
            if count > OPENED:
                raise Refused(codes.MESSAGE_TOO_LARGE, f"a batch of {count:,} records is not converted")
            self._records -= count
            if self._records < 0 or self._bytes <= 0:
                break
            for batch in read_records(data, INFLATED):
                if batch.note:
                    raise Refused(codes.CORRUPT_MESSAGE, batch.note)
                if not batch.is_control:
                    out.append(self._message_set(batch))
        return out

    def _message_set(self, batch: Batch) -> bytes:
        time = self.magic != 0
        records = [Record(r.offset, r.timestamp if time else None, r.key, r.value, []) for r in batch.records]
        self._bytes -= sum(len(r.key or b"") + len(r.value or b"") for r in records)
        packed = "none" if batch.compression == "zstd" else batch.compression
        append_time = batch.max_timestamp if batch.timestamp_type == "LogAppendTime" and time else None
        return build(records, magic=self.magic, compression=packed, log_append_time=append_time)
