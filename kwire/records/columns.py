"""A batch's records as numpy columns, without a Python object per record.

The strategy: where each record starts follows from the lengths before it. Runs of records of one size are strides; of
other sizes the starts are guessed all at once, and checked; what remains is walked in a tight loop. After that
everything is vectorised: the i-th varint of all records is read together, by index into the buffer. Keys and values
stay where they are; columns hold their places.
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kwire.errors import DecodeError
from kwire.records import batch as v2
from kwire.records.compression import LIMIT, decompress
from kwire.wire.varint import read_uvarint

Ints = NDArray[np.int64]
RUN = 16  # records of one size in a row from which strides pay
RUNS = 8  # of them before something else is tried: records of one size grow with the digits of their deltas
NEAR = 8  # guesses among which the record before one is looked for
ROUNDS = 2  # that thin out the guesses
CHUNK = 1 << 16  # bytes looked at in one go; larger temporary arrays cost page faults
SPARSE = 16  # zero bytes a record up to which guessing pays
MAX_GUESSES = 1 << 22  # bounds the memory: about 80 bytes a guess
SMALLEST = 7  # bytes of a record with neither key nor value


class RecordColumns(NamedTuple):
    """n records in columns of length n. Starts count in buffer; a length of -1 is null.

    offsets are absolute, timestamps ms since the epoch; header_counts tell how many headers each record has, which lie,
    not looked at, from header_starts to header_ends.
    """

    buffer: bytes
    offsets: Ints
    timestamps: Ints
    key_starts: Ints
    key_lengths: Ints
    value_starts: Ints
    value_lengths: Ints
    header_counts: Ints
    header_starts: Ints
    header_ends: Ints


def columns(data: bytes, start: int = 0, end: int | None = None, limit: int = LIMIT) -> RecordColumns:
    """The records of the batch of magic 2 that lies in data from start to end. Raises DecodeError, CompressionError."""
    stop = len(data) if end is None else end
    if stop - start < v2.SIZE:
        raise DecodeError("records", "", start, f"needs {v2.SIZE} bytes at offset {start}, has {stop - start}")
    header = v2.read_header(data, start)
    if header.magic != 2:
        raise DecodeError("records", "Magic", start + v2.MAGIC_AT, f"columns are of magic 2, this is {header.magic}")
    buffer, first = data, start + v2.SIZE
    if header.compression != "none":
        buffer, first = decompress(header.compression, data[first:stop], limit), 0
        stop = len(buffer)
    try:
        return of_payload(buffer, first, stop, header)
    except (IndexError, ValueError) as error:
        raise DecodeError("records", "", start, f"{header.record_count:,} records do not lie in the batch") from error


def of_payload(buffer: bytes, pos: int, end: int, header: v2.Header) -> RecordColumns:
    """The records that fill buffer from pos to end, decompressed if they were. Raises IndexError or ValueError when
    they do not."""
    return _columns(buffer, _starts(buffer, pos, end, header.record_count), end, header)


def _starts(buffer: bytes, pos: int, end: int, count: int) -> Ints:
    """Where each record begins, at its length. Raises IndexError when count records do not fill pos to end."""
    if not 0 <= count * SMALLEST <= end - pos:
        raise IndexError
    data = np.frombuffer(buffer, dtype=np.uint8)
    pieces: list[Ints] = []
    left = count
    for _ in range(RUNS):
        run, stride = _run(buffer, data, pos, end, left) if left > RUN else (0, 0)
        if run <= RUN:
            break
        pieces.append(pos + stride * np.arange(run, dtype=np.int64))
        pos += stride * run
        left -= run
    rest = _guess(data, pos, end, left) if left > RUN else None
    pieces.append(_walk(buffer, pos, end, left) if rest is None else rest)
    return np.concatenate(pieces)


def _guess(data: NDArray[np.uint8], pos: int, end: int, count: int) -> Ints | None:
    """Where count records begin, found by the zero byte (their attributes) behind their lengths, of one byte or two.

    Of the places found, those stay that another one's length leads to; None unless they then are a chain that fills
    pos to end, which makes the guess certain.
    """
    found: list[Ints] = []
    for at in range(pos + 1, end, CHUNK):
        found.append(np.flatnonzero(data[at : min(at + CHUNK, end)] == 0) + (at - pos - 1))
        if sum(map(len, found)) > min(SPARSE * count, MAX_GUESSES):
            return None
    bodies = np.concatenate(found)
    low, high = data[pos:].take(bodies), data.take(bodies + (pos - 1), mode="clip")
    two = (low < 128) & (high > 127) & (bodies > 0)  # the first one has no byte in front of its length
    even = np.where(two, high, low) & 1 == 0  # an odd length is negative
    likely = np.flatnonzero(even & (two | (low >= 2 * (SMALLEST - 1))))
    two, bodies = two[likely], bodies[likely] + (pos + 1)
    low, high = low[likely].astype(np.int64), high[likely]
    begins = bodies - 1 - two
    ends = bodies + np.where(two, (low << 6) + (high >> 1) - 64, low >> 1)
    for _ in range(ROUNDS):
        led_to = begins == pos
        for back in range(1, NEAR):
            led_to[back:] |= begins[back:] == ends[:-back]
        begins, ends = begins[led_to], ends[led_to]
    if len(begins) != count or begins[0] != pos or ends[-1] != end or bool((begins[1:] != ends[:-1]).any()):
        return None
    return begins


def _walk(buffer: bytes, pos: int, end: int, count: int) -> Ints:
    """Where each of count records begins. Lengths of one and two bytes are inlined; a negative one is found out when
    all lengths are read."""
    walked = array("q")
    append = walked.append
    for _ in range(count):
        append(pos)
        size = buffer[pos]
        if size < 128:
            pos += 1 + (size >> 1)
        elif (high := buffer[pos + 1]) < 128:
            pos += (high << 6) + (size >> 1) - 62  # two bytes, less the 64 that the first one's flag adds
        else:
            size, pos = read_uvarint(buffer, pos, end)
            pos += size >> 1
    if pos != end:
        raise IndexError
    return np.frombuffer(walked, dtype=np.int64)


def _run(buffer: bytes, data: NDArray[np.uint8], pos: int, end: int, left: int) -> tuple[int, int]:
    """How many records from pos on have the very length bytes of the first, and how many bytes each takes."""
    size, body = read_uvarint(buffer, pos, end)
    head = body - pos
    stride = head + (size >> 1)
    fit = min(left, (end - pos) // stride)
    for tried in (min(fit, RUN + 1), fit):  # a look at a few before the look at all
        run = tried
        for index in range(head if tried else 0):
            column = data[pos + index : pos + index + stride * (tried - 1) + 1 : stride]
            other = column != column[0]
            first = int(other.argmax())
            run = min(run, first) if other[first] else run
        if run < tried:
            break
    return run, stride


def _columns(buffer: bytes, starts: Ints, end: int, header: v2.Header) -> RecordColumns:
    data = np.frombuffer(buffer, dtype=np.uint8)
    sizes, pos = _varints(data, starts, 32)
    ends = pos + sizes
    pos = pos + 1  # behind the attributes
    times, pos = _varints(data, pos, 64)
    deltas, pos = _varints(data, pos, 32)
    key_lengths, pos = _varints(data, pos, 32)
    key_starts = pos
    value_lengths, pos = _varints(data, pos + np.maximum(key_lengths, 0), 32)
    value_starts = pos
    header_counts, pos = _varints(data, pos + np.maximum(value_lengths, 0), 32)
    if bool((pos > ends).any()) or (len(ends) and int(ends[-1]) != end):
        raise IndexError
    if bool(((pos != ends) & (header_counts == 0)).any()) or bool((header_counts < 0).any()):
        raise IndexError
    if header.log_append_time:
        timestamps = np.full(len(starts), header.max_timestamp, dtype=np.int64)
    else:
        timestamps = times + header.base_timestamp
    offsets = deltas + header.base_offset
    key_lengths, value_lengths = np.maximum(key_lengths, -1), np.maximum(value_lengths, -1)
    return RecordColumns(
        buffer, offsets, timestamps, key_starts, key_lengths, value_starts, value_lengths, header_counts, pos, ends
    )  # fmt: skip


def _varints(data: NDArray[np.uint8], pos: Ints, bits: int) -> tuple[Ints, Ints]:
    """The zigzag varints at pos, and the positions behind them. Raises IndexError beyond the buffer or too long."""
    first = data[pos]
    pos = pos + 1
    raw = first.astype(np.int64)
    more = np.flatnonzero(first > 127)
    if not len(more):
        return (raw >> 1) ^ -(raw & 1), pos
    raw[more] &= 0x7F
    shift = 7
    while len(more):
        if shift >= bits:
            raise IndexError
        byte = data[pos[more]]
        pos[more] += 1
        raw[more] |= (byte.astype(np.int64) & 0x7F) << shift
        more = more[byte > 127]
        shift += 7
    unsigned = raw.view(np.uint64)
    return (unsigned >> np.uint64(1)).view(np.int64) ^ -(raw & 1), pos
