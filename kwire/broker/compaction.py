"""Compaction: of each key the newest record stays (Kafka's Cleaner).

What is cleaned are whole segments before the active one, as far as no transaction is open and min.compaction.lag.ms has
passed. A tombstone, and the marker of a transaction of which nothing is left, stay for delete.retention.ms after the
first cleaning that saw them, by the delete horizon that this writes into their batch. Records of aborted transactions
go. A batch without records stays while it is the last of its producer, whose sequence numbers it tells.
"""

from __future__ import annotations

from typing import NamedTuple

from kwire.broker.log import INFLATED, Log
from kwire.broker.segments import LogEntry
from kwire.errors import KwireError
from kwire.records import Record, read_records, rebuilt
from kwire.records.batch import HEADER, Header


class Rules(NamedTuple):
    """A topic's configuration, ms and bytes. dirty: the least share of bytes that were not cleaned yet."""

    segment_bytes: int
    segment_ms: int
    delete_retention_ms: int
    min_lag_ms: int
    max_lag_ms: int
    dirty: float


class _Opened(NamedTuple):
    """A batch with its records. whole: it cannot be opened, or is not to be changed."""

    entry: LogEntry
    header: Header
    records: list[Record]
    whole: bool = False


def compact(log: Log, rules: Rules, now_ms: int, force: bool = False) -> int:
    """Cleans what is due, or with force all that may be; gives how many records went."""
    end = min(log.stable, log.end if force else _active(log, rules, now_ms))
    entries = [entry for entry in log.entries if entry.last < end]
    if not force:
        recent = next((n for n, entry in enumerate(entries) if now_ms - entry.time < rules.min_lag_ms), len(entries))
        entries = entries[:recent]
        if not _is_due(log, entries, rules, now_ms):
            return 0
    if not entries:
        return 0
    opened = [_open(entry, log) for entry in entries]
    data = [each for each in opened if not each.header.is_control and not _is_aborted(each, log)]
    latest = {record.key: record.offset for each in data for record in each.records}
    kept, gone, left = [], 0, set[int]()
    for each in opened:
        records = [record for record in each.records if _stays(each, record, latest, now_ms)]
        if not each.header.is_control and _is_aborted(each, log):
            records = []
        gone += len(each.records) - len(records)
        if records and not each.header.is_control:
            left.add(each.header.producer_id)
        made = _made(each, records, now_ms + rules.delete_retention_ms, log, left)
        if made is not None:
            kept.append(made)
    log.replace_first(len(entries), kept)
    log.cleaned = entries[-1].last + 1
    return gone


def _active(log: Log, rules: Rules, now_ms: int) -> int:
    """Where the active segment begins; one that is older than max.compaction.lag.ms is rolled."""
    base, size, first = log.start, 0, -1
    for entry in log.entries:
        if first >= 0 and (size + len(entry.data) > rules.segment_bytes or entry.time - first > rules.segment_ms):
            base, size, first = entry.base, 0, -1
        if first < 0:
            first = entry.time
        size += len(entry.data)
    rolled = 0 <= first < now_ms - min(rules.max_lag_ms, rules.segment_ms)
    return log.end if rolled else base


def _is_due(log: Log, entries: list[LogEntry], rules: Rules, now_ms: int) -> bool:
    dirty = sum(len(entry.data) for entry in entries if entry.base >= log.cleaned)
    total = sum(len(entry.data) for entry in entries)
    late = any(now_ms - entry.time > rules.max_lag_ms for entry in entries if entry.base >= log.cleaned)
    horizons = any(_horizon(entry) is not None and (_horizon(entry) or 0) <= now_ms for entry in entries)
    return bool(total) and (horizons or (dirty > 0 and (late or dirty / total >= rules.dirty)))


def _horizon(entry: LogEntry) -> int | None:
    header = Header(*HEADER.unpack_from(entry.data))
    return header.base_timestamp if header.has_delete_horizon else None


def _open(entry: LogEntry, log: Log) -> _Opened:
    header = Header(*HEADER.unpack_from(entry.data))
    try:
        (batch,) = read_records(entry.data, INFLATED)
    except (KwireError, ValueError):
        return _Opened(entry, header, [], True)
    return _Opened(entry, header, batch.records, bool(batch.note) or entry.base < log.start)


def _is_aborted(each: _Opened, log: Log) -> bool:
    producer, base = each.header.producer_id, each.entry.base
    return each.header.is_transactional and any(
        a.producer == producer and a.first <= base <= a.last for a in log.producers.aborted
    )


def _stays(each: _Opened, record: Record, latest: dict[bytes | None, int], now_ms: int) -> bool:
    over = each.header.has_delete_horizon and each.header.base_timestamp <= now_ms
    if each.header.is_control:
        return not over
    if record.key is None:
        return True
    return latest.get(record.key) == record.offset and not (over and record.value is None)


def _made(each: _Opened, records: list[Record], horizon: int, log: Log, left: set[int]) -> LogEntry | None:
    """The batch with what stays, or None when nothing has to."""
    entry, header = each.entry, each.header
    if each.whole:
        return entry
    known = log.producers.known.get(header.producer_id)
    last = known is not None and bool(known.batches) and known.batches[-1].base == entry.base
    if not records and not last:
        return None
    tombstones = header.is_control and header.producer_id not in left
    tombstones = tombstones or any(r.value is None and r.key is not None for r in records)
    if len(records) == len(each.records) and (header.has_delete_horizon or not tombstones):
        return entry
    begins = tombstones and not header.has_delete_horizon
    data = rebuilt(entry.data, records, delete_horizon=horizon if begins else None)
    return entry._replace(data=data, time=Header(*HEADER.unpack_from(data)).max_timestamp)
