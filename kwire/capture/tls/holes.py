"""Where a direction lacks packets: to the end of the record that a hole hits, or to the next one that can be found.

A record's header tells where it ends, so that a hole within one record costs that record. Else what could be a header
is searched, and opened with the numbers that are possible: the number that fits says how many records were lost, and
how many bytes of what travelled inside.
"""

from __future__ import annotations

from collections.abc import Iterator

from kwire.capture.streams import Piece
from kwire.capture.tls.direction_state import BLIND, OPEN, DirectionState
from kwire.capture.tls.header import APPLICATION, HEADER, header_at
from kwire.capture.tls.protection import Protection
from kwire.capture.tls.records import begins_record, behind, boundaries

TRIED = 64 << 20  # bytes of a direction that may be opened in vain
MOST = 50_000  # numbers that are tried for a record


def meet(direction: DirectionState, piece: Piece) -> None:
    """Handles a hole in front of this piece."""
    tail, direction.tail = direction.tail, None
    direction.messages.clear()
    if direction.lost_from is not None:
        direction.searched = piece.position
        return
    if direction.skip_to is None and tail is not None and len(tail.data) >= HEADER and begins_record(tail.data):
        direction.skip_from = tail.position
        direction.skip_to = tail.position + HEADER + header_at(tail.data)[2]
        direction.skipped = tail.data[0]
    if direction.skip_to is None:
        direction.lost_from = piece.position - piece.missing if tail is None else tail.position
    elif piece.position > direction.skip_to:
        direction.lost_from, direction.skip_to = direction.skip_from, None
    direction.searched = piece.position


def leave(direction: DirectionState, piece: Piece) -> Piece | None:
    """The piece from the next record on; None when no record begins in it."""
    if direction.skip_to is not None:
        return _skip(direction, piece, direction.skip_to)
    assert direction.lost_from is not None
    found, more = boundaries(piece.data, max(direction.searched - piece.position, 0))
    for at in found:
        if _fits(direction, piece, at):
            direction.lost_from = None
            return behind(piece, at)
        if direction.broken:
            break
    direction.searched = piece.position + more
    return None


def kept(direction: DirectionState, piece: Piece) -> Piece:
    """The part of a piece without a record that is still to be searched."""
    if direction.skip_to is not None:
        return behind(piece, len(piece.data))
    return behind(piece, max(direction.searched - piece.position, 0))


def _skip(direction: DirectionState, piece: Piece, end: int) -> Piece | None:
    """Continues behind a record of which only the end is known."""
    if piece.position + len(piece.data) < end:
        return None
    left = behind(piece, end - piece.position)
    direction.skip_to = None
    direction.count += 1
    direction.session.facts.lost += 1
    if direction.protection is not None:
        direction.number += 1
        if direction.skipped == APPLICATION:
            direction.inside.miss(end - direction.skip_from - HEADER - direction.protection.extra, left or piece)
    return left


def _fits(direction: DirectionState, piece: Piece, at: int) -> bool:
    """Whether a record begins at this offset: one that opens, or just any where there are no keys."""
    if direction.stage in (OPEN, BLIND):
        return True
    if direction.protection is None and not direction.derive():
        return False
    stop = at + HEADER + header_at(piece.data, at)[2]
    header, body = piece.data[at : at + HEADER], piece.data[at + HEADER : stop]
    assert direction.lost_from is not None
    assert direction.protection is not None
    span, least = piece.position + at - direction.lost_from, HEADER + direction.protection.extra
    before, known = direction.number, direction.protection
    number = number_of(direction, header, body, before, span // least + 1)
    if number is None:
        return False
    lost = number - before if direction.protection is known else 1
    direction.number = number
    direction.count += lost
    direction.session.facts.lost += lost
    direction.inside.miss(span - lost * least, behind(piece, at))
    return True


def number_of(direction: DirectionState, header: bytes, body: bytes, first: int, limit: int) -> int | None:
    """The number under which a record opens, from first on; under the keys to come too, which are then used."""
    assert direction.protection is not None
    limit = min(limit, MOST)
    hinted = direction.protection.hint(body) - direction.drift
    near = [hinted] if first <= hinted <= first + limit else []
    found = _try(direction, direction.protection, header, body, iter([*near, *range(first, first + limit + 1)]))
    if found is not None:
        return found
    for stage, secret in direction.coming():
        other = direction.session.negotiation(direction).protection_13(secret)
        found = None if other is None else _try(direction, other, header, body, iter(range(limit + 1)))
        if found is not None:
            direction.use(stage, secret, direction.session.negotiation(direction))
            return found
    return None


def _try(
    direction: DirectionState, protection: Protection, header: bytes, body: bytes, numbers: Iterator[int]
) -> int | None:
    for number in numbers:
        if direction.tried > TRIED:
            direction.broken = "too much is missing to find out which records are lost"
            return None
        direction.tried += len(body) + 64  # a call costs as much as a few bytes
        if protection.open(number, header, body) is not None:
            return number
    return None
