"""A batch of exchanges: columns over one buffer, one row per exchange. Every output is made from batches.

Regular exchanges enter as columns (vectorized.py), irregular ones as rows (of_exchanges). batch[row] makes an Exchange
on demand. Where a request or response is missing, its side has start -1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kwire.codec.quality import QUALITIES, QUALITY_CODES
from kwire.session.client_ids import client_ids_at
from kwire.session.equal_bodies import SHORT, EqualBodies
from kwire.session.exchange import REFUSED_VERSION, Exchange, Message
from kwire.wire.columns import Ints, repeat

if TYPE_CHECKING:
    from kwire.session.about import About, Abouts
    from kwire.session.api_versions import Kind
    from kwire.session.connection_info import ConnectionInfo

Mask = NDArray[np.bool_]
NO_TEXT = 0  # the number of the text that is None
SLICE = 1024  # rows that iteration turns into exchanges at once


@dataclass(slots=True, eq=False)
class Side:
    """One message of each exchange. Offsets count in the batch's buffer.

    start: of the size prefix, -1 where there is no message; have: captured bytes, size prefix included; size: the value
    of the size prefix; body: where the body begins, -1 where the header cannot be read; index, position, time,
    last_time, packet, last_packet as in the message record; quality: index into QUALITIES; note: index into the batch's
    texts.
    """

    start: Ints
    have: Ints
    size: Ints
    body: Ints
    index: Ints
    position: Ints
    time: Ints
    last_time: Ints
    packet: Ints
    last_packet: Ints
    quality: Ints
    note: Ints

    @property
    def there(self) -> Mask:
        """Mask of the rows that have a message."""
        there: Mask = self.start >= 0
        return there

    @property
    def end(self) -> Ints:
        """Offsets just behind the captured bytes."""
        return self.start + self.have


@dataclass(slots=True, eq=False)
class ExchangeBatch:
    """Exchanges, one row each; see also Side.

    connection and kind index connections and kinds, where None is an unknown API. client_start, client_length: the
    client id in buffer; length -1 is null. identified: whether correlation_id was read. first_error and errors (their
    count) are the response's. silent: Produce with acks=0; token: bare SASL tokens; guarded: as in Message; refused: an
    ApiVersions response in version 0 (error 35). ending: why there is no response, an index into texts, whose first is
    None. mark_at, mark_packet: where in buffer the bytes of each packet begin, ascending. Caches: made: exchanges by
    row; abouts: Abouts by row; told: Abouts of all rows; named: client ids, with the columns they were read from. rows:
    in a part of a batch, the row numbers in the whole.
    """

    buffer: bytes
    connections: list[ConnectionInfo]
    kinds: list[Kind | None]
    texts: list[str | None]
    connection: Ints
    kind: Ints
    correlation_id: Ints
    identified: Mask
    client_start: Ints
    client_length: Ints
    request: Side
    response: Side
    first_error: Ints
    errors: Ints
    silent: Mask
    token: Mask
    guarded: Mask
    refused: Mask
    ending: Ints
    mark_at: Ints
    mark_packet: Ints
    made: dict[int, Exchange] = field(default_factory=dict)
    abouts: dict[int, About] = field(default_factory=dict)
    told: Abouts | None = None
    rows: list[int] | None = None
    named: tuple[tuple[bytes, Ints, Ints], tuple[list[str | None], Ints]] | None = None

    def __len__(self) -> int:
        return len(self.kind)

    def __iter__(self) -> Iterator[Exchange]:
        for low in range(0, len(self), SLICE):
            for row, values in enumerate(self._values(slice(low, low + SLICE)), low):
                yield self.made.get(row) or self._made(row, *values)

    @property
    def time(self) -> Ints:
        """The time of each exchange's first message, ns since the epoch."""
        return np.where(self.request.there, self.request.time, self.response.time)

    @property
    def packet(self) -> Ints:
        """The number of the packet with each exchange's first byte."""
        return np.where(self.request.there, self.request.packet, self.response.packet)

    @property
    def latency(self) -> Ints:
        """As Exchange.latency, ns; 0 where request or response is missing."""
        both = self.request.there & self.response.there
        return np.where(both, self.response.time - self.request.last_time, 0)

    @property
    def whole(self) -> Mask:
        """Mask of the rows with request and response, both of quality ok."""
        fine = self.request.there & self.response.there & ~self.refused & ~self.token
        whole: Mask = fine & (self.request.quality == 0) & (self.response.quality == 0)
        return whole

    @property
    def failed(self) -> list[int]:
        """The rows with an error or without the response that they should have."""
        rows: list[int] = np.flatnonzero((self.errors > 0) | (~self.response.there & ~self.silent)).tolist()
        return rows

    def count_of(self, quality: str) -> int:
        """How many exchanges have a message of this quality."""
        code = QUALITY_CODES[quality]
        return int(((self.request.quality == code) | (self.response.quality == code)).sum())

    def error_codes(self, row: int) -> tuple[int, ...]:
        """All error codes of a row's response that are not zero, in the order of the fields."""
        response = self[row].response if self.errors[row] else None
        return () if response is None else response.errors

    def client_ids(self) -> tuple[list[str | None], Ints]:
        """The distinct client ids, and for each row its index among them. Cached: do not change it."""
        columns = self.buffer, self.client_start, self.client_length
        if self.named is None or any(old is not new for old, new in zip(self.named[0], columns, strict=True)):
            self.named = columns, client_ids_at(*columns)
        return self.named[1]

    def client_id(self, row: int) -> str | None:
        """The client id of a row."""
        return self._text(int(self.client_start[row]), int(self.client_length[row]))

    def _text(self, begin: int, length: int) -> str | None:
        return None if length < 0 else self.buffer[begin : begin + length].decode("utf-8", "surrogateescape")

    def __getitem__(self, row: int) -> Exchange:
        return self.made.get(row) or self._made(row, *([one.item(row) for one in part] for part in self._parts()))

    def at(self, rows: list[int]) -> Iterator[Exchange]:
        """The exchanges of these rows; faster than one by one."""
        for row, values in zip(rows, self._values(rows), strict=True):
            yield self.made.get(row) or self._made(row, *values)

    def keep(self, rows: list[int], bodies: EqualBodies) -> None:
        """Makes and caches the exchanges of these rows; bodies of short messages are kept once they are decoded."""
        for row, values in zip(rows, self._values(rows), strict=True):
            self.made[row] = self._made(row, *values, bodies=bodies)

    def _parts(self) -> tuple[tuple[Ints, ...], tuple[Ints, ...], tuple[Ints, ...]]:
        """The columns named in COLUMNS, and those named in SIDE for request and response."""
        return columns_of(self), columns_of_side(self.request), columns_of_side(self.response)

    def _values(self, rows: slice | list[int]) -> Iterator[tuple[tuple[int, ...], ...]]:
        """For each of these rows the values of _parts()."""
        lists = ([column[rows].tolist() for column in part] for part in self._parts())
        return zip(*(zip(*part, strict=True) for part in lists), strict=True)

    def _made(
        self, row: int, values: Sequence[int], *sides: Sequence[int], bodies: EqualBodies | None = None
    ) -> Exchange:
        (connection_at, kind_at, correlation_id, identified, client_start, client_length, _, errors, silent, token,
         guarded, refused, ending) = values  # fmt: skip
        connection, kind = self.connections[connection_at], self.kinds[kind_at]
        client = self._text(client_start, client_length)
        messages: list[Message | None] = []
        for name, side in zip(("request", "response"), sides, strict=True):
            start, have, size, body, index, position, time, last_time, packet, last, quality, note = side
            messages.append(None if start < 0 else Message(
                connection, name, index, position, self.buffer[start : start + have], size, time, last_time, packet,
                last, QUALITIES[quality], self.texts[note], self._marks(start, have) if packet != last else (), kind,
                correlation_id if identified else None, client, body - start if body >= 0 else None, (),
                bool(token), REFUSED_VERSION if refused and name == "response" else None, bool(guarded),
                bodies if have <= SHORT else None,
            ))  # fmt: skip
        request, response = messages
        if response is not None and errors:
            response.errors = self._errors(row, response)
        exchange = Exchange(connection, request, response, self.texts[ending], bool(silent), (self.abouts, row))
        if self.told is not None:
            exchange.__dict__["about"] = self.told.values[self.told.which[row]]
        return exchange

    def _errors(self, row: int, response: Message) -> tuple[int, ...]:
        """All error codes that are not zero; only the first one and their number are kept."""
        first, count = int(self.first_error[row]), int(self.errors[row])
        return (first,) if count == 1 else (response.scanned_errors() or (first,) * count)

    def _marks(self, start: int, have: int) -> tuple[tuple[int, int], ...]:
        """(offset in the frame, packet number) of each packet of a frame in several packets."""
        low = max(int(np.searchsorted(self.mark_at, start, "right")) - 1, 0)
        high = int(np.searchsorted(self.mark_at, start + have))
        if high - low < 2:
            return ()
        places, packets = self.mark_at[low:high].tolist(), self.mark_packet[low:high].tolist()
        return tuple((max(place - start, 0), packet) for place, packet in zip(places, packets, strict=True))

    def take(self, rows: Ints | Mask) -> ExchangeBatch:
        """These rows, over the same buffer."""
        return _each(self, lambda column: column[rows])

    def part(self, wanted: Mask) -> ExchangeBatch:
        """These rows, with their row numbers in the whole in rows."""
        kept = self.take(wanted)
        rows = np.flatnonzero(wanted).tolist()
        kept.rows = rows if self.rows is None else [self.rows[row] for row in rows]
        return kept

    def first(self, count: int) -> ExchangeBatch:
        """The first count rows, or all if there are fewer."""
        kept = self.take(np.arange(min(count, len(self))))
        kept.made = {row: exchange for row, exchange in self.made.items() if row < count}
        return kept

    def compact(self) -> ExchangeBatch:
        """The same rows over a buffer with only their bytes."""
        starts = np.concatenate([side.start for side in (self.request, self.response)])
        ends = np.concatenate([side.end for side in (self.request, self.response)])
        there = starts >= 0
        from_, to = starts[there], ends[there]
        old = self.buffer
        buffer = b"".join([old[low:high] for low, high in zip(from_.tolist(), to.tolist(), strict=True)])
        lengths = to - from_
        shift = np.zeros(len(starts), np.int64)
        shift[there] = np.cumsum(lengths) - lengths - from_
        low = np.maximum(np.searchsorted(self.mark_at, from_, "right") - 1, 0)
        counts = np.searchsorted(self.mark_at, to) - low
        counts = np.maximum(counts, 0)
        places = repeat(low - (np.cumsum(counts) - counts), counts) + np.arange(int(counts.sum()))
        marks = np.maximum(self.mark_at[places], repeat(from_, counts)) + repeat(shift[there], counts)
        made = self.take(np.arange(len(self)))
        made.buffer, made.mark_at, made.mark_packet = buffer, marks, self.mark_packet[places]
        for side, moved in ((made.request, shift[: len(self)]), (made.response, shift[len(self) :])):
            side.start = np.where(side.start >= 0, side.start + moved, -1)
            side.body = np.where(side.body >= 0, side.body + moved, -1)
        made.client_start = made.client_start + shift[: len(self)]
        used = np.unique(made.connection)
        made.connections = [made.connections[at] for at in used.tolist()]
        made.connection = np.searchsorted(used, made.connection)
        return made

    def in_order(self) -> ExchangeBatch:
        """Sorted by time, then by packet."""
        time = self.time
        if (time[1:] > time[:-1]).all():
            return self
        return self.take(np.lexsort((self.packet, time)))


