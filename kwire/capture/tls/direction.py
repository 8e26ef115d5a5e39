"""One direction of a TLS connection: records out of a stream, opened, in order.

Records are counted from the moment that keys change, and the count is part of what makes one authentic. TLS 1.3 changes
keys without a word in the open, so a record that does not open is tried with the keys to come. What to do where packets
are missing is in holes.py.
"""

from __future__ import annotations

from kwire.capture.streams import Piece
from kwire.capture.tls import holes
from kwire.capture.tls.direction_state import BLIND, EARLY, FLOWING, OPEN, SHAKING, DirectionState
from kwire.capture.tls.handshake import END_OF_EARLY_DATA, FINISHED, KEY_UPDATE, Malformed, messages
from kwire.capture.tls.header import ALERT, APPLICATION, CHANGE_CIPHER, HANDSHAKE, HEADER, LARGEST_CONTENT, header_at
from kwire.capture.tls.records import begins_record, behind, joined, packet_at, until
from kwire.capture.tls.schedule import next_secret

MOST_WRONG = 64  # records in a row that are not authentic
FIRST_WRONG = 3  # the same where none was before
MOST_UPDATES = 1 << 16  # changes of keys
WATCHED = 64  # records that are looked at without keys


class Direction(DirectionState):
    """feed(pieces) adds what the stream brought, advance() reads on as far as keys are known, take() gives what
    travelled inside. lacks: the secret or the hello for which it waits; broken: why nothing more can be read."""

    def feed(self, pieces: list[Piece]) -> None:
        if self.broken:
            for piece in pieces:
                self.inside.miss(len(piece.data) + piece.missing, piece)
        elif self.stage != BLIND or self.count < WATCHED:
            self.queue += pieces
            self.have += sum(len(piece.data) for piece in pieces)
            if any(piece.missing for piece in pieces):
                self.need = 0

    def take(self) -> list[Piece]:
        """The decrypted pieces since the last call."""
        return self.inside.take()

    def stop(self, why: str) -> None:
        """Marks the direction as broken: nothing more of it can be read."""
        self.broken = self.broken or why
        left, self.queue, self.have = self.queue, [], 0
        self.feed(left)

    def advance(self) -> bool:
        """Reads on as far as it can. Returns whether it made progress."""
        if self.have < self.need:
            return False
        count, stage, before = self.count, self.stage, self.have
        self.lacks = None
        while self.queue and not self.broken:
            end = next((at for at, piece in enumerate(self.queue) if at and piece.missing), len(self.queue))
            more, (piece, start) = end < len(self.queue), self._next(self.queue[:end])
            if piece.missing:
                holes.meet(self, piece)
                piece = piece._replace(missing=0)
            left = self._run(piece, start)
            self.queue[:end] = [left] if left.data else []
            if self.broken:
                self.stop(self.broken)
                break
            if self.lacks or not more:
                break
            if left.data:
                self.tail = self.queue.pop(0)
        self.have = sum(len(piece.data) for piece in self.queue)
        self.need = self._needed()
        return self.count > count or self.stage != stage or self.have < before

    def _needed(self) -> int:
        """How many bytes make the next record whole, as far as that is known."""
        if self.lacks or self.lost_from is not None or len(self.queue) != 1:
            return 0
        data = self.queue[0].data
        return HEADER + header_at(data)[2] if len(data) >= HEADER else 0

    def _next(self, pieces: list[Piece]) -> tuple[Piece, int]:
        """Pieces in a row as one, and from where on it is to be read. The record that is begun in the first piece is
        read by itself where it can be: what follows is large, and need not be copied."""
        left, lack = pieces[0], self.need - len(pieces[0].data)
        if len(pieces) == 1 or not self.need or left.missing or self.lost_from is not None or self.skip_to is not None:
            return joined(pieces), 0
        after = joined(pieces[1:])
        if not 0 < lack <= len(after.data):
            return joined(pieces), 0
        begun = self._run(joined([left, until(after, lack)]), 0)
        return (joined([begun, behind(after, lack)]), 0) if begun.data or self.broken else (after, lack)

    def _run(self, piece: Piece, start: int) -> Piece:
        """Reads a piece from an offset on. Returns what is left of it."""
        while True:
            if self.skip_to is not None or self.lost_from is not None:
                found = holes.leave(self, piece)
                if found is None:
                    return holes.kept(self, piece)
                piece, start = found, 0
            piece, start = self._records(piece, start), 0
            if self.lost_from is None or self.broken:
                return piece

    def _records(self, piece: Piece, pos: int) -> Piece:
        """Whole records from an offset on; what is left."""
        data = piece.data
        while not self.broken and not self.lacks:
            if self.stage not in (OPEN, BLIND) and self.protection is None and (pos == len(data) or not self.derive()):
                break
            if self.protection is not None:
                heads: list[int] = []
                sizes: list[int] = []
                content, pos = self.protection.run(self.number, data, pos, heads, sizes)
                if heads:
                    self._opened(piece, heads, sizes, content, pos)
                    continue
            if len(data) - pos < HEADER:
                break
            if not begins_record(data, pos):
                self.lost_from = self.searched = piece.position + pos
                break
            stop = pos + HEADER + header_at(data, pos)[2]
            if stop > len(data):
                break
            if not self._record(piece, pos, stop):
                break
            pos = stop
            self.count += 1
        return behind(piece, pos)

    # ------------------------------------------------------------ single records

    def _record(self, piece: Piece, pos: int, stop: int) -> bool:
        """Handles one record. Returns whether it need not be looked at again."""
        header, body = piece.data[pos : pos + HEADER], piece.data[pos + HEADER : stop]
        kind, time = header[0], piece.times[packet_at(piece, stop - 1)]
        if self.stage == BLIND:
            self.session.sealed_record(self, kind, time)
            return True
        if self.stage == OPEN:
            if kind != APPLICATION:
                return self._content(kind, body, piece, pos, time)
            return self._keys_began(header, body, piece, pos) if self._change(lost=True) else False
        if self.session.negotiation(self).modern and kind in (CHANGE_CIPHER, ALERT):
            if kind == ALERT and len(body) == 2:  # in the open: it could not be said in any other way
                self.session.facts.alert(not self.by_server, body, time)
            return True
        found = self._open(header, body)
        if found is None:
            self._not_authentic(behind(piece, pos), header, body)
            return True
        assert self.protection is not None
        self.drift = self.protection.hint(body) - self.number + 1
        self.wrong, self.opened = 0, self.opened + 1
        done = self._content(*found, piece, pos, time)
        if not done:  # it is opened again when what it waits for is there
            self.number -= 1
        return done

    def _content(self, kind: int, content: bytes, piece: Piece, pos: int, time: int) -> bool:
        """Handles the content of a record. Returns whether it need not be looked at again."""
        if kind == APPLICATION:
            if len(content) > LARGEST_CONTENT:
                self.session.facts.oversized += 1
            end = pos + HEADER + header_at(piece.data, pos)[2]
            self._emit(piece, [pos], [len(content)], content, end, self.count + 1)
        elif kind == ALERT:
            self.session.facts.alert(not self.by_server, content, time)
        elif kind == CHANGE_CIPHER:
            return self._change()
        elif kind == HANDSHAKE:
            self._handshake(content, time)
        return True

    def _handshake(self, content: bytes, time: int) -> None:
        self.messages += content
        try:
            for kind, message in messages(self.messages):
                self.session.hear(self, kind, message, time)
                modern = self.stage != OPEN and self.session.negotiation(self).modern
                if modern and kind in (FINISHED, END_OF_EARLY_DATA) and self.stage < FLOWING:
                    self._enter(FLOWING if kind == FINISHED else SHAKING)
                elif modern and kind == KEY_UPDATE:
                    self._update()
        except Malformed as error:
            self.messages.clear()
            if self.stage == OPEN:
                self.broken = f"the handshake cannot be read: {error}"

    def _keys_began(self, header: bytes, body: bytes, piece: Piece, pos: int) -> bool:
        """A record of application data where none was expected: of TLS 1.3, or of 1.2 when what came before is lost."""
        if self.stage == BLIND or self.session.negotiation(self).modern:
            return self._record(piece, pos, pos + HEADER + len(body)) if self.protection or self.derive() else False
        found = holes.number_of(self, header, body, self.number, WATCHED)
        if found is not None:
            self.number = found
        return self._record(piece, pos, pos + HEADER + len(body))

    # ------------------------------------------------------------ keys

    def _change(self, lost: bool = False) -> bool:
        """The keys that were agreed on are used from here on. Whether that is done with. lost: nobody said so."""
        agreed = self.session.agreed(self)
        if agreed is None and self.session.facts.retried and not lost:
            return True  # it follows a HelloRetryRequest, which only TLS 1.3 has
        if agreed is None:
            self.lacks = "hello"
            return False
        if agreed.modern and not lost:
            return True  # said for old middleboxes, and means nothing (RFC 8446 appendix D.4)
        if agreed.unsupported:
            self.session.cannot(agreed.unsupported)
            self.stage = BLIND
            return True
        if agreed.modern:
            early = not self.by_server and self.session.facts.early_data and not self.session.facts.retried
            self._enter(EARLY if early else SHAKING)
            return True
        self.session.changed(self, agreed)
        master = agreed.find_master(self.session.log, self.session.resumable)
        if master is None:
            return self._lacks_key()
        self.protection = agreed.protection_12(self.by_server, master)
        self.stage, self.number, self.opened, self.wrong = FLOWING, 0, 0, 0
        self.messages.clear()
        return True

    def _update(self) -> None:
        """A KeyUpdate: the next traffic secret follows from this one."""
        facts = self.session.facts
        facts.key_updates += 1
        if facts.key_updates > MOST_UPDATES:
            self.broken = f"more than {MOST_UPDATES:,} changes of keys"
        else:
            agreed = self.session.negotiation(self)
            self.use(FLOWING, next_secret(agreed.suite, self.secret), agreed)

    def _open(self, header: bytes, body: bytes) -> tuple[int, bytes] | None:
        """Opens the record with the current keys, else with those that may follow."""
        assert self.protection is not None
        found = self.protection.open(self.number, header, body)
        if found is None and self.tried < holes.TRIED:
            self.tried += len(body)
            for stage, secret in self.coming():
                other = self.session.negotiation(self).protection_13(secret)
                found = other.open(0, header, body) if other is not None else None
                if found is not None:
                    self.use(stage, secret, self.session.negotiation(self))
                    break
        if found is not None:
            self.number, self.passing = self.number + 1, False
        return found

    def _not_authentic(self, piece: Piece, header: bytes, body: bytes) -> None:
        """Handles a record that no known key opens."""
        facts = self.session.facts
        early = not self.by_server and facts.early_data and self.stage < FLOWING and not self.number
        if (self.passing or early) and self.tried < holes.TRIED:
            if early:
                facts.early_data = "refused"
            return
        assert self.protection is not None
        self.wrong, self.number, facts.unread = self.wrong + 1, self.number + 1, facts.unread + 1
        if header[0] == APPLICATION:
            self.inside.miss(max(len(body) - self.protection.extra, 0), piece)
        if self.wrong >= (MOST_WRONG if self.opened else FIRST_WRONG):
            self.broken = self.misfit if not self.opened else f"{self.wrong} records in a row are not authentic"

    # ------------------------------------------------------------ what comes out

    def _opened(self, piece: Piece, heads: list[int], sizes: list[int], content: bytes, end: int) -> None:
        self.number += len(heads)
        self.count += len(heads)
        self.opened, self.wrong, self.passing = self.opened + len(heads), 0, False
        self._emit(piece, heads, sizes, content, end, self.count - len(heads) + 1)

    def _emit(self, piece: Piece, heads: list[int], sizes: list[int], content: bytes, end: int, first: int) -> None:
        assert self.protection is not None
        self.inside.add(piece, heads, sizes, content, self.protection.lead, end, first)
