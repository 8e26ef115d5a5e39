"""A part: the piece of a connection that lies in one split, the state at its ends, and whether it continues another
part.

A part is accepted only if it continues exactly: its first bytes are the next ones of both streams, the frames in its
head end exactly where its own reading begins, and its responses answer exactly the open requests. Then the conversation
takes over the state in which the part ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from struct import Struct
from typing import Any, NamedTuple
from uuid import UUID

from kwire.analyze.client import Client
from kwire.capture.connection import Connection
from kwire.capture.streams import Piece, Stream
from kwire.capture.tcp import Key
from kwire.codec.frames import MAX_SIZE, whole_frames
from kwire.codec.quality import Quality
from kwire.session.acks import is_silent
from kwire.session.api_versions import Kinds
from kwire.session.connection_info import ConnectionInfo
from kwire.session.conversation import Conversation
from kwire.session.exchange import Exchange, Message
from kwire.session.framing import Partial, Raw
from kwire.session.messages import read_request
from kwire.session.pieces import joined
from kwire.session.resting import Rest
from kwire.session.sasl import IDENTIFYING, Login
from kwire.session.twins import NOTHING, Head

header_at, id_at = Struct(">HH").unpack_from, Struct(">i").unpack_from


class Flow(NamedTuple):
    """A stream at the end of a part. position and end count bytes from its first byte in the part; first: that byte's
    sequence number; frames: its framer's state; number: frames read."""

    first: int | None
    syn: int | None
    next: int | None
    position: int
    end: int | None
    repeated: int
    frames: Partial
    number: int


class PartExit(NamedTuple):
    """The state at the end of a part: TCP, the client's identity, the open requests with their indexes. flows: the
    client's, then the broker's."""

    flows: tuple[Flow, Flow]
    opener: int | None  # 0: the client
    first_time: int
    last_time: int
    segments: int
    fins: tuple[bool, bool]
    reset: bool
    fin: int | None  # the packets with the first FIN and the first RST
    rst: int | None
    opening: list[int]
    opened_at: list[int]
    open: list[tuple[int, Raw]]
    exchanges: int
    identity: tuple[str | None, ...]
    client_ids: dict[bytes, str]
    login: Login


@dataclass(slots=True)
class ConnectionPart:
    """A connection in a split. opened: its SYN is in the split. key: from the client to the broker. block, number:
    block and packet number of its first segment. head: for both streams the bytes before the first request that the
    split reads and before its response. ordinal: its number in the split. turn: the first packet of its block with
    these endpoints. kinds: API keys and versions asked, with the block of the first. far: bytes left in the file
    (remote_bytes.py). heads: of both streams, as in ConnectionInfo; twin: it is a second recording of a connection in
    the split, and no frames were read."""

    key: Key
    opened: bool
    block: int
    number: int
    head: tuple[Piece | None, Piece | None]
    exit: PartExit
    ordinal: int = 0
    turn: int = 0
    kinds: dict[tuple[int, int], int] = field(default_factory=dict)
    clients: list[Client] = field(default_factory=list)
    names: dict[UUID, str] = field(default_factory=dict)
    far: list[Any] = field(default_factory=list)
    final: bool = False
    heads: tuple[Head, Head] = (NOTHING, NOTHING)
    twin: bool = False


State = tuple[Any, ...]  # of a connection at rest, by state_at_rest
Whose = tuple[tuple[str | None, ...], tuple[tuple[bytes, str], ...], Login]  # identity, client ids, login


class Edge(NamedTuple):
    """The state of a connection that the next part must match: for the client's and the broker's stream the next
    sequence number, the SYN's, and the bytes of an incomplete frame; the open correlation ids; whether it was closed;
    whether it is a twin, of which frames do not matter."""

    nexts: tuple[int | None, int | None]
    syns: tuple[int | None, int | None]
    partial: tuple[bytes, bytes]
    open: list[int | None]
    closed: bool
    twin: bool = False


