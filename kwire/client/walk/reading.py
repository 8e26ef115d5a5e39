"""Steps 6 and 7: where the group's offsets stand, where the log begins or ends, and the records from there on."""

from __future__ import annotations

from collections.abc import Iterator

from kwire.client.bodies import FetchAnswer, Partition
from kwire.client.reachable import numbers
from kwire.client.reader import PartitionReader, Polled
from kwire.client.walk.moves import Moves
from kwire.client.walk.step import ERROR, NOTE, OK, Detail, Step
from kwire.client.walk.step_recorder import Ended, Teller
from kwire.errors import KwireError
from kwire.records import Record

WAIT_MS = 500  # fetch.max.wait.ms
SHOWN = 12  # partitions, a line each
TEXT = 40  # characters of a key or a value


class WalkReading:
    """shown: how many records of each partition."""

    def __init__(self, reader: PartitionReader, teller: Teller, shown: int, moves: Moves) -> None:
        self._reader, self._teller, self._shown, self._moves = reader, teller, shown, moves

    def steps(self) -> Iterator[Step]:
        """Nothing when nothing is assigned."""
        if self._reader.partitions:
            yield from self._offsets()
            yield self._fetch()

    def _offsets(self) -> Iterator[Step]:
        reader = self._reader
        try:
            found = yield from self._moves.ask(6, "OffsetFetch", reader.committed)
        except KwireError as error:
            raise Ended(self._teller.fail(6, error)) from error
        missing = [one for one, offset in found.items() if offset < 0]
        reader.positions = found
        details = [Detail(f"{_name(one)}: committed {offset:,}") for one, offset in found.items() if offset >= 0]
        policy = "earliest" if reader.earliest else "latest"
        if missing:
            text = f"{len(missing)} of {len(found)} partitions without a committed offset"
            details.append(Detail(f"auto.offset.reset decides: {policy}"))
        else:
            text = f"committed offsets of {len(found)} partition{'' if len(found) == 1 else 's'}"
        yield self._teller.tell(6, OK, text, _bounded(details), reset=policy,
                                 committed=[[*one, offset] for one, offset in found.items()])  # fmt: skip

    def _fetch(self) -> Step:
        self._teller.begin()
        reader, details = self._reader, []
        try:
            missing = [one for one, offset in reader.positions.items() if offset < 0]
            if missing:
                reader.positions |= reader.ends(missing, reader.earliest)
            start = dict(reader.positions)
            rows: dict[Partition, FetchAnswer] = {}
            for address, own in reader.place.by_leader(list(start)).items():
                rows |= reader.fetch(address, own, WAIT_MS)
            records = {one: reader.read(one, got) for one, got in rows.items()}
        except KwireError as error:
            raise Ended(self._teller.fail(7, error, positions=_rows(reader.positions))) from error
        total = sum(map(len, records.values()))
        for one, got in rows.items():
            details += self._partition(one, start[one], got, records[one])
        silent = [_name(one) for one in start if one not in rows]
        details += [Detail(f"not in the answer: {', '.join(silent)}", ERROR)] if silent else []
        text = f"{total:,} record{'' if total == 1 else 's'} of {len(rows)} partition{'' if len(rows) == 1 else 's'}"
        verdict = ERROR if silent else OK if total else NOTE
        return self._teller.tell(
            7, verdict, text, details, positions=_rows(start), records=total,
            high_watermarks=[[*one, got.high] for one, got in rows.items()],
        )  # fmt: skip

    def _partition(self, one: Partition, start: int, got: FetchAnswer, records: list[Polled]) -> list[Detail]:
        lag = max(got.high - start, 0)
        text = f"{_name(one)}: from {start:,}, end {got.high:,}"
        text += f"; {lag:,} to read, {len(records):,} came" if lag else "; nothing to read"
        shown = [Detail(f"  {row.record.offset:,}  {_pair(row.record)}") for row in records[: self._shown]]
        more = len(records) - len(shown)
        return [Detail(text), *shown, *([Detail(f"  … {more:,} more")] if more and self._shown else [])]


def named(partitions: list[Partition]) -> str:
    """orders 0-2, 5; payments 1"""
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    return "; ".join(f"{topic} {numbers(indexes)}" for topic, indexes in topics.items())


def _rows(positions: dict[Partition, int]) -> list[list[str | int]]:
    return [[*one, offset] for one, offset in positions.items()]


def _name(one: Partition) -> str:
    return f"{one[0]}-{one[1]}"


def _pair(record: Record) -> str:
    return f"{_text(record.key)} = {_text(record.value)}"


def _text(data: bytes | None) -> str:
    """Text as it is, else hex; null where there is none."""
    if data is None:
        return "null"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = f"0x{data[: TEXT // 2].hex()}"
        return text if len(data) <= TEXT // 2 else f"{text}… ({len(data):,} bytes)"
    return text if len(text) <= TEXT else f"{text[:TEXT]}… ({len(data):,} bytes)"


def _bounded(details: list[Detail]) -> list[Detail]:
    if len(details) <= SHOWN:
        return details
    return [*details[:SHOWN], Detail(f"… {len(details) - SHOWN} more")]
