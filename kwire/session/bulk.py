"""The fast path: requests and their answers of many connections at once, as columns.

What is regular in a block of packets, a connection's next requests answered in order by its next responses, is read
here, for all connections together. Everything else (a frame that does not parse, another order, a login, an answer that
is missing) goes back to the conversation, which reads it frame by frame; it also reads what stands before and behind
the regular part. So both ways give the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kwire.capture.streams import Piece
from kwire.codec.scan_columns import scan_columns
from kwire.session.kinds import Kind, Kinds
from kwire.wire.columns import Columns, Ints

if TYPE_CHECKING:
    from kwire.session.conversation import Conversation

PRODUCE = 0
LEAST = 4  # pairs of a connection that are worth it
SPECIAL = (17, 18, 36)  # what says who the client is: the conversation must see it

size_at = Struct(">i").unpack_from
name_of = Struct(">hh").unpack  # key and version


@dataclass(slots=True, eq=False)
class Batch:
    """Exchanges, a row each, whose frames are whole and well-formed. Times and sizes are as in the message record.

    conversation and kind index conversations and kinds; client_start and client_length say where in buffer the client
    id lies (length -1: null); asked and answered, where the bodies begin; first_error and errors are of the response.
    """

    conversations: list[Conversation]
    kinds: list[Kind]
    buffer: bytes
    conversation: Ints
    kind: Ints
    correlation_id: Ints
    client_start: Ints
    client_length: Ints
    asked: Ints
    answered: Ints
    request: Side
    response: Side
    first_error: Ints
    errors: Ints

    def __len__(self) -> int:
        return len(self.kind)


@dataclass(slots=True, eq=False)
class Side:
    """The frames of one direction: start is the offset of the size prefix in the batch's buffer."""

    start: Ints
    size: Ints
    index: Ints
    position: Ints
    time: Ints
    last_time: Ints
    packet: Ints
    last_packet: Ints

    def only(self, chosen: NDArray[np.bool_]) -> Side:
        """The rows that the mask chooses."""
        return Side(*(getattr(self, name)[chosen] for name in Side.__slots__))


@dataclass(slots=True, eq=False)
class _Job:
    """What a conversation offers: the pieces, and the offsets of the frames in them, as many on both sides."""

    conversation: Conversation
    pieces: tuple[Piece, Piece]
    offsets: tuple[Ints, Ints]
    ends: tuple[int, int]


