"""The layer between connections and those who read their streams: TLS is found, followed and taken off.

take(connection) looks at each connection that got something new and puts decrypted pieces in the place of encrypted
ones. What is not TLS costs a look at its first bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kwire.capture.streams import Piece
from kwire.capture.tls.header import ALERT, APPLICATION, HANDSHAKE, HEADER
from kwire.capture.tls.keylog import KeyLog
from kwire.capture.tls.negotiation import Resumable
from kwire.capture.tls.records import begins_record
from kwire.capture.tls.session import MIDSTREAM, TlsSession

if TYPE_CHECKING:
    from kwire.capture.connection import Connection

PATIENCE = 20_000_000_000  # ns that a connection waits for its keys
SHOWN, MOST_REASONS = 5, 1000
LEAST = 3  # bytes that tell TLS from anything else
HELD_IN_ALL = 64 << 20  # bytes that wait for keys in all connections together


class Plain:
    """Marks a connection that is not TLS."""


PLAIN = Plain()


class TlsLayer:
    """log: the secrets that there are. ledger: where each record lies is remembered, for who shows records."""

    def __init__(self, log: KeyLog, ledger: bool = False) -> None:
        self.log, self._ledger = log, ledger
        self._resumable = Resumable()
        self._waiting: dict[int, tuple[int, Connection]] = {}  # since when
        self._looked = 0  # at how many secrets
        self.noting = False  # whether secrets of what is decrypted are collected for take_secrets
        self._secrets: dict[str, None] = {}
        self.sealed = 0  # connections that are over and were not decrypted
        self.reasons: Counter[str] = Counter()  # why, for some of them
        self._totals: Counter[str] = Counter()

    def take(self, connection: Connection) -> None:
        """Looks at a connection that has new bytes or has ended."""
        found = connection.tls
        if found is None:
            if not connection.streams[0].pieces and not connection.streams[1].pieces:
                return
            found = connection.tls = self._judge(connection)
        if not isinstance(found, TlsSession):
            return
        first, second = connection.streams
        before = found.decrypted
        first.pieces, second.pieces = found.take((first.pieces, second.pieces))
        if self.noting and found.decrypted and not before:
            self._secrets.update(dict.fromkeys(found.secrets))
        if connection.finished:
            for stream, pieces in zip(connection.streams, found.finish(), strict=True):
                stream.pieces = [*stream.pieces, *pieces]
            self._waiting.pop(id(connection), None)
            self._over(found)
        elif found.lacks_key and id(connection) not in self._waiting:
            self._waiting[id(connection)] = connection.last_time, connection

    def take_secrets(self) -> list[str]:
        """What decrypts the connections that were decrypted since the last call, as lines of a key log."""
        found, self._secrets = list(self._secrets), {}
        return found

    def _over(self, session: TlsSession) -> None:
        """A connection has ended."""
        facts = session.facts
        self._totals.update(lost=facts.lost, unread=facts.unread, oversized=facts.oversized)
        self.sealed += session.encrypted
        if session.why and (session.why in self.reasons or len(self.reasons) < MOST_REASONS):
            self.reasons[session.why] += 1

    @property
    def notes(self) -> list[str]:
        """Which connections could not be decrypted although there are keys, and why."""
        if not self.log:
            return []
        said = [
            f"{_counted(count, 'TLS connection')} not decrypted: {why}"
            for why, count in self.reasons.most_common(SHOWN)
        ]
        if len(self.reasons) > SHOWN:
            left = sum(self.reasons.values()) - sum(count for _, count in self.reasons.most_common(SHOWN))
            said.append(f"{_counted(left, 'more TLS connection')} not decrypted (kwire read --not-kafka says why)")
        words = {
            "lost": "not whole in the capture, and left out",
            "unread": "not authentic under their keys, and left out",
            "oversized": "longer than the 16,384 bytes that TLS allows",
        }
        return said + [
            f"{_counted(self._totals[name], 'TLS record')} {text}" for name, text in words.items() if self._totals[name]
        ]

    def woken(self, now: int) -> Iterator[Connection]:
        """The connections that continue because keys came, or because they waited too long."""
        if not self._waiting:
            return
        self.log.refresh()
        news, self._looked = self.log.added != self._looked, self.log.added
        held = sum(
            connection.tls.held for _, connection in self._waiting.values() if isinstance(connection.tls, TlsSession)
        )
        for key, (since, connection) in list(self._waiting.items()):
            session = connection.tls
            assert isinstance(session, TlsSession)
            late = now - since > PATIENCE or held > HELD_IN_ALL
            if not (news or late):
                continue
            if late:
                held -= session.held
            before = session.decrypted
            found = session.give_up_waiting() if late else session.go_on()
            if self.noting and session.decrypted and not before:
                self._secrets.update(dict.fromkeys(session.secrets))
            if not session.lacks_key:
                del self._waiting[key]
            if any(found):
                for stream, pieces in zip(connection.streams, found, strict=True):
                    stream.pieces += pieces
                yield connection

    def _judge(self, connection: Connection) -> TlsSession | Plain | None:
        """What the connection is, judged by its first bytes; None while there are too few."""
        heads = [_head(stream.pieces) for stream in connection.streams]
        client = connection.opener
        if client is not None and heads[client] and not begins_record(heads[client]):
            return PLAIN
        for side in (0, 1):
            head = heads[side]
            if len(head) >= LEAST and head[0] == HANDSHAKE and begins_record(head):
                said = head[HEADER] if len(head) > HEADER else 1
                if said in (1, 2):
                    return TlsSession(self.log, self._resumable, side if said == 1 else 1 - side, self._ledger)
        if any(head and not begins_record(head) for head in heads) or not any(heads):
            return PLAIN if any(heads) else None
        if any(len(head) > HEADER and head[0] in (APPLICATION, ALERT) for head in heads):
            midstream = TlsSession(self.log, self._resumable, client or 0)
            midstream.seal(MIDSTREAM)
            return midstream
        return PLAIN


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def _head(pieces: list[Piece]) -> bytes:
    """The first bytes that there are."""
    head = b""
    for piece in pieces:
        if piece.missing and head:
            break
        head += piece.data[: HEADER + 1 - len(head)]
        if len(head) > HEADER:
            break
    return head
