"""Records in the pieces of a stream: which pieces belong together, and the piece that decrypted records make."""

from __future__ import annotations

import re
from bisect import bisect_right

from kwire.capture.streams import Piece
from kwire.capture.tls.protection import HEADER, LARGEST, header_at

CHANGE_CIPHER, ALERT, HANDSHAKE, APPLICATION = 20, 21, 22, 23
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


def packet_at(piece: Piece, offset: int) -> int:
    """Which of its packets brought the byte at an offset, as an index."""
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


def decrypted(piece: Piece, heads: list[int], parts: list[bytes], lead: int, position: int) -> Piece:
    """The contents of records as a piece at this position. heads: where the records begin in piece's data; lead: bytes
    between a record's header and what is encrypted.

    Each byte counts as brought by the packet that brought its encrypted form, as these lie in the same order."""
    starts, times, numbers = piece.starts, piece.times, piece.numbers
    last = len(starts) - 1
    out: list[int] = []
    packets: list[int] = []
    before = piece.position + HEADER + lead
    at = max(bisect_right(starts, before + heads[0]) - 1, 0)
    plain, said = position, -1
    for head, part in zip(heads, parts, strict=True):
        size = len(part)
        if not size:
            continue
        begin = before + head
        while at < last and starts[at + 1] <= begin:
            at += 1
        if at != said:
            out.append(plain)
            packets.append(at)
        while at < last and starts[at + 1] < begin + size:
            at += 1
            out.append(plain + starts[at] - begin)
            packets.append(at)
        said = at
        plain += size
    return Piece(position, b"".join(parts), out, [times[at] for at in packets], [numbers[at] for at in packets])
