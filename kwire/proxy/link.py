"""One client's connection without its sockets: bytes of either side in, bytes for the other side out.

Frames pass as they come, in whatever pieces. Of each request only the header is looked at, so that its answer, which
comes in the same order, is known by its correlation id. Only frames with an edit wait until they are whole. A Produce
with acks=0 gets no answer; after SaslHandshake v0 there are tokens without headers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from struct import Struct, unpack_from
from struct import error as StructError
from typing import NamedTuple

from kwire.broker.service import foreign
from kwire.codec.headers import request_header_version
from kwire.codec.library import builtin_library
from kwire.proxy.words import Refused
from kwire.wire.varint import VarintError, read_uvarint

SIZE = Struct(">i")
HEAD = Struct(">ihhi")
PRODUCE, SASL_HANDSHAKE = 0, 17
MOST_HEAD = 100_000  # bytes up to a Produce's acks: two texts of 32 KiB each, and tags

Edit = Callable[[bytes], bytes]


class Asked(NamedTuple):
    """A request, as its header says. correlation None: a token of SASL, which has no header."""

    key: int
    version: int
    correlation: int | None


class Edits(NamedTuple):
    """What changes whole frames, size prefix included, of a kind; None: they pass as they are. token: SASL tokens
    without headers."""

    request: Callable[[Asked], Edit | None] = lambda _: None
    response: Callable[[Asked], Edit | None] = lambda _: None
    token: Edit | None = None


class Short(Exception):
    """More of the frame is needed before it is known what it is; args[0]: so many bytes of it."""


class Link:
    """requests() and responses() take what came and give what goes on. Both raise Refused."""

    def __init__(self, edits: Edits, largest: int) -> None:
        self.edits, self.largest = edits, largest
        self.waiting: deque[tuple[Asked, Edit | None]] = deque()
        self.requests = _Cutter(self._request)
        self.responses = _Cutter(self._response)
        self._tokens = False  # SaslHandshake v0 was asked, and no request with a header since

    @property
    def held(self) -> int:
        """Bytes that wait for the rest of their frame."""
        return len(self.requests.held) + len(self.responses.held)

    def _size(self, data: bytes | bytearray, at: int, who: str) -> int:
        if len(data) - at < 4:
            raise Short(4)
        size: int = SIZE.unpack_from(data, at)[0]
        if not 0 <= size <= self.largest:
            raise Refused(f"{who} sends a frame of {size:,} bytes, the limit is {self.largest:,}{foreign(size)}")
        return 4 + size

    def _request(self, data: bytes | bytearray, at: int) -> tuple[int, Edit | None]:
        total = self._size(data, at, "the client")
        have = len(data) - at
        if have < min(total, 14):
            raise Short(min(total, 14))
        if self._tokens and not _plausible(data, at, total):
            self.waiting.append((Asked(-1, -1, None), self.edits.token))
            return total, self.edits.token
        if total < 12:
            raise Refused(f"the client sends a request of {total - 4} bytes, too few for a header")
        _, key, version, correlation = HEAD.unpack_from(data, at)
        asked = Asked(key, version, correlation)
        answered = key != PRODUCE or _acks(data, at, total, version) != 0
        edit = self.edits.request(asked)
        response = self.edits.response(asked)
        self._tokens = key == SASL_HANDSHAKE and version == 0
        if answered:
            self.waiting.append((asked, response))
        return total, edit

    def _response(self, data: bytes | bytearray, at: int) -> tuple[int, Edit | None]:
        total = self._size(data, at, "the broker")
        if not self.waiting:
            raise Refused("the broker answers what nobody asked")
        asked, edit = self.waiting[0]
        if asked.correlation is not None:
            if total < 8:
                raise Refused(f"the broker sends an answer of {total - 4} bytes, too few for a header")
            if len(data) - at < 8:
                raise Short(8)
            (found,) = SIZE.unpack_from(data, at + 4)
            if found != asked.correlation:
                raise Refused(f"the broker answers {found}, due is the answer to {asked.correlation}")
        self.waiting.popleft()
        return total, edit


class _Cutter:
    """One direction: what comes is cut where frames begin, and given on in as few pieces as possible.

    begins(data, at) says of the frame at a place its length, size prefix included, and its edit, once for each frame;
    it raises Short when it needs more of it."""

    def __init__(self, begins: Callable[[bytes | bytearray, int], tuple[int, Edit | None]]) -> None:
        self._begins = begins
        self.held = bytearray()  # the beginning of a frame
        self._need = 0  # bytes that held must have before it is looked at again
        self._edit: Edit | None = None  # of the frame in held, when it is known
        self._left = 0  # bytes of the current frame that pass as they come

    def __call__(self, data: bytes) -> list[bytes | memoryview]:
        out: list[bytes | memoryview] = []
        at = since = 0
        size = len(data)
        view = memoryview(data)
        while at < size:
            if self._left:
                step = min(self._left, size - at)
                self._left -= step
                at += step
            elif self.held:
                since = at = at + self._fill(view[at:], out)
            else:
                done = self._begin(data, at)
                if done is None:  # it waits for more
                    out.append(view[since:at])
                    self.held += view[at:]
                    since = at = size
                elif done:
                    total, edit = done
                    out += [view[since:at], edit(bytes(view[at : at + total]))]
                    since = at = at + total
        if since < size:
            out.append(view[since:])
        return [piece for piece in out if len(piece)]

    def _begin(self, data: bytes, at: int) -> tuple[int, Edit] | tuple[()] | None:
        """The frame at a place: () when it passes, None when it must be held, its length and edit when it is whole."""
        try:
            total, edit = self._begins(data, at)
        except Short as short:
            self._need = short.args[0]
            return None
        if edit is None:
            self._left = total
            return ()
        if len(data) - at < total:
            self._need, self._edit = total, edit
            return None
        return total, edit

    def _fill(self, data: memoryview, out: list[bytes | memoryview]) -> int:
        """Adds to what is held; gives on what is ready, and says how many bytes of data were taken."""
        taken = min(self._need - len(self.held), len(data))
        self.held += data[:taken]
        if len(self.held) < self._need:
            return taken
        if self._edit is None:
            try:
                total, edit = self._begins(self.held, 0)
            except Short as short:
                self._need = short.args[0]
                return taken
            if edit is None:
                out.append(bytes(self.held))
                self._left = total - len(self.held)
                self.held = bytearray()
                return taken
            self._need, self._edit = total, edit
            if len(self.held) < total:
                return taken
        whole, edit = bytes(self.held), self._edit
        self.held, self._edit = bytearray(), None
        out.append(edit(whole))
        return taken


def _acks(data: bytes | bytearray, at: int, total: int, version: int) -> int:
    """What a Produce request asks for; -1 where its header cannot be read. Raises Short."""
    message = builtin_library().api_message(PRODUCE, request=True)
    have = len(data) - at
    try:
        pos = _behind_text(data, at + 12, compact=False)
        flexible = request_header_version(PRODUCE, version, message) == 2
        if flexible:
            pos = _behind_tags(data, pos)
        if version >= 3:  # the transactional id
            pos = _behind_text(data, pos, compact=flexible)
        if pos + 2 - at > total:
            return -1
        return int(unpack_from(">h", data, pos)[0])
    except (VarintError, StructError) as error:
        if have < min(total, MOST_HEAD):
            raise Short(min(total, MOST_HEAD, max(2 * have, 512))) from error
    return -1


def _behind_text(data: bytes | bytearray, pos: int, compact: bool) -> int:
    if compact:
        length, pos = read_uvarint(data, pos)
        return pos + max(length - 1, 0)
    return pos + 2 + max(int(unpack_from(">h", data, pos)[0]), 0)


def _behind_tags(data: bytes | bytearray, pos: int) -> int:
    count, pos = read_uvarint(data, pos)
    for _ in range(count):
        _, pos = read_uvarint(data, pos)
        size, pos = read_uvarint(data, pos)
        pos += size
    return pos


def _plausible(data: bytes | bytearray, at: int, total: int) -> bool:
    """Whether a frame begins as a request that kwire knows, and not as a token would."""
    if total < 14:
        return False
    _, key, version, _ = HEAD.unpack_from(data, at)
    message = builtin_library().api_message(key, request=True)
    (name,) = unpack_from(">h", data, at + 12)
    return message is not None and version in message.versions and -1 <= name <= total - 14
