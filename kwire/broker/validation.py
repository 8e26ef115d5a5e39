"""What a topic's configuration asks of a batch before it is written: its size, keys, timestamps, compression (Kafka's
LogValidator). What a record lacks is told for each record."""

from __future__ import annotations

from kwire.broker.configs import BatchRules
from kwire.broker.log import INFLATED, checked
from kwire.broker.refused import Refused
from kwire.errors import KwireError
from kwire.records import Record, read_records, rebuilt
from kwire.records.batch import Header
from kwire.schema import codes

SHOWN = 3
FOREVER = (1 << 63) - 1


class RecordsRefused(Refused):
    """Some records may not be written, and so the batch is not. errors: number in the batch, and why."""

    def __init__(self, code: int, errors: list[tuple[int, str]]) -> None:
        self.errors = errors
        shown = ", ".join(f"RecordError(batchIndex={n}, message='{why}')" for n, why in errors[:SHOWN])
        super().__init__(code, f"One or more records have been rejected due to {len(errors)} record errors in total, "
                         f"and only showing the first three errors at most: [{shown}]")  # fmt: skip


def validated(rules: BatchRules, place: tuple[str, int], data: bytes, now_ms: int) -> tuple[bytes, Header]:
    """The batch as it is to be written, and its header. place: topic and partition. Raises Refused."""
    if len(data) > rules.limit:
        raise Refused(codes.MESSAGE_TOO_LARGE, f"a batch of {len(data)} bytes, max.message.bytes is {rules.limit}")
    header = checked(data)
    if rules.compacted:
        why = f"Compacted topic cannot accept message without key in topic partition {'-'.join(map(str, place))}."
        missing = [(n, why) for n, record in enumerate(_opened(data)) if record.key is None]
        if missing:
            raise RecordsRefused(codes.INVALID_RECORD, missing)
    if not rules.append_time:
        _check_times(rules, data, header, now_ms)
    if rules.compression != "producer" and rules.compression != header.compression:
        data = rebuilt(data, _opened(data), compression=rules.compression, level=rules.level)
        header = checked(data)
    return data, header


def _check_times(rules: BatchRules, data: bytes, header: Header, now_ms: int) -> None:
    low, high = now_ms - rules.before if rules.before < FOREVER else -1, now_ms + rules.after
    if header.max_timestamp <= high and low < 0:
        return
    wrong = []
    for number, record in enumerate(_opened(data)):
        time = -1 if record.timestamp is None else record.timestamp
        if time != -1 and not low <= time <= high:
            why = f"Timestamp {time} of message with offset {number} is out of range. The timestamp should be within "
            wrong.append((number, f"{why}[{low}, {high}]"))
    if wrong:
        raise RecordsRefused(codes.INVALID_TIMESTAMP, wrong)


def _opened(data: bytes) -> list[Record]:
    """Raises Refused for a batch that cannot be opened, or is too large to be."""
    try:
        (batch,) = read_records(data, INFLATED)
    except (KwireError, ValueError) as error:
        raise Refused(codes.CORRUPT_MESSAGE, str(error)) from error
    if batch.note:
        raise Refused(codes.CORRUPT_MESSAGE, batch.note)
    return batch.records
