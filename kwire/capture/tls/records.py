"""Records in the pieces of a stream: which pieces belong together, and the piece that decrypted records make."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right

import numpy as np

from kwire.capture.packets import Ints
from kwire.capture.streams import Piece
from kwire.capture.tls.header import HEADER, LARGEST, header_at

FEW = 48  # packets and records for which columns are not worth it
BEGIN = re.compile(rb"[\x14-\x17]\x03[\x00-\x04]")


def joined(pieces: list[Piece]) -> Piece:
    """Pieces in a row, none of which lacks bytes before it but perhaps the first, as one."""
    if len(pieces) == 1:
        return pieces[0]
    first = pieces[0]
    return Piece(
        first.position,
        b"".join(piece.data for piece in pieces),
        [start for piece in pieces for start in piece.starts],
        [time for piece in pieces for time in piece.times],
        [number for piece in pieces for number in piece.numbers],
        first.missing,
        first.cut,
    )


def behind(piece: Piece, offset: int) -> Piece:
    """The piece without its first offset bytes, and without what is said to be missing before it."""
    first = max(bisect_right(piece.starts, piece.position + offset) - 1, 0)
    return Piece(
        piece.position + offset, piece.data[offset:], piece.starts[first:], piece.times[first:], piece.numbers[first:]
    )


def until(piece: Piece, offset: int) -> Piece:
    """The piece's first bytes."""
    last = bisect_left(piece.starts, piece.position + offset)
    return Piece(
        piece.position, piece.data[:offset], piece.starts[:last], piece.times[:last], piece.numbers[:last],
        piece.missing, piece.cut,
    )  # fmt: skip


def packet_at(piece: Piece, offset: int) -> int:
    """The index of the packet that brought the byte at an offset."""
    return max(bisect_right(piece.starts, piece.position + offset) - 1, 0)


def begins_record(data: bytes, pos: int = 0) -> bool:
    """Whether a record may begin there; also where fewer bytes are there than would tell."""
    head = data[pos : pos + HEADER]
    if len(head) < HEADER:
        return head[:1] == b"" or (20 <= head[0] <= 23 and head[1:2] in (b"", b"\x03") and head[2:3] <= b"\x04")
    kind, version, length = header_at(head)
    return bool(20 <= kind <= 23 and 0x0300 <= version <= 0x0304 and 0 < length <= LARGEST)


def boundaries(data: bytes, pos: int) -> tuple[list[int], int]:
    """Where whole records may begin that others follow, from pos on; and from where on to search again when there is
    more."""
    found: list[int] = []
    for match in BEGIN.finditer(data, pos):
        at = match.start()
        if not begins_record(data, at):
            continue
        if len(data) - at < HEADER or (end := at + HEADER + header_at(data, at)[2]) > len(data):
            return found, at
        if begins_record(data, end):
            found.append(at)
    return found, max(len(data) - 2, pos)


def decrypted(piece: Piece, heads: list[int], sizes: list[int], data: bytes, lead: int, position: int) -> Piece:
    """The contents of records, data, as a piece at this position. heads: where the records begin in piece's data;
    sizes: of what they hold; lead: bytes between a record's header and what is encrypted.

    Each byte counts as brought by the packet that brought its encrypted form, as these lie in the same order."""
    first = max(bisect_right(piece.starts, piece.position + heads[0]) - 1, 0)
    last = bisect_right(piece.starts, piece.position + heads[-1] + HEADER + lead + sizes[-1])
    starts = piece.starts[first:last]
    before, end = piece.position + HEADER + lead, position + len(data)
    if len(starts) + len(heads) > FEW:
        found = _places(starts, heads, sizes, before, position)
        brings = found < np.append(found[1:], end)
        places, all_bring = found.tolist(), bool(brings.all())
        kept = [] if all_bring else np.flatnonzero(brings).tolist()
    else:
        places = _places_of_few(starts, heads, sizes, before, position)
        kept = [at for at, (place, other) in enumerate(zip(places, [*places[1:], end], strict=True)) if place < other]
        all_bring = len(kept) == len(places)
    if all_bring:
        return Piece(position, data, places, piece.times[first:last], piece.numbers[first:last])
    times, numbers = piece.times, piece.numbers
    return Piece(
        position, data, [places[at] for at in kept], [times[first + at] for at in kept],
        [numbers[first + at] for at in kept],
    )  # fmt: skip


def _places_of_few(starts: list[int], heads: list[int], sizes: list[int], before: int, position: int) -> list[int]:
    """Where what each packet brings begins among the contents. before: where a record's content would begin whose head
    is at 0."""
    out, at, plain = [], 0, position
    for start in starts:
        while at < len(heads) and before + heads[at] + sizes[at] <= start:
            plain += sizes[at]
            at += 1
        out.append(plain + max(start - before - heads[at], 0) if at < len(heads) else plain)
    return out


def _places(starts: list[int], heads: list[int], sizes: list[int], before: int, position: int) -> Ints:
    """As above, for many records at once."""
    begins, lengths = np.array(heads, np.int64) + before, np.array(sizes, np.int64)
    plain = np.cumsum(lengths) - lengths + position
    packets = np.array(starts, np.int64)
    record = np.maximum(np.searchsorted(begins, packets, "right") - 1, 0)
    found: Ints = plain[record] + np.minimum(np.maximum(packets - begins[record], 0), lengths[record])
    return found