def edge_of(conversation: Conversation, side: int) -> Edge | None:
    """The edge of a conversation whose client should be this side; None when it is not regular, so that parts cannot
    continue it."""
    connection, client, pairing = conversation.connection, conversation.info.client, conversation.pairing
    if conversation.info.twin_of:
        return _edge_of_twin(connection, side)
    if client != side or conversation.info.verdict or pairing.early or conversation.info.login.active:
        return None
    streams = connection.streams[client], connection.streams[1 - client]
    partials = conversation.requests.partial(), conversation.responses.partial()
    if connection.finished or any(stream.held or stream.pieces for stream in streams):
        return None
    if partials[0] is None or partials[1] is None or any(exchange.first.token for exchange in pairing.open):
        return None
    return Edge(
        (streams[0].next, streams[1].next), (streams[0].syn, streams[1].syn), (partials[0].parts, partials[1].parts),
        [exchange.correlation_id for exchange in pairing.open],
        connection.reset or connection.fins > 0,
    )  # fmt: skip


def _edge_of_twin(connection: Connection, client: int) -> Edge | None:
    streams = connection.streams[client], connection.streams[1 - client]
    if connection.finished or any(stream.held for stream in streams):
        return None
    return Edge(
        (streams[0].next, streams[1].next), (streams[0].syn, streams[1].syn), (b"", b""), [],
        connection.reset or connection.fins > 0, True,
    )  # fmt: skip


def edge_behind(before: Edge | None, part: ConnectionPart) -> Edge:
    """The edge at the end of a part that continues the edge before."""
    exit = part.exit
    syns = tuple(flow.syn for flow in exit.flows) if part.opened or before is None else before.syns
    return Edge(
        (exit.flows[0].next, exit.flows[1].next), (syns[0], syns[1]),
        (exit.flows[0].frames.parts, exit.flows[1].frames.parts),
        [id_at(raw.data, 8)[0] for _, raw in exit.open], exit.reset or any(exit.fins),
        part.twin if part.opened or before is None else before.twin,
    )  # fmt: skip


def follows(edge: Edge, part: ConnectionPart, kinds: Kinds, max_size: int = MAX_SIZE) -> bool:
    """Whether the part, which has no SYN, continues exactly at the edge. max_size: of frames, bytes."""
    if edge.closed or edge.nexts != tuple(flow.first for flow in part.exit.flows):
        return False
    if edge.twin:
        return True
    asked, answered = (
        _frames(before + (b"" if piece is None else piece.data), max_size)
        for before, piece in zip(edge.partial, part.head, strict=True)
    )
    if asked is None or answered is None:
        return False
    wanted = list(edge.open)
    for data in asked:
        if len(data) < 14 or header_at(data, 4)[0] in IDENTIFYING:
            return False
        if not _silent(data, kinds):
            wanted.append(id_at(data, 8)[0])
    return all(len(data) >= 8 for data in answered) and wanted == [id_at(data, 4)[0] for data in answered]


def _silent(data: bytes, kinds: Kinds) -> bool:
    if header_at(data, 4)[0]:
        return False
    nobody: Any = None
    message = Message(nobody, "request", 0, 0, data, len(data) - 4, 0, 0, 0, 0, Quality.OK, None, ())
    read_request(message, kinds, {})
    return is_silent(message.api, data, message.body_at)


def _frames(data: bytes, max_size: int) -> list[bytes] | None:
    """The frames that make up the bytes; None when they do not end with a complete frame."""
    found, end = whole_frames(data, 0, len(data), max_size)
    return [data[low:high] for low, high in pairwise([*found, end])] if end == len(data) else None


def exit_of(conversation: Conversation) -> PartExit | None:
    """The state of a conversation; None when it is not regular."""
    client = conversation.info.client
    partials = conversation.requests.partial(), conversation.responses.partial()
    if client is None or partials[0] is None or partials[1] is None or conversation.pairing.early:
        return None
    if conversation.info.login.token_after is not None or conversation.info.login.active:
        return None
    if any(
        exchange.correlation_id is None for exchange in conversation.pairing.open
    ):  # its response could not be matched
        return None
    waiting = [(exchange.first.index, _raw(exchange.first)) for exchange in conversation.pairing.open]
    return _exit(conversation.info, (partials[0], partials[1]), conversation.indexes, waiting)


