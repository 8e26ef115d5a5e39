"""What client and server agreed on in one handshake, and the secrets that follow from it with a key log."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from kwire.capture.tls import keylog
from kwire.capture.tls.handshake import TLS_1_2, TLS_1_3, ClientHello, ServerHello
from kwire.capture.tls.keylog import KeyLog
from kwire.capture.tls.protection import Protection, protection
from kwire.capture.tls.schedule import MASTER, keys_12, keys_13, master_secret
from kwire.capture.tls.suites import Suite, suite_of

MOST_RESUMABLE = 20_000  # sessions of which the master secret is remembered
LONGEST_TRANSCRIPT = 1 << 17  # bytes of messages that are kept for an extended master secret


class Resumable:
    """Master secrets by session id and by ticket: who resumes a session may write none of its own to the key log."""

    def __init__(self) -> None:
        self._found: dict[bytes, bytes] = {}

    def put(self, name: bytes, master: bytes) -> None:
        if name:
            self._found[name] = master
            if len(self._found) > MOST_RESUMABLE:
                del self._found[next(iter(self._found))]

    def get(self, name: bytes) -> bytes | None:
        return self._found.get(name) if name else None


@dataclass(slots=True, eq=False)
class Negotiation:
    """One handshake of a connection. said: of both sides the messages up to ClientKeyExchange, which an extended master
    secret rests on; premaster: the first bytes of an encrypted one, as key logs name it."""

    client: ClientHello | None = None
    server: ServerHello | None = None
    said: tuple[list[bytes], list[bytes]] = field(default_factory=lambda: ([], []))
    premaster: bytes = b""
    ticket: bytes = b""
    master: bytes | None = None
    full: bool = False  # the server said all that it says before the keys: no session is resumed

    @property
    def suite(self) -> Suite:
        """The suite that was chosen."""
        assert self.server is not None
        return suite_of(self.server.suite)

    @property
    def modern(self) -> bool:
        """Whether it is TLS 1.3."""
        return self.server is not None and self.server.version == TLS_1_3

    @property
    def unsupported(self) -> str | None:
        """Why its records cannot be read whatever the key log holds."""
        assert self.server is not None
        if self.server.version not in (TLS_1_2, TLS_1_3):
            return "this version of TLS is not decrypted"
        return None if self.suite.mode else f"the cipher suite {self.suite.name} is not supported"

    def keep(self, by_server: bool, message: bytes) -> None:
        """Takes a handshake message that comes before the keys."""
        mine = self.said[by_server]
        if self.modern or self.master is not None:
            self.said = [], []
        elif (
            not (self.full if by_server else self.premaster)
            and sum(map(len, mine)) + len(message) <= LONGEST_TRANSCRIPT
        ):
            mine.append(message)

    def find_master(self, log: KeyLog, resumable: Resumable) -> bytes | None:
        """The master secret of TLS 1.2; None when nothing tells it."""
        if self.master is None and self.client is not None and self.server is not None:
            self.master = next((found for found in self._masters(log, resumable) if found), None)
            if self.master is not None:
                resumable.put(self.server.session, self.master)
        if self.master is not None:
            resumable.put(self.ticket, self.master)
        return self.master

    def _masters(self, log: KeyLog, resumable: Resumable) -> Iterator[bytes | None]:
        assert self.client is not None
        assert self.server is not None
        yield log.find(keylog.MASTER, self.client.random)
        yield log.find(keylog.SESSION, self.server.session)
        premaster = log.find(keylog.PREMASTER, self.client.random) or log.find(keylog.RSA, self.premaster)
        if premaster is not None and self.premaster:
            randoms = self.client.random + self.server.random
            client, server = self.said
            said = b"".join([*client[:1], *server, *client[1:]])
            transcript = hashlib.new(self.suite.hash, said).digest() if self.server.extended_master else None
            yield master_secret(premaster, randoms, transcript, self.suite.hash)
        if self.server.session == self.client.session:
            yield resumable.get(self.server.session)
        yield resumable.get(self.client.ticket)

    def protection_12(self, by_server: bool, master: bytes) -> Protection | None:
        """The Protection of one side of TLS 1.2. Raises KwireError without the package cryptography."""
        assert self.client is not None
        assert self.server is not None
        if len(master) != MASTER:
            return None
        keys = keys_12(self.suite, master, self.client.random, self.server.random)
        return protection(self.suite, keys[by_server], False, self.server.mac_last)

    def secret_13(self, log: KeyLog, label: str) -> bytes | None:
        """A traffic secret of TLS 1.3."""
        return None if self.client is None else log.find(label, self.client.random)

    def protection_13(self, secret: bytes) -> Protection | None:
        """The Protection under a traffic secret. Raises KwireError without the package cryptography."""
        return protection(self.suite, keys_13(self.suite, secret), True)
