"""Reads the regular exchanges of a block of packets as columns, for thousands of connections at once.

Regular means: complete frames, answered in order by the next responses, as most traffic is. A connection's exchanges
are read up to the first that is not regular (a malformed body, another order, bare SASL tokens, a missing response);
from there its conversation reads frame by frame, until both sides are regular again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from kwire.capture.opened import OpenedConnections, StreamColumns
from kwire.capture.streams import Piece
from kwire.codec.frames import whole_frames
from kwire.codec.scan_columns import Scanned, scan_columns
from kwire.schema import codes
from kwire.schema.keys import API_VERSIONS, PRODUCE, SASL_HANDSHAKE
from kwire.session.acks import UNKNOWN, acks_of
from kwire.session.api_versions import Kind, Kinds
from kwire.session.batch import MISSING, NO_TEXT, SIDE, ExchangeBatch, Side
from kwire.session.exchange import refusal_note
from kwire.session.identity_columns import Software, learn
from kwire.wire.columns import Columns, Ints, places_of, repeat, tally

if TYPE_CHECKING:
    from kwire.session.connection_info import ConnectionInfo

Mask = NDArray[np.bool_]
LEAST_REQUEST = 10  # bytes after the size prefix: key, version, correlation id, client id's length


class Offering(Protocol):
    """A conversation that offers pieces and takes back those that were not read."""

    info: ConnectionInfo

    @property
    def indexes(self) -> list[int]: ...

    def put_back(self, pieces: tuple[list[Piece], list[Piece]]) -> None: ...

    def read_rest(self) -> None: ...

    def resume(
        self, vectorized: Vectorized, pieces: tuple[list[Piece], list[Piece]], taken: tuple[int, int],
        ends: tuple[int, int],
    ) -> None: ...  # fmt: skip


Job = tuple[Offering, list[Piece], list[Piece]]

name_of = Struct(">hh").unpack  # key and version


@dataclass(slots=True, eq=False)
class _Frames:
    """Complete frames, one row each: side (2 * connection, + 1 for responses), start in the buffer, number within the
    side. ends: for each side, where its last frame ends."""

    side: Ints
    start: Ints
    number: Ints
    ends: Ints

    def of(self, turn: int) -> tuple[Ints, Ints, Ints]:
        """Connection, start and number of the requests (turn 0) or responses (1)."""
        chosen = self.side % 2 == turn
        return self.side[chosen] // 2, self.start[chosen], self.number[chosen]


class ExchangesOfOpened(NamedTuple):
    """data: streams of the opened connections, requests and responses alternating; batch: their exchanges, without
    connections yet; taken: shape (connections, 2), requests and responses read; whole: which connections are entirely
    regular; only their exchanges may be used."""

    data: StreamColumns
    batch: ExchangeBatch
    taken: Ints
    whole: Mask


class Vectorized:
    """offer() collects pieces, run() reads them. scans: whether bodies are walked over; without, no errors are counted
    and malformed bodies pass, but pairing is the same: it uses only sizes, headers and acks."""

    def __init__(self, kinds: Kinds, max_size: int, scans: bool = True) -> None:
        self._kinds, self._max_size, self._scans = kinds, max_size, scans
        self._jobs: list[Job] = []
        self._software: Software = {}

    def offer(self, conversation: Offering, requests: list[Piece], responses: list[Piece]) -> None:
        """Takes pieces of both sides, without holes, that begin with a frame."""
        self._jobs.append((conversation, requests, responses))

    def rounds(self) -> Iterator[ExchangeBatch]:
        """The regular exchanges, in rounds. After an irregular one, a conversation reads a few frames and offers the
        rest for the next round, as long as all conversations together offer at least thresholds.round bytes."""
        least = 0
        while sum(len(piece.data) for _, *sides in self._jobs for side in sides for piece in side) > least:
            if (batch := self.run()) is not None:
                yield batch
            least = self._kinds.thresholds.round
        jobs, self._jobs = self._jobs, []
        for conversation, requests, responses in jobs:
            conversation.put_back((requests, responses))
            conversation.read_rest()

    def run(self) -> ExchangeBatch | None:
        """Reads one round; None when nothing was regular."""
        jobs, self._jobs = self._jobs, []
        data = _columns_of([side for job in jobs for side in job[1:]])
        columns = Columns(data.buffer)
        frames = _frames(data, columns, self._max_size, self._kinds.thresholds.streams)
        indexes = np.array([job[0].indexes for job in jobs], np.int64).reshape(-1, 2)
        batch, asked, answered = self._exchanges(indexes, data, columns, frames)
        batch.connections = [job[0].info for job in jobs]
        learn(batch, self._software)
        self._resume(jobs, data, frames, asked, answered)
        return batch if len(batch) else None

    def opened(self, opened: OpenedConnections) -> ExchangesOfOpened:
        """The exchanges of connections that open in a block."""
        data = opened.columns()
        columns = Columns(data.buffer)
        frames = _frames(data, columns, self._max_size, self._kinds.thresholds.streams)
        count = len(opened.connections)
        batch, asked, answered = self._exchanges(np.zeros((count, 2), np.int64), data, columns, frames)
        taken = np.stack((asked, answered), axis=1)
        whole = tally(frames.side, size=2 * count).reshape(-1, 2) == taken
        whole &= (frames.ends == data.base + data.length).reshape(-1, 2)
        return ExchangesOfOpened(data, batch, taken, whole.all(axis=1))

    def named(self, found: ExchangesOfOpened, infos: dict[int, ConnectionInfo]) -> ExchangeBatch | None:
        """The exchanges of the opened connections whose index is in infos; None when there are none."""
        numbers = np.array(sorted(infos), np.int64)
        place = np.full(len(found.whole), -1)
        place[numbers] = np.arange(len(numbers))
        batch = found.batch
        batch.connection = place[batch.connection]
        if (batch.connection < 0).any():
            batch = batch.take(batch.connection >= 0)
        batch.connections = [infos[number] for number in numbers.tolist()]
        learn(batch, self._software)
        return batch if len(batch) else None

    def _exchanges(
        self, indexes: Ints, data: StreamColumns, columns: Columns, frames: _Frames
    ) -> tuple[ExchangeBatch, Ints, Ints]:
        """The regular exchanges, and per connection the number of requests and responses read. indexes: shape
        (connections, 2), how many there were before. The caller sets batch.connections."""
        owner, start, rank = frames.of(0)
        answers, answer_start, _ = frames.of(1)
        size = columns.u32(start)
        fine = size >= LEAST_REQUEST
        which, kind = np.unique(columns.u32(start + 4), return_inverse=True)
        kinds: list[Kind | None] = [self._kinds.of(*name_of(value.to_bytes(4, "big"))) for value in which.tolist()]
        client = columns.u16(start + 12)
        client = np.where(client > 0x7FFF, client - 0x10000, client)
        fine &= (client >= -1) & (client <= size - LEAST_REQUEST)
        body = start + 14 + np.maximum(client, 0)
        silent = np.zeros(len(start), bool)
        for found, rows in zip(kinds, places_of(kind, len(kinds)), strict=True):
            assert found is not None
            rows = rows[fine[rows]]
            found.asked |= len(rows) > 0
            handshake = found.key == SASL_HANDSHAKE and not found.version  # bare tokens follow
            if not found.supported or handshake or not found.request_header or found.response is None:
                fine[rows] = False
                continue
            if found.request_header == 2:
                fine[rows] &= columns.u8(body[rows]) == 0
                body[rows] += 1
            if found.key == PRODUCE:
                acks = acks_of(found.version, columns, body[rows])
                fine[rows] &= acks != UNKNOWN
                silent[rows] = acks == 0
        # the n-th request that wants a response is answered by the n-th response
        wanting = np.cumsum(~silent) - ~silent
        first = np.searchsorted(owner, np.arange(len(indexes)))
        before = np.append(wanting, 0)[np.minimum(first, len(wanting))]
        turn = wanting - before[owner]
        counts = tally(answers, size=len(indexes))
        answered = ~silent & (turn < counts[owner])
        fine &= answered | silent
        offset = np.cumsum(counts) - counts
        place = np.append(answer_start, 0)[np.where(answered, offset[owner] + turn, -1)]
        fine &= silent | (columns.u32(start + 8) == columns.u32(place + 4))
        kept = self._prefix(owner, rank, fine, len(indexes))
        batch = _rows(indexes, data, columns, owner, start, rank, place, answered, turn, kept)
        batch.kinds, batch.kind, batch.silent = kinds, kind[kept], silent[kept]
        batch.client_start, batch.client_length = start[kept] + 14, client[kept]
        batch.request.body = body[kept]
        fit = self._bodies(batch, columns)
        if not fit.all():
            owner, rank = owner[kept], rank[kept]
            still = self._prefix(owner, rank, fit, len(indexes))
            batch = batch.take(still)
        connection = batch.connection
        taken = tally(connection, size=len(indexes))
        return batch, taken, tally(connection, batch.response.there, len(indexes)).astype(np.int64)

    @staticmethod
    def _prefix(owner: Ints, rank: Ints, fine: Mask, count: int) -> Mask:
        """Mask of the rows of each connection before its first row that is not fine."""
        cut = np.full(count, 1 << 62)
        bad = np.flatnonzero(~fine)
        np.minimum.at(cut, owner[bad], rank[bad])
        kept: Mask = rank < cut[owner]
        return kept

    def _bodies(self, batch: ExchangeBatch, columns: Columns) -> Mask:
        """Walks over the bodies and fills in errors; returns a mask of the rows whose bodies are well-formed."""
        fit = np.ones(len(batch), bool)
        response = batch.response
        for kind, rows in zip(batch.kinds, places_of(batch.kind, len(batch.kinds)), strict=True):
            assert kind is not None
            if not len(rows):
                continue
            there = rows[response.there[rows]]
            response.body[there] = response.start[there] + 8 + kind.response_header
            fit[there] &= response.size[there] >= 4 + kind.response_header
            if kind.response_header:
                fit[there] &= columns.u8(response.start[there] + 8) == 0
            plain = there
            if kind.key == API_VERSIONS and kind.version:
                refused = columns.u16(response.body[there]) == codes.UNSUPPORTED_VERSION
                plain = there[~refused]
                self._refused(batch, columns, there[refused], kind, fit)
            if not self._scans:
                continue
            fit[rows] &= self._scanned(batch, columns, kind, rows, "request").ok
            if len(plain):
                scanned = self._scanned(batch, columns, kind, plain, "response")
                fit[plain] &= scanned.ok
                batch.first_error[plain], batch.errors[plain] = scanned.first, scanned.errors
        return fit

    def _scanned(self, batch: ExchangeBatch, columns: Columns, kind: Kind, rows: Ints, name: str) -> Scanned:
        """Scans the bodies of one side of rows of one kind."""
        side, scan = (batch.request, kind.scan_request) if name == "request" else (batch.response, kind.scan_response)
        few = kind.thresholds.scans
        return scan_columns(kind.plan(name), scan, batch.buffer, columns, side.body[rows], side.end[rows], few)

    def _refused(self, batch: ExchangeBatch, columns: Columns, rows: Ints, kind: Kind, fit: Mask) -> None:
        """Scans ApiVersions responses with error 35, which are in version 0 (KIP-511)."""
        if not len(rows):
            return
        scanned = self._scanned(batch, columns, self._kinds.of(API_VERSIONS, 0), rows, "response")
        fit[rows] &= scanned.ok
        batch.first_error[rows], batch.errors[rows] = scanned.first, scanned.errors
        batch.refused[rows] = True
        batch.texts.append(refusal_note(kind.version))
        batch.response.note[rows] = len(batch.texts) - 1

    def _resume(self, jobs: list[Job], data: StreamColumns, frames: _Frames, asked: Ints, answered: Ints) -> None:
        """Lets each conversation go on behind what was read of it."""
        ends = []
        for turn, taken in ((0, asked), (1, answered)):
            owner, start, number = frames.of(turn)
            end = frames.ends[turn::2].copy()
            rest = number == taken[owner]  # the first frame that was not read
            end[owner[rest]] = start[rest]
            ends.append((end - data.base[turn::2]).tolist())
        whole = zip(jobs, asked.tolist(), answered.tolist(), *ends, strict=True)
        for (conversation, requests, responses), sent, got, first, second in whole:
            conversation.resume(self, (requests, responses), (sent, got), (first, second))


def _columns_of(sides: list[list[Piece]]) -> StreamColumns:
    """Pieces as columns; sides alternate between requests and responses."""
    pieces = [piece for side in sides for piece in side]
    length = np.array([sum(len(piece.data) for piece in side) for side in sides], np.int64)
    position = np.array([side[0].position if side else 0 for side in sides], np.int64)
    sizes = np.array([len(piece.data) for piece in pieces], np.int64)
    ends = np.cumsum(sizes)
    shift = ends - sizes - np.array([piece.position for piece in pieces], np.int64)
    counts = np.array([len(piece.starts) for piece in pieces], np.int64)
    total = int(counts.sum())

    def column(name: str) -> Ints:
        return np.fromiter(chain.from_iterable(getattr(piece, name) for piece in pieces), np.int64, total)

    begins = np.maximum(column("starts") + repeat(shift, counts), repeat(ends - sizes, counts))
    buffer, base = b"".join([piece.data for piece in pieces]), np.cumsum(length) - length
    return StreamColumns(buffer, base, length, position, begins, column("times"), column("numbers"))


def _rows(
    indexes: Ints, data: StreamColumns, columns: Columns, owner: Ints, start: Ints, rank: Ints, place: Ints,
    answered: Mask, turn: Ints, kept: Mask,
) -> ExchangeBatch:  # fmt: skip
    """The batch of the kept rows; kinds, client ids and bodies are set by the caller."""
    owner, start, rank, place, turn = owner[kept], start[kept], rank[kept], place[kept], turn[kept]
    answered = answered[kept]
    count = len(owner)

    def side(which: int, start: Ints, number: Ints, there: Mask) -> Side:
        size = columns.u32(start)
        first = np.searchsorted(data.mark_at, start, "right") - 1
        last = np.searchsorted(data.mark_at, start + size + 3, "right") - 1
        piece = owner * 2 + which
        found = Side(
            start, size + 4, size, start.copy(), number + indexes[:, which][owner],
            start - data.base[piece] + data.position[piece], data.mark_time[first], data.mark_time[last],
            data.mark_packet[first], data.mark_packet[last], np.zeros(count, np.int64), np.full(count, NO_TEXT),
        )  # fmt: skip
        if there.all():
            return found
        return Side(*(np.where(there, getattr(found, name), none) for name, none in zip(SIDE, MISSING, strict=True)))

    ident = columns.u32(start + 8)
    zeros, none = np.zeros(count, np.int64), np.zeros(count, bool)
    return ExchangeBatch(
        data.buffer, [], [], [None], owner, zeros,
        np.where(ident > 0x7FFFFFFF, ident - (1 << 32), ident), ~none, zeros, zeros,
        side(0, start, rank, ~none), side(1, place, turn, answered), zeros.copy(), zeros.copy(), none, none,
        none.copy(), none.copy(), zeros, data.mark_at, data.mark_packet,
    )  # fmt: skip


def _frames(data: StreamColumns, columns: Columns, max_size: int, few: int) -> _Frames:
    """The complete frames of all sides, up to an impossible size: while more than few sides have a next frame, these
    are found together, then side by side."""
    at, end = data.base.copy(), data.base + data.length
    active = np.flatnonzero(end - at >= 4)
    places, sides = [], []
    while len(active) > few:
        here = at[active]
        size = columns.u32(here)
        behind = here + 4 + size
        whole = (size > 0) & (size <= max_size) & (behind <= end[active])
        active, here, behind = active[whole], here[whole], behind[whole]
        places.append(here)
        sides.append(active)
        at[active] = behind
        active = active[end[active] - behind >= 4]
    for one in active.tolist():
        found, at[one] = whole_frames(data.buffer, int(at[one]), int(end[one]), max_size)
        places.append(np.array(found, np.int64))
        sides.append(np.full(len(found), one))
    side = np.concatenate([np.zeros(0, np.int64), *sides])
    start = np.concatenate([np.zeros(0, np.int64), *places])
    order = np.argsort(start)
    side, start = side[order], start[order]
    first = np.searchsorted(side, np.arange(len(at)))
    return _Frames(side, start, np.arange(len(side)) - first[side], at)