def exit_at_rest(rest: Rest) -> PartExit | None:
    """As exit_of, for a connection at rest, which its client opened."""
    if rest.info.login.active:
        return None
    asked, answered = (
        Partial(end, taken, b"", 0, (0, 0), []) for end, taken in zip(rest.ends, rest.taken, strict=True)
    )
    return _exit(rest.info, (asked, answered), rest.taken, [])


def state_at_rest(rest: Rest, block: int, number: int, turn: int, ordinal: int, client: Whose) -> State:
    """What part_of_state needs for the part of a connection at rest, in plain values. client: who its client is."""
    info, tcp = rest.info, rest.info.tcp
    return (
        tcp.key, block, number, turn, ordinal, info.heads, client, tcp.first_time, tcp.last_time, tcp.segments,
        tcp.fins, tcp.reset, tcp.fin, tcp.rst, tcp.opening, tcp.opened_at, info.exchanges,
        *(
            (stream.first, stream.syn, stream.next, stream.position, stream.end, stream.repeated, end, taken)
            for stream, end, taken in zip(tcp.streams, rest.ends, rest.taken, strict=True)
        ),
    )  # fmt: skip


def part_of_state(state: State) -> ConnectionPart:
    """The part of a connection that its client opened, and that ended at rest."""
    key, block, number, turn, ordinal, heads, (identity, clients, login), first_time, last_time, segments = state[:10]
    fins, reset, fin, rst, opening, opened_at, exchanges, *streams = state[10:]
    asked, answered = (
        Flow(first, syn, following, position, end, repeated, Partial(at, taken, b"", 0, (0, 0), []), taken)
        for first, syn, following, position, end, repeated, at, taken in streams
    )
    exit = PartExit(
        (asked, answered), 0, first_time, last_time, segments, (bool(fins & 1), bool(fins & 2)), reset, fin, rst,
        opening, opened_at, [], exchanges, identity, dict(clients), login,
    )  # fmt: skip
    return ConnectionPart(key, True, block, number, (None, None), exit, ordinal, turn, final=True, heads=heads)


def exit_of_twin(info: ConnectionInfo) -> PartExit | None:
    """As exit_of, for a second recording of a connection, of which no frames are read."""
    none = Partial(0, 0, b"", 0, (0, 0), [])
    return _exit(info, (none, none), (0, 0), [])


def _exit(
    info: ConnectionInfo, partials: tuple[Partial, Partial], counts: Sequence[int], waiting: list[tuple[int, Raw]]
) -> PartExit | None:
    connection, (client, broker) = info.tcp, info.sides
    streams = connection.streams[client], connection.streams[broker]
    if any(stream.held or stream.pieces for stream in streams):
        return None
    asked, answered = (
        Flow(stream.first, stream.syn, stream.next, stream.position, stream.end, stream.repeated, partial, count)
        for stream, partial, count in zip(streams, partials, counts, strict=True)
    )
    return PartExit(
        (asked, answered), None if connection.opener is None else connection.opener ^ client, connection.first_time,
        connection.last_time, connection.segments,
        (bool(connection.fins >> client & 1), bool(connection.fins >> broker & 1)), connection.reset, connection.fin,
        connection.rst, list(connection.opening), list(connection.opened_at), waiting, info.exchanges,
        info.identity.said, dict(info.clients), info.login,
    )  # fmt: skip


def is_over(part: ConnectionPart) -> bool:
    """Whether it has its SYN, no open requests and no incomplete frames."""
    return part.opened and not part.exit.open and not any(flow.frames.parts for flow in part.exit.flows)


def _raw(message: Message) -> Raw:
    return Raw(
        message.position, message.data, message.size, message.time, message.last_time, message.packet,
        message.last_packet, Quality.OK, None, message.marks,
    )  # fmt: skip