class Bulk:
    """offer() collects, run() reads what was collected. accepts says which kinds need not be seen by a conversation.

    scans: whether bodies are walked over. Without, no error is counted, and a body that is malformed stays where frames
    are regular: that changes nothing else, since pairing rests on sizes, headers and acks alone."""

    def __init__(self, kinds: Kinds, accepts: Callable[[Kind], bool], scans: bool = True) -> None:
        self._kinds, self._accepts, self._scans = kinds, accepts, scans
        self._jobs: list[_Job] = []

    def offer(self, conversation: Conversation, requests: Piece, responses: Piece, max_size: int) -> bool:
        """Takes both pieces, whose first bytes are those of frames; False when there is too little in them."""
        asked = _frames(requests, max_size)
        answered = _frames(responses, max_size) if asked is not None and len(asked) > LEAST else None
        if asked is None or answered is None:
            return False
        pairs = min(len(asked), len(answered)) - 1  # the last offset is the end
        if pairs < LEAST:
            return False
        ends = int(asked[pairs]), int(answered[pairs])
        self._jobs.append(_Job(conversation, (requests, responses), (asked[:pairs], answered[:pairs]), ends))
        return True

    def run(self) -> Batch | None:
        """The exchanges of all conversations that are regular; the others, and all rests, are read by themselves."""
        jobs, self._jobs = self._jobs, []
        if not jobs:
            return None
        counts = np.array([len(job.offsets[0]) for job in jobs])
        owner = np.repeat(np.arange(len(jobs)), counts)
        buffer = b"".join(piece.data for job in jobs for piece in job.pieces)
        data = Columns(buffer)
        requests, responses = _sides(jobs, owner, data)
        batch, fine = self._read(jobs, owner, buffer, data, requests, responses)
        regular = np.bincount(owner[~fine], minlength=len(jobs)) == 0
        for at, (job, good) in enumerate(zip(jobs, regular.tolist(), strict=True)):
            if good and not job.conversation.clients:
                _name_client(batch, at)
            job.conversation.after_bulk(job.pieces, len(job.offsets[0]), job.ends if good else (0, 0))
        if regular.all():
            return batch
        kept = regular[owner]
        if not kept.any():
            return None
        return Batch(
            batch.conversations, batch.kinds, buffer, batch.conversation[kept], batch.kind[kept],
            batch.correlation_id[kept], batch.client_start[kept], batch.client_length[kept], batch.asked[kept],
            batch.answered[kept], requests.only(kept), responses.only(kept), batch.first_error[kept],
            batch.errors[kept],
        )  # fmt: skip

    def _read(
        self, jobs: list[_Job], owner: Ints, buffer: bytes, data: Columns, requests: Side, responses: Side
    ) -> tuple[Batch, NDArray[np.bool_]]:
        """The headers, and what a walk over the bodies says; of each row whether it is as it should be."""
        asked, answered = requests.start, responses.start
        ident = data.u32(asked + 8)
        fine = (ident == data.u32(answered + 4)) & (requests.size >= 10) & (responses.size >= 4)
        name = data.u32(asked + 4)
        client = data.u16(asked + 12)
        client = np.where(client > 0x7FFF, client - 0x10000, client)
        fine &= (client >= -1) & (client <= requests.size - 10)
        which, kind = np.unique(name, return_inverse=True)
        kinds = [self._kinds.of(*name_of(value.to_bytes(4, "big"))) for value in which.tolist()]
        body, answer = asked + 14 + np.maximum(client, 0), answered + 8
        ends = asked + 4 + requests.size, answered + 4 + responses.size
        first, errors = np.zeros(len(kind), np.int64), np.zeros(len(kind), np.int64)
        for number, found in enumerate(kinds):
            rows = np.flatnonzero((kind == number) & fine)
            if not len(rows):
                continue
            request, response = found.request, found.response
            found.asked = True
            unfit = not found.supported or found.key in SPECIAL or not found.request_header
            if unfit or not request or not response or not self._accepts(found):
                fine[rows] = False
                continue
            if found.request_header == 2:
                fine[rows] &= data.u8(body[rows]) == 0
                body[rows] += 1
            if found.response_header == 1:
                fine[rows] &= data.u8(answer[rows]) == 0
                answer[rows] += 1
            if found.key == PRODUCE:
                fine[rows] &= _acks(found.version, data, body[rows]) != 0
            if not self._scans:
                continue
            for plan, scan, starts, limits in (
                (found.plan("request"), found.scan_request, body, ends[0]),
                (found.plan("response"), found.scan_response, answer, ends[1]),
            ):
                scanned = scan_columns(plan, scan, buffer, data, starts[rows], limits[rows])
                fine[rows] &= scanned.ok
            first[rows], errors[rows] = scanned.first, scanned.errors
        ident = np.where(ident > 0x7FFFFFFF, ident - (1 << 32), ident)
        conversations = [job.conversation for job in jobs]
        batch = Batch(
            conversations,
            kinds,
            buffer,
            owner,
            kind,
            ident,
            asked + 14,
            client,
            body,
            answer,
            requests,
            responses,
            first,
            errors,
        )
        return batch, fine


def _name_client(batch: Batch, conversation: int) -> None:
    """Tells a conversation the first client id that its requests name."""
    rows = np.flatnonzero((batch.conversation == conversation) & (batch.client_length >= 0))
    for row in rows[:1].tolist():
        start = int(batch.client_start[row])
        name = batch.buffer[start : start + int(batch.client_length[row])]
        batch.conversations[conversation].clients[name] = name.decode("utf-8", "surrogateescape")


