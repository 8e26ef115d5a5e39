"""One TLS connection: its two directions, what they say to each other, and whether its secrets are known.

Until it is certain that something can be decrypted, the encrypted pieces are kept: a connection without keys is handed
on as it came. Keys that may still come are waited for, within bounds.
"""

from __future__ import annotations

from kwire.capture.streams import Piece
from kwire.capture.tls import handshake
from kwire.capture.tls.direction import Direction
from kwire.capture.tls.direction_state import DirectionState
from kwire.capture.tls.facts import TlsFacts
from kwire.capture.tls.handshake import VERSION_NAMES
from kwire.capture.tls.header import APPLICATION, HANDSHAKE
from kwire.capture.tls.keylog import MASTER, KeyLog
from kwire.capture.tls.negotiation import Negotiation, Resumable

WAITING, FLOWING, SEALED = "waiting", "flowing", "sealed"
HELD = 1 << 20  # bytes of a connection that wait for its keys
MOST_NEGOTIATIONS = 1000
MIDSTREAM = "begun before the capture, or its first packets are missing: the handshake is not there"

Both = tuple[list[Piece], list[Piece]]


class TlsSession:
    """take(new) gives what travelled inside, or the encrypted pieces where that cannot be known.

    client: the index of the client's side. why: why nothing, or nothing more, was decrypted. waits: keys may come."""

    def __init__(self, log: KeyLog, resumable: Resumable, client: int, ledger: bool = False) -> None:
        self.log, self.resumable, self.client = log, resumable, client
        self.facts = TlsFacts()
        self.state = WAITING
        self.why: str | None = None
        self.silent = False  # its keys were there, and nothing was said inside
        self.waits = log.growing
        self.directions = Direction(self, client == 1), Direction(self, client == 0)
        self._raw: Both = [], []
        self._held = 0
        self._watching = True
        self._negotiations = [Negotiation()]
        self._finished: set[bool] = set()
        self.packets: set[int] = set()  # that carry it, where the ledger is kept
        self._noted = ledger
        if ledger:
            for direction in self.directions:
                direction.inside.ledger = []

    @property
    def decrypted(self) -> bool:
        """Whether what travelled inside is shown."""
        return self.state == FLOWING

    @property
    def encrypted(self) -> bool:
        """Whether application data was, or may have been, sent that cannot be decrypted."""
        return self.state != FLOWING and not self.silent and (self.facts.version is not None or self.why == MIDSTREAM)

    @property
    def held(self) -> int:
        """The number of bytes that wait for keys."""
        return self._held + sum(direction.have for direction in self.directions)

    @property
    def lacks_key(self) -> bool:
        """Whether it waits for its keys."""
        return self.state != SEALED and any(direction.lacks == "key" for direction in self.directions)

    @property
    def no_key(self) -> str:
        """What to look for in the key log."""
        return f"no key for client random {self.facts.client_random.hex()}"

    @property
    def secrets(self) -> list[str]:
        """All secrets that decrypt it, as lines of a key log."""
        found = [one for one in self._negotiations if one.client is not None]
        lines = [line for one in found if one.client is not None for line in self.log.lines_of(one.client.random)]
        for one in found:
            if one.client is not None and one.master is not None:
                lines.append(f"{MASTER} {one.client.random.hex()} {one.master.hex()}")
        return list(dict.fromkeys(lines))

    def seal(self, why: str) -> None:
        """Marks the connection as one that cannot be decrypted."""
        self.state, self.why = SEALED, self.why or why
        self._watching = bool(self.facts.began)

    # ------------------------------------------------------------ pieces

    def take(self, new: Both) -> Both:
        """Adds what the streams got; gives what is to be handed on of both."""
        if self._noted:
            self.packets.update(number for pieces in new for piece in pieces for number in piece.numbers)
        if self.state == WAITING:
            for side in (0, 1):
                self._raw[side].extend(new[side])
                self._held += sum(len(piece.data) for piece in new[side])
        self._watching &= self.state != SEALED or (not self.facts.done and self.held < HELD)
        if self._watching:
            for side in (0, 1):
                self.directions[side].feed(new[side])
        return self.go_on(new if self.state == SEALED else ([], []))

    def go_on(self, sealed: Both = ([], [])) -> Both:
        """Reads on, as far as keys are known by now. sealed: what is handed on as it is when that was known before."""
        before = self.state
        while any(self.directions[side].advance() for side in (self.client, 1 - self.client)):
            pass
        if before == SEALED:
            for direction in self.directions:
                direction.take()
            return sealed
        if self.state == FLOWING or any(piece.data for one in self.directions for piece in one.inside.out):
            if self.why is None:
                self.why = next((one.broken for one in self.directions if one.broken), None)
            self.state, self._raw, self._held = FLOWING, ([], []), 0
            return self.directions[0].take(), self.directions[1].take()
        broken = next((direction.broken for direction in self.directions if direction.broken), None)
        if broken:
            self.seal(broken)
        elif self.held > HELD:
            self.seal(self.no_key if self.lacks_key else "the handshake is not whole")
        return self._released() if self.state == SEALED else ([], [])

    def give_up_waiting(self) -> Both:
        """Gives up waiting for keys."""
        self.waits = False
        return self.go_on()

    def finish(self) -> Both:
        """Ends the connection: no more bytes will come."""
        self.waits = False
        found = self.go_on()
        if self.state != WAITING:
            return found
        if any(direction.wrong and not direction.opened for direction in self.directions):
            self.seal(self.directions[0].misfit)
        elif any(direction.lacks == "hello" for direction in self.directions):
            self.seal("the handshake is not whole: packets of it are missing or cut")
        else:  # it ended before anybody said anything
            self.silent = self.facts.done > 0 and not self.lacks_key
            self.state = SEALED
        return self._released()

    def _released(self) -> Both:
        raw, self._raw, self._held = self._raw, ([], []), 0
        return raw

    # ------------------------------------------------------------ what directions ask and say

    def negotiation(self, direction: DirectionState) -> Negotiation:
        """The handshake in which the direction is, or which it has done last."""
        return self._negotiations[max(direction.hellos - 1, 0)]

    def agreed(self, direction: DirectionState) -> Negotiation | None:
        """The same, once both sides have sent their hello."""
        found = self.negotiation(direction)
        return found if found.client is not None and found.server is not None else None

    def cannot(self, why: str) -> None:
        """Takes note that a direction cannot be read any further."""
        self.why = self.why or why
        if self.state == WAITING:
            self.seal(why)

    def changed(self, direction: DirectionState, agreed: Negotiation) -> None:
        """A direction of TLS 1.2 changes to the keys that were agreed on."""
        if direction.by_server and agreed is self._negotiations[0]:
            self.facts.resumed = not agreed.full

    def sealed_record(self, direction: DirectionState, kind: int, time: int) -> None:
        """A record without its keys: the first ones tell when the handshake was over."""
        modern = self.negotiation(direction).modern
        if modern and kind == APPLICATION and not direction.by_server and not self.facts.early_data:
            self.facts.done = self.facts.done or time
        elif not modern and kind == HANDSHAKE:
            self._done(direction, time)

    def _done(self, direction: DirectionState, time: int) -> None:
        self._finished.add(direction.by_server)
        if len(self._finished) == 2 and not self.facts.done:
            self.facts.done = time

    def hear(self, direction: DirectionState, kind: int, message: bytes, time: int) -> None:
        """A handshake message. Raises Malformed."""
        if kind == handshake.CLIENT_HELLO and not direction.by_server:
            self._client_hello(direction, message, time)
        elif kind == handshake.SERVER_HELLO and direction.by_server:
            self._server_hello(direction, message)
        else:
            self._heard(direction, kind, message, time)
        found = self.negotiation(direction)
        if direction.stage == 0:
            found.keep(direction.by_server, message)
        found.full |= kind == handshake.SERVER_DONE
        if kind == handshake.CLIENT_KEY_EXCHANGE:
            found.premaster = message[6:14] or b"none"

    def _next(self, direction: DirectionState) -> Negotiation:
        """Begins the handshake of a hello."""
        if direction.hellos >= MOST_NEGOTIATIONS:
            direction.broken = f"more than {MOST_NEGOTIATIONS:,} handshakes"
            return self._negotiations[-1]
        direction.hellos += 1
        if direction.hellos > len(self._negotiations):
            self._negotiations.append(Negotiation())
            self.facts.renegotiated += 1
        return self._negotiations[direction.hellos - 1]

    def _client_hello(self, direction: DirectionState, message: bytes, time: int) -> None:
        hello, facts = handshake.client_hello(message), self.facts
        known = self.negotiation(direction).client
        again = direction.hellos > 0 and known is not None and known.random == hello.random
        found = self.negotiation(direction) if again else self._next(direction)  # again: after a HelloRetryRequest
        found.client = hello
        if len(self._negotiations) > 1 or again:
            return
        facts.began, facts.client_random, facts.server_name = time, hello.random, hello.server_name
        facts.offered_protocols = hello.protocols
        facts.offered_versions = tuple(VERSION_NAMES[one] for one in hello.versions if one in VERSION_NAMES)
        facts.early_data = "offered" if hello.early_data else ""

    def _server_hello(self, direction: DirectionState, message: bytes) -> None:
        hello, facts = handshake.server_hello(message), self.facts
        if hello.retry:
            facts.retried = True
            facts.early_data = "refused" if facts.early_data else ""
            return
        found = self._next(direction)
        found.server = hello
        if direction.hellos == 1:
            facts.version = VERSION_NAMES.get(hello.version, f"version 0x{hello.version:04x}")
            facts.suite, facts.protocol = found.suite, hello.protocol
            facts.resumed = hello.resumes

    def _heard(self, direction: DirectionState, kind: int, message: bytes, time: int) -> None:
        facts, found = self.facts, self.negotiation(direction)
        if kind == handshake.CERTIFICATE:
            shown = handshake.certificate(message, found.modern)
            if direction.by_server:
                facts.certificate = facts.certificate or shown
            else:
                facts.client_certificate = facts.client_certificate or shown
        elif kind == handshake.CERTIFICATE_REQUEST:
            facts.asked_certificate = True
        elif kind == handshake.ENCRYPTED_EXTENSIONS:
            facts.protocol, taken = handshake.encrypted_extensions(message)
            if facts.early_data:
                facts.early_data = "taken" if taken else "refused"
        elif kind == handshake.NEW_TICKET and not found.modern:
            found.ticket = handshake.new_ticket(message)
            if found.master is not None:
                self.resumable.put(found.ticket, found.master)
        elif kind == handshake.FINISHED:
            self._finish(direction, time)

    def _finish(self, direction: DirectionState, time: int) -> None:
        if not self.negotiation(direction).modern:
            self._done(direction, time)
        elif not direction.by_server and not self.facts.done:
            self.facts.done = time