def join(conversation: Conversation, part: ConnectionPart, packets: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Continues the conversation with a part: reads the head, which may complete exchanges, then takes over the part's
    final state. packets: number before the split. Returns the streams' positions where the part begins and the frame
    indexes where its own reading begins, with which the split numbers its frames."""
    connection, client = conversation.connection, conversation.info.client
    assert client is not None
    streams = connection.streams[client], connection.streams[1 - client]
    bases = streams[0].position, streams[1].position
    heads = [NOTHING if base else head for base, head in zip(bases, part.heads, strict=True)]
    conversation.compare((heads[client], heads[1 - client]))
    for stream, piece in zip(streams, part.head, strict=True):
        if piece is not None and piece.data:
            numbers = [number + packets for number in piece.numbers]
            stream.extend(piece.data, [start + stream.position for start in piece.starts], piece.times, numbers)
    conversation.pump()
    indexes = conversation.indexes[0], conversation.indexes[1]
    take_segments(connection, client, part, bases, packets)
    take_frames(conversation, part, bases, packets)
    return bases, indexes


def take_segments(
    connection: Connection, client: int, part: ConnectionPart, bases: tuple[int, int], packets: int
) -> None:
    """Sets a connection to the state at the part's end. client: its side; bases: stream positions where the part
    begins; packets: number before the split."""
    exit = part.exit
    for turn, (flow, base) in enumerate(zip(exit.flows, bases, strict=True)):
        stream: Stream = connection.streams[client ^ turn]
        stream.next, stream.position = flow.next, base + flow.position
        stream.pieces = []
        stream.repeated += flow.repeated
        if part.opened:
            stream.first, stream.syn = flow.first, flow.syn
        if flow.end is not None:
            stream.end = base + flow.end
        connection.fins |= exit.fins[turn] << (client ^ turn)
    connection.reset |= exit.reset
    if connection.fin is None and exit.fin is not None:
        connection.fin = exit.fin + packets
    if connection.rst is None and exit.rst is not None:
        connection.rst = exit.rst + packets
    connection.first_time = min(connection.first_time, exit.first_time) if connection.segments else exit.first_time
    connection.last_time = max(connection.last_time, exit.last_time)
    connection.segments += exit.segments
    if part.opened:
        connection.opening = [number + packets for number in exit.opening]
        connection.opened_at = list(exit.opened_at)


def take_frames(conversation: Conversation, part: ConnectionPart, bases: tuple[int, int], packets: int) -> None:
    """Sets the conversation, whose client is known, to the state at the part's end. bases, packets: as in
    take_segments."""
    exit = part.exit
    for flow, base, framer in zip(exit.flows, bases, (conversation.requests, conversation.responses), strict=True):
        partial = flow.frames
        framer.resume(Partial(
            base + partial.position, framer.frames + partial.frames, partial.parts, partial.need,
            (partial.first[0], partial.first[1] + packets), [(at, number + packets) for at, number in partial.marks],
        ))  # fmt: skip
    conversation.info.exchanges += exit.exchanges
    if part.opened:
        conversation.info.identity.take(exit.identity)
        conversation.info.login = exit.login
    elif not exit.login.fresh:
        conversation.info.login.passed()
    for name, text in exit.client_ids.items():
        conversation.info.clients.setdefault(name, text)
    base, first = bases[0], conversation.indexes[0]
    for index, raw in exit.open:
        conversation.indexes[0] = first + index
        there = raw._replace(
            position=base + raw.position, packet=raw.packet + packets, last_packet=raw.last_packet + packets,
            marks=tuple((at, number + packets) for at, number in raw.marks),
        )  # fmt: skip
        conversation.pairing.asked(Exchange(conversation.info, conversation.messages.request(there)))
    conversation.indexes[0] = first + exit.flows[0].number
    conversation.indexes[1] += exit.flows[1].number


def head_of(pieces: list[Piece], position: int) -> Piece | None:
    """The bytes of the pieces before the position."""
    if not pieces:
        return None
    piece = joined(pieces)
    kept = [at for at, start in enumerate(piece.starts) if start < position]
    return Piece(
        piece.position, piece.data[: position - piece.position], [piece.starts[at] for at in kept],
        [piece.times[at] for at in kept], [piece.numbers[at] for at in kept],
    )  # fmt: skip