def _frames(piece: Piece, max_size: int) -> Ints | None:
    """The offsets of the whole frames in a piece, and behind them where the last one ends; None when a size is none."""
    begun = _aligned(piece, max_size)
    rest = _followed(piece.data, int(begun[-1]), max_size)
    return None if rest is None else np.concatenate((begun[:-1], np.array(rest, np.int64)))


def _aligned(piece: Piece, max_size: int) -> Ints:
    """The offsets of the first frames, as long as each begins with a packet, which is usual, and of what is behind."""
    data = piece.data
    starts = np.maximum(np.array(piece.starts, np.int64) - piece.position, 0)
    starts = starts[: np.searchsorted(starts, len(data) - 3)]
    if not len(starts) or starts[0]:
        return np.zeros(1, np.int64)
    sizes = np.ndarray((len(data) - 3,), ">u4", data, strides=(1,))[starts].astype(np.int64)
    ends = starts + 4 + sizes
    following = np.searchsorted(starts, ends)
    fits = (sizes > 0) & (sizes <= max_size) & (starts[np.minimum(following, len(starts) - 1)] == ends)
    if fits[:-1].all() and (following[:-1] == np.arange(1, len(starts))).all():
        return starts
    out, at = [0], 0
    while fits[at]:
        at = following[at]
        out.append(at)
    return starts[out]


def _followed(data: bytes, pos: int, max_size: int) -> list[int] | None:
    """As _frames from pos on, one by one."""
    out, length = [pos], len(data)
    append = out.append
    while pos + 4 <= length:
        (size,) = size_at(data, pos)
        if not 0 < size <= max_size:
            return None
        pos += 4 + size
        if pos > length:
            break
        append(pos)
    return out


def _sides(jobs: list[_Job], owner: Ints, data: Columns) -> tuple[Side, Side]:
    """Offsets in the joined buffer, times and packets of all frames of both directions."""
    pieces = [piece for job in jobs for piece in job.pieces]
    lengths = np.array([len(piece.data) for piece in pieces])
    bases = np.cumsum(lengths) - lengths
    positions = np.array([piece.position for piece in pieces])
    marks = np.array([len(piece.starts) for piece in pieces])
    shift = np.repeat(bases - positions, marks)
    begins = np.concatenate([piece.starts for piece in pieces]) + shift
    begins = np.maximum(begins, np.repeat(bases, marks))
    times = np.concatenate([piece.times for piece in pieces]).astype(np.int64)
    numbers = np.concatenate([piece.numbers for piece in pieces]).astype(np.int64)
    rank = np.arange(len(owner)) - np.repeat(np.cumsum(np.bincount(owner)) - np.bincount(owner), np.bincount(owner))
    sides = []
    for turn in (0, 1):
        offset = np.concatenate([job.offsets[turn] for job in jobs])
        base = bases[turn::2][owner]
        start = offset + base
        size = data.u32(start)
        first = np.searchsorted(begins, start, "right") - 1
        last = np.searchsorted(begins, start + size + 3, "right") - 1
        index = rank + np.array([job.conversation.indexes[turn] for job in jobs])[owner]
        position = offset + positions[turn::2][owner]
        sides.append(
            Side(start, size, index, position, times[first], times[last], numbers[first], numbers[last])
        )  # fmt: skip
    return sides[0], sides[1]


def _acks(version: int, data: Columns, body: Ints) -> Ints:
    """The acks of Produce requests; 0 where it cannot be told at a glance."""
    if version >= 9:
        length = data.u8(body)
        found = data.u16(body + 1 + np.maximum(length - 1, 0))
        return np.where(length > 127, 0, found)
    if version >= 3:
        length = data.u16(body)
        return data.u16(body + 2 + np.where(length > 0x7FFF, 0, length))
    return data.u16(body)
