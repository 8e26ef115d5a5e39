"""Finds where a frame begins in a stream whose beginning is lost: the first offset with a plausible chain of frames.

A request needs a known API key, a version near the known ones and a printable client id. A response only has a
correlation id, which must be one of the open requests' or grow from frame to frame. Offsets where a packet begins are
tried first. All offsets are tested at once, as columns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from struct import Struct
from struct import error as StructError

import numpy as np

from kwire.codec.frames import MAX_SIZE
from kwire.codec.headers import behind_tags
from kwire.schema.keys import API_VERSIONS, CONTROLLED_SHUTDOWN, PRODUCE
from kwire.session.api_versions import Kinds

REQUEST_HEADER = 14  # size, key, version, correlation id, length of the client id
NEAR = 1 << 10  # how far correlation ids of responses in a row may lie apart
CHAIN = 3  # consecutive plausible frames that make an offset certain
CANDIDATES = 2_000

request_header = Struct(">ihhih").unpack_from
response_header = Struct(">ii").unpack_from


def looks_like_request(data: bytes, at: int, kinds: Kinds) -> bool:
    """Whether a request's frame can begin at this offset. A client id that is cut off counts as plausible."""
    if len(data) - at < REQUEST_HEADER:
        return False
    size, key, version, _, client = request_header(data, at)
    highest = kinds.highest(key)
    if key == API_VERSIONS:  # a client may ask for any version: the broker tells it which there are (KIP-511)
        highest = 0x7FFF
    if highest is None or not 0 <= version <= highest or not 8 <= size <= MAX_SIZE:
        return False
    if key == CONTROLLED_SHUTDOWN and version == 0:  # which has no client id
        return bool(size == 12)
    if not -1 <= client <= size - 10:
        return False
    name = data[at + 14 : at + 14 + max(client, 0)]
    try:
        return bool(str(name, "utf-8").isprintable())
    except UnicodeDecodeError:
        return len(name) < int(client)  # cut in the middle of a character


def begins_request(data: bytes, kinds: Kinds) -> bool:
    """Whether these bytes, too few for a header, can be the first ones of a request."""
    if not data or int.from_bytes(data[:4].ljust(4, b"\0"), "big") > MAX_SIZE:
        return False
    if len(data) < 4:
        return True
    highest = kinds.highest(int.from_bytes(data[4:6].ljust(2, b"\0"), "big"))
    if highest is None or int.from_bytes(data[:4], "big") < 8:
        return False
    return len(data) < 8 or int.from_bytes(data[6:8], "big") <= highest


def reads_as_request(data: bytes, at: int, kinds: Kinds, named: bool = True) -> bool:
    """Whether a request begins at this offset, and not a response, whose correlation id looks like key and version
    (below 2**16 those of Produce) without a client id. named: reject what may be such a response."""
    if not looks_like_request(data, at, kinds):
        return False
    size, key, version, _, client = request_header(data, at)
    kind, end = kinds.of(key, version), at + 4 + size
    if not kind.supported or end > len(data):
        return bool(client > 0 or (not named and key != PRODUCE))
    if key == PRODUCE and client <= 0 and named:
        return False
    start = at + 12 if kind.request_header == 0 else at + 14 + max(client, 0)
    if kind.request_header == 2:
        start = behind_tags(data, start)
    try:
        last = kind.scan_request(data[:end], start, [])
    except (IndexError, ValueError, StructError):
        return False
    return bool(last == end or (last < end and key != PRODUCE))


def find_request(data: bytes, starts: list[int], kinds: Kinds) -> int | None:
    """The offset of the first plausible request, None when there is none. starts: offsets where packets begin."""
    for at in starts:
        if looks_like_request(data, at, kinds) and _requests_from(data, at, kinds) is not False:
            return at
    for at in _request_places(data, kinds):
        if looks_like_request(data, at, kinds) and _requests_from(data, at, kinds):
            return at
    return None


def _requests_from(data: bytes, at: int, kinds: Kinds) -> bool | None:
    """Whether requests follow each other from there: True, False, None when the data ends too early to tell."""
    for _ in range(CHAIN):
        if at == len(data):
            return True
        if len(data) - at < REQUEST_HEADER:
            return None
        if not looks_like_request(data, at, kinds):
            return False
        at += 4 + request_header(data, at)[0]
    return True if at <= len(data) else None


def _request_places(data: bytes, kinds: Kinds) -> Iterator[int]:
    n = len(data) - REQUEST_HEADER + 1
    if n <= 0:
        return
    size = np.ndarray((n,), ">i4", data, 0, (1,))
    key = np.ndarray((n,), ">u2", data, 4, (1,))
    version = np.ndarray((n,), ">u2", data, 6, (1,))
    client = np.ndarray((n,), ">i2", data, 12, (1,))
    fine = (size >= 8) & (size <= MAX_SIZE) & (client >= -1) & (client < 256)
    places = np.flatnonzero(fine)
    places = places[version[places] <= kinds.all_highest[key[places]]]
    yield from places[:CANDIDATES].tolist()


def find_response(data: bytes, starts: list[int], asked: Collection[int]) -> int | None:
    """The offset of the first plausible response, None when there is none. asked: open correlation ids."""
    for at in starts:
        if _responses_from(data, at, asked, True):
            return at
    if not asked:
        return None
    n = len(data) - 7
    if n <= 0:
        return None
    size = np.ndarray((n,), ">i4", data, 0, (1,))
    ids = np.ndarray((n,), ">i4", data, 4, (1,))
    places = np.flatnonzero((size >= 4) & (size <= MAX_SIZE))
    wanted = np.fromiter(asked, np.int64, len(asked))
    for at in places[np.isin(ids[places], wanted)][:CANDIDATES].tolist():
        if _responses_from(data, at, asked, False):
            return int(at)
    return None


def _responses_from(data: bytes, at: int, asked: Collection[int], packet: bool) -> bool:
    """Whether consecutive responses begin there. packet: a packet begins there, so less proof is needed."""
    seen, last, certain = 0, None, False
    while seen < CHAIN:
        if at == len(data):
            break
        if len(data) - at < 8:
            return False
        size, ident = response_header(data, at)
        if not 4 <= size <= MAX_SIZE:
            return False
        known = ident in asked
        if not known and asked and not packet:
            return False
        if last is not None and not known and not 0 < ident - last < NEAR:
            return False
        certain |= known
        last = ident
        at += 4 + size
        seen += 1
        if at > len(data):  # cut: one that was asked for, in a packet of its own, is enough
            return packet and (certain or seen > 1)
    return certain or (packet and not asked) or seen >= CHAIN
