"""Chooses the packets of a slice of captures: the wanted exchanges and those that are needed to read them.

Each kept connection keeps its opening and closing packets and its SASL and ApiVersions exchanges. For topic ids, an
exchange that names them is added, of the same connection if possible; for incremental fetches, those that built their
session. Packets next to omitted bytes get a comment that says so (capture/cuts.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from kwire.capture.cuts import WRAP, Cut
from kwire.capture.tls.session import TlsSession
from kwire.schema.keys import FETCH, SASL_AUTHENTICATE
from kwire.session.sasl import IDENTIFYING
from kwire.session.topics import NONE, pairs

if TYPE_CHECKING:
    from kwire.capture.connection import Connection
    from kwire.capture.packet_numbers import PacketFiles
    from kwire.codec.plan import StructPlan
    from kwire.session.api_versions import Kind
    from kwire.session.exchange import Exchange, Message

IDS = ("TopicId", "TopicIds")
MOST_SESSIONS = 10_000
MOST_OF_SESSION = 1000  # most fetches kept that changed one session


class Kept(NamedTuple):
    """A frame: its side, begin and end in the stream (bytes), index, first and last packet."""

    side: int
    position: int
    end: int
    number: int
    first: int
    last: int


class SlicePart:
    """An exchange that may go into the slice: its frames, all their packets, and the topic ids in it."""

    __slots__ = ("frames", "ids", "login", "packets", "talk")

    def __init__(self, talk: SlicedConnection, exchange: Exchange, ids: frozenset[UUID] = frozenset()) -> None:
        self.talk, self.ids = talk, ids
        kind = exchange.first.api
        self.login = exchange.first.token or (kind is not None and kind.key == SASL_AUTHENTICATE)
        self.frames: list[Kept] = []
        packets: set[int] = set()
        client = exchange.connection.client or 0
        for message, side in ((exchange.request, client), (exchange.response, 1 - client)):
            if message is not None:
                end = message.position + 4 + max(message.size, 0)
                self.frames.append(
                    Kept(side, message.position, end, message.index, message.packet, message.last_packet)
                )
                packets.update((message.packet, message.last_packet), (number for _, number in message.marks))
        self.packets = tuple(packets)


class SlicedConnection:
    """A connection: what is kept of it, and which exchanges could be added."""

    def __init__(self, connection: Connection, places: PacketFiles) -> None:
        self.connection, self.places = connection, places
        self.frames: set[Kept] = set()
        self.packets: set[int] = set()
        self.ids: set[UUID] = set()  # topic ids in kept exchanges
        self.identity: list[SlicePart] = []
        self.tellers: list[SlicePart] = []
        self.told: set[UUID] = set()

    def teller(self, ident: UUID) -> SlicePart | None:
        """The first exchange that gives the topic's name."""
        return next((part for part in self.tellers if ident in part.ids), None)

    def keep(self, part: SlicePart) -> bool:
        """Keeps an exchange; returns whether it is new."""
        new = not self.frames.issuperset(part.frames)
        self.frames.update(part.frames)
        self.packets.update(part.packets)
        self.ids |= part.ids
        return new