def concatenated(parts: Sequence[ExchangeBatch]) -> ExchangeBatch:
    """The rows of all parts, one part after the other; at least one."""
    if len(parts) == 1:
        return parts[0]
    buffer = b"".join(part.buffer for part in parts)
    connections: dict[int, ConnectionInfo] = {}
    kinds: dict[Kind | None, int] = {}
    texts: dict[str | None, int] = {None: NO_TEXT}
    numbers: dict[int, int] = {}
    moved = []
    base = 0
    for part in parts:
        for connection in part.connections:
            if id(connection) not in numbers:
                numbers[id(connection)] = len(numbers)
                connections[id(connection)] = connection
        of_connection = np.array([numbers[id(known)] for known in part.connections], np.int64)
        of_kind = np.array([kinds.setdefault(known, len(kinds)) for known in part.kinds], np.int64)
        of_text = np.array([texts.setdefault(text, len(texts)) for text in part.texts], np.int64)
        moved.append(_moved(part, base, of_connection, of_kind, of_text))
        base += len(part.buffer)
    first = moved[0]
    made = _each(first, lambda column: column)
    for name in COLUMNS + MARKS:
        setattr(made, name, np.concatenate([getattr(part, name) for part in moved]))
    made.request, made.response = (
        Side(*(np.concatenate([getattr(getattr(part, side), name) for part in moved]) for name in SIDE))
        for side in ("request", "response")
    )
    made.told = None
    made.buffer, made.connections, made.kinds, made.texts = buffer, list(connections.values()), list(kinds), list(texts)
    return made


