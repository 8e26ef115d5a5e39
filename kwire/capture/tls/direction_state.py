"""What is known of one direction of a TLS connection while its records are read: how far it has come, and its keys.

TLS 1.3 changes keys twice without a word in the open: the secrets that may follow are here to be tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from kwire.capture.streams import Piece
from kwire.capture.tls import keylog
from kwire.capture.tls.facts import TlsFacts
from kwire.capture.tls.inside import Inside
from kwire.capture.tls.negotiation import Negotiation, Resumable
from kwire.capture.tls.protection import Protection
from kwire.capture.tls.schedule import next_secret

OPEN, EARLY, SHAKING, FLOWING, BLIND = range(5)  # what records are under: no keys, three of them, keys that nobody has


class DirectionOwner(Protocol):
    """What a direction needs of its connection; TlsSession implements it."""

    log: keylog.KeyLog
    resumable: Resumable
    facts: TlsFacts
    waits: bool

    @property
    def decrypted(self) -> bool: ...

    @property
    def no_key(self) -> str: ...

    def negotiation(self, direction: DirectionState) -> Negotiation: ...

    def agreed(self, direction: DirectionState) -> Negotiation | None: ...

    def cannot(self, why: str) -> None: ...

    def changed(self, direction: DirectionState, agreed: Negotiation) -> None: ...

    def sealed_record(self, direction: DirectionState, kind: int, time: int) -> None: ...

    def hear(self, direction: DirectionState, kind: int, message: bytes, time: int) -> None: ...


class DirectionState:
    """lacks: the secret or the hello for which it waits; broken: why nothing more can be read."""

    def __init__(self, session: DirectionOwner, by_server: bool) -> None:
        self.session, self.by_server = session, by_server
        self.queue: list[Piece] = []
        self.have = self.need = 0  # bytes in it, and how many there must be before a look at them is worth it
        self.inside = Inside()
        self.protection: Protection | None = None
        self.secret = b""  # the traffic secret of TLS 1.3
        self.stage = OPEN
        self.number = 0  # of the next record under these keys
        self.count = 0  # records in all
        self.opened = 0  # of them under keys
        self.hellos = 0
        self.messages = bytearray()  # a handshake message that is not whole
        self.wrong = self.tried = 0
        self.passing = False  # records that do not open are of others keys, which are not known
        self.lacks: str | None = None
        self.broken: str | None = None
        self.tail: Piece | None = None  # the record that a hole cut off
        self.skip_to: int | None = None  # where it ends
        self.skip_from = self.skipped = 0  # where it begins, and its type
        self.drift = 0  # by how much the explicit part of a nonce is ahead of the record's number
        self.lost_from: int | None = None  # where what is missing begins, while a boundary is searched
        self.searched = 0  # up to where

    def derive(self) -> bool:
        """The keys of the stage of TLS 1.3; those of a later one where the log has only them."""
        agreed = self.session.negotiation(self)
        for stage in range(self.stage, FLOWING + 1):
            secret = agreed.secret_13(self.session.log, self._label(stage))
            if secret is not None:
                self.passing = stage != self.stage
                self.use(stage, secret, agreed)
                return True
        return self._lacks_key()

    def _label(self, stage: int) -> str:
        if stage == EARLY:
            return keylog.EARLY
        return (keylog.HANDSHAKE if stage == SHAKING else keylog.TRAFFIC)[self.by_server]

    def use(self, stage: int, secret: bytes, agreed: Negotiation) -> None:
        self.stage, self.secret, self.number, self.opened, self.wrong = stage, secret, 0, 0, 0
        self.protection = agreed.protection_13(secret)

    def coming(self) -> Iterator[tuple[int, bytes]]:
        """The secrets that may follow in TLS 1.3, with their stages."""
        agreed = self.session.negotiation(self)
        if not agreed.modern:
            return
        if self.stage == FLOWING:
            yield FLOWING, next_secret(agreed.suite, self.secret)
        for stage in range(self.stage + 1, FLOWING + 1):
            secret = agreed.secret_13(self.session.log, self._label(stage))
            if secret is not None:
                yield stage, secret

    def _lacks_key(self) -> bool:
        """Handles a record without a key, which may still come. Returns whether the record is done with."""
        if self.session.waits:
            self.lacks = "key"
            return False
        if self.session.decrypted:
            self.broken = self.session.no_key
            return False
        self.session.cannot(self.session.no_key)
        self.stage = BLIND
        return True

    def _enter(self, stage: int) -> None:
        self.stage, self.protection, self.number, self.opened, self.wrong = stage, None, 0, 0, 0

    @property
    def misfit(self) -> str:
        return (
            f"the secret that the key log has for client random {self.session.facts.client_random.hex()} does not fit"
        )