class Slice:
    """Call add(exchange) for wanted exchanges, beside(exchange) for all others; then finish() and packets(). context:
    number of exchanges added to the wanted ones; logins: exchanges that carry credentials, context_logins: those of
    them that were added. bare: add none. whole: all are wanted."""

    def __init__(self, bare: bool = False, whole: bool = False) -> None:
        self.context = self.logins = self.context_logins = 0
        self._whole, self._bare = whole, bare or whole
        self._talks: dict[Connection, SlicedConnection] = {}
        self._tellers: dict[UUID, SlicePart] = {}  # the first that names the id
        self._sessions: dict[tuple[str, int], list[SlicePart]] = {}
        self._wanted_sessions: dict[tuple[str, int], int] = {}  # how many of their parts to keep
        self._by_id: dict[Kind, bool] = {}

    def add(self, exchange: Exchange) -> None:
        """Takes a wanted exchange."""
        talk = self._talk(exchange)
        part = SlicePart(talk, exchange, frozenset() if self._bare else self._ids(exchange))
        self.logins += part.login
        if self._whole:
            talk.packets.update(part.packets)
            return
        talk.keep(part)
        self.beside(exchange, True)

    def beside(self, exchange: Exchange, wanted: bool = False) -> None:
        """Takes an exchange that others may need."""
        if self._bare:
            return
        kind = exchange.first.api
        key = None if kind is None else kind.key
        if key in IDENTIFYING or exchange.first.token:
            talk = self._talk(exchange)
            talk.identity.append(SlicePart(talk, exchange))
        elif key == FETCH:
            self._fetch(exchange, wanted)
        response = exchange.response
        if response is not None and kind is not None and response.body_at is not None and kind.tells_names:
            self._tells(exchange, response)

    def finish(self) -> None:
        """Chooses the exchanges to add, after all were given."""
        kept = [talk for talk in self._talks.values() if talk.frames]
        for session, count in self._wanted_sessions.items():
            for part in self._sessions.get(session, ())[:count]:
                self.context += part.talk.keep(part)
        for talk in kept:
            for part in talk.identity:
                new = talk.keep(part)
                self.context += new
                self.context_logins += new and part.login
        self.logins += self.context_logins
        kept = [talk for talk in self._talks.values() if talk.frames]
        for talk in kept:
            for ident in sorted(talk.ids - talk.told, key=lambda one: one.int):
                teller = next((other for other in kept if ident in other.told), None)
                found = self._tellers.get(ident) if teller is None else teller.teller(ident)
                if found is not None:
                    self.context += found.talk.keep(found)
            for ident in talk.ids & talk.told:
                found = talk.teller(ident)
                self.context += talk.keep(found) if found is not None else 0

    @property
    def secrets(self) -> list[str]:
        """The TLS secrets of the kept connections, as lines of a key log."""
        sessions = [talk.connection.tls for talk in self._talks.values() if talk.packets]
        lines = [line for one in sessions if isinstance(one, TlsSession) for line in one.secrets]
        return list(dict.fromkeys(lines))

    def packets(self, places: PacketFiles) -> tuple[set[int], dict[int, Cut]]:
        """The packet numbers to keep of a group of captures, and the cuts to note at packets next to omitted bytes."""
        numbers: set[int] = set()
        cuts: dict[int, Cut] = {}
        for talk in self._talks.values():
            if talk.packets and talk.places is places:
                connection = talk.connection
                numbers |= talk.packets
                if isinstance(connection.tls, TlsSession):  # TLS records can only be read from the beginning
                    numbers |= connection.tls.packets
                numbers.update(connection.opening, (number for _, number in connection.closing))
                for side in (0, 1):
                    _mark(talk, side, cuts)
        return numbers, cuts

    def _talk(self, exchange: Exchange) -> SlicedConnection:
        connection = exchange.connection
        talk = self._talks.get(connection.tcp)
        if talk is None:
            talk = self._talks[connection.tcp] = SlicedConnection(connection.tcp, connection.places)
        return talk

    def _tells(self, exchange: Exchange, response: Message) -> None:
        ids = frozenset(ident for _, ident in pairs(response.body()))
        connection = exchange.connection
        talk = self._talks.get(connection.tcp)
        known = talk.told if talk is not None else set()
        if ids <= known:
            return
        talk = self._talk(exchange)
        part = SlicePart(talk, exchange, ids)
        talk.tellers.append(part)
        talk.told |= ids
        for ident in ids:
            self._tellers.setdefault(ident, part)

    def _fetch(self, exchange: Exchange, wanted: bool) -> None:
        """Follows which fetches built a session (KIP-227)."""
        request = exchange.request
        body = request.body() if request is not None else None
        if body is None or "SessionId" not in body:
            return
        broker, session = exchange.connection.ends[1], body["SessionId"]
        if session == NONE:
            answer = exchange.response.body() if exchange.response and body["SessionEpoch"] == 0 else None
            opened = (answer or {}).get("SessionId", NONE)
            if opened and (len(self._sessions) < MOST_SESSIONS or (broker, opened) in self._sessions):
                self._sessions[broker, opened] = [SlicePart(self._talk(exchange), exchange, self._ids(exchange))]
            return
        known = self._sessions.get((broker, session))
        if known is None:
            return
        if (body["Topics"] or body["ForgottenTopicsData"]) and len(known) < MOST_OF_SESSION:
            known.append(SlicePart(self._talk(exchange), exchange, self._ids(exchange)))
        if wanted:
            self._wanted_sessions[broker, session] = len(known)

    def _ids(self, exchange: Exchange) -> frozenset[UUID]:
        """The topic ids in an exchange."""
        kind = exchange.first.api
        if kind is None:
            return frozenset()
        if kind not in self._by_id:
            self._by_id[kind] = kind.supported and any(
                definition is not None and _holds_ids(kind.library.plan_of(definition, kind.version).root)
                for definition in (kind.request, kind.response)
            )
        if not self._by_id[kind]:
            return frozenset()
        bodies = [message.body() for message in (exchange.request, exchange.response) if message is not None]
        return frozenset(ident for body in bodies for ident in _ids(body))


def _mark(talk: SlicedConnection, side: int, cuts: dict[int, Cut]) -> None:
    """Adds the cuts of one stream, by packet number."""
    stream = talk.connection.streams[side]
    encrypted = isinstance(talk.connection.tls, TlsSession)
    if stream.first is None or not talk.frames or encrypted:  # positions inside TLS are not positions in the TCP stream
        return
    end, last = 0, 0
    for frame in sorted((one for one in talk.frames if one.side == side), key=lambda one: one.position):
        unknown = (
            not last and talk.connection.opener is None
        )  # the first frame of a stream that was captured from midstream
        if frame.position > end or unknown:
            if last and last != frame.first:
                cuts[last] = cuts.get(last, Cut())._replace(end=(stream.first + end) % WRAP)
            if last != frame.first:
                begin = (stream.first + frame.position) % WRAP
                cuts[frame.first] = cuts.get(frame.first, Cut())._replace(
                    begin=begin, before=frame.position - end, frame=frame.number, position=frame.position
                )
        end, last = max(end, frame.end), frame.last
    final = stream.position if stream.end is None else stream.end
    if last and end < final:
        cuts[last] = cuts.get(last, Cut())._replace(end=(stream.first + end) % WRAP)
    for where, number in talk.connection.closing:
        if where == side and stream.end is not None and end < stream.end and number not in talk.packets:
            cuts[number] = Cut((stream.first + stream.end) % WRAP, stream.end - end)


def _holds_ids(struct: StructPlan) -> bool:
    slots = (*struct.slots, *struct.tagged.values())
    return any(slot.name in IDS or (slot.struct is not None and _holds_ids(slot.struct)) for slot in slots)


def _ids(value: object) -> Iterator[UUID]:
    if isinstance(value, list):
        for element in value:
            yield from _ids(element)
    elif isinstance(value, dict):
        for name, inner in value.items():
            if name in IDS:
                yield from (one for one in (inner if isinstance(inner, list) else [inner]) if _is_id(one))
            elif isinstance(inner, list | dict):
                yield from _ids(inner)


def _is_id(value: object) -> bool:
    return isinstance(value, UUID) and value.int > 1