def _moved(part: ExchangeBatch, base: int, connection: Ints, kind: Ints, text: Ints) -> ExchangeBatch:
    """A part with its offsets shifted by base and its indexes mapped to those of the whole."""
    made = part.take(np.arange(len(part)))
    made.connection = connection[made.connection] if len(connection) else made.connection
    made.kind = kind[made.kind] if len(kind) else made.kind
    made.ending = text[made.ending]
    made.client_start = made.client_start + base
    made.mark_at = made.mark_at + base
    for side in (made.request, made.response):
        side.start = np.where(side.start >= 0, side.start + base, -1)
        side.body = np.where(side.body >= 0, side.body + base, -1)
        side.note = text[side.note]
    return made


def _each(batch: ExchangeBatch, change: Any) -> ExchangeBatch:
    """A batch with change applied to every column."""
    sides = (Side(*(change(getattr(side, name)) for name in SIDE)) for side in (batch.request, batch.response))
    values = {name: change(getattr(batch, name)) for name in COLUMNS}
    request, response = sides
    shared = {name: getattr(batch, name) for name in ("buffer", "connections", "kinds", "texts", *MARKS)}
    told = None if batch.told is None else type(batch.told)(batch.told.values, change(batch.told.which))
    return ExchangeBatch(**shared, **values, request=request, response=response, told=told)


SIDE = tuple(column.name for column in fields(Side))
COLUMNS = (
    "connection", "kind", "correlation_id", "identified", "client_start", "client_length", "first_error", "errors",
    "silent", "token", "guarded", "refused", "ending",
)  # fmt: skip
MARKS = ("mark_at", "mark_packet")
columns_of, columns_of_side = attrgetter(*COLUMNS), attrgetter(*SIDE)


def of_exchanges(exchanges: Sequence[Exchange]) -> ExchangeBatch:
    """Single exchanges as a batch, in their order."""
    connections: dict[int, int] = {}
    kinds: dict[Kind | None, int] = {}
    texts: dict[str | None, int] = {None: NO_TEXT}
    data: list[bytes] = []
    marks: list[tuple[int, int]] = []
    rows: list[tuple[Any, ...]] = []
    sides: tuple[list[tuple[int, ...]], list[tuple[int, ...]]] = [], []
    end = 0
    for exchange in exchanges:
        first, response = exchange.first, exchange.response
        client_start, client_length = 0, -1
        for turn, message in enumerate((exchange.request, response)):
            if message is None:
                sides[turn].append(MISSING)
                continue
            if not turn and message.client_id is not None:
                client_start, client_length = end + 14, int.from_bytes(message.data[12:14], "big")
            data.append(message.data)
            marks += [(end + offset, packet) for offset, packet in message.marks] or [(end, message.packet)]
            body = -1 if message.body_at is None else end + message.body_at
            sides[turn].append((
                end, len(message.data), message.size, body, message.index, message.position, message.time,
                message.last_time, message.packet, message.last_packet, QUALITY_CODES[message.quality],
                texts.setdefault(message.note, len(texts)),
            ))  # fmt: skip
            end += len(message.data)
        connection, errors = exchange.connection, response.errors if response is not None else ()
        ident = first.correlation_id
        rows.append((
            connections.setdefault(id(connection), len(connections)), kinds.setdefault(first.api, len(kinds)),
            ident or 0, ident is not None, client_start, client_length, errors[0] if errors else 0, len(errors),
            exchange.silent, first.token, first.guarded or (response is not None and response.guarded),
            response is not None and response.body_version is not None,
            texts.setdefault(exchange.ending, len(texts)),
        ))  # fmt: skip
    columns = np.array(rows, np.int64).reshape(-1, len(COLUMNS)).T
    values: dict[str, Any] = dict(zip(COLUMNS, columns, strict=True))
    for name in ("identified", "silent", "token", "guarded", "refused"):
        values[name] = values[name].astype(bool)
    by_id = {id(exchange.connection): exchange.connection for exchange in exchanges}
    request, response_side = (Side(*np.array(side, np.int64).reshape(-1, len(SIDE)).T) for side in sides)
    at = np.array(marks, np.int64).reshape(-1, 2).T
    return ExchangeBatch(
        b"".join(data), [by_id[known] for known in connections], list(kinds), list(texts), **values, request=request,
        response=response_side, mark_at=at[0], mark_packet=at[1],
    )  # fmt: skip


MISSING = (-1, 0, 0, -1, 0, 0, 0, 0, 0, 0, 0, NO_TEXT)
