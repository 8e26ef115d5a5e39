"""One client's connection without its sockets: bytes of either side in, bytes for the other side out.

Frames pass as they come, in whatever pieces. Of each request only the header is looked at, so that its answer, which
comes in the same order, is known by its correlation id. Only frames with an edit wait until they are whole. A Produce
with acks=0 gets no answer; after SaslHandshake v0 there are tokens without headers. A judge may keep requests back, and
answer them when their turn has come.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from struct import Struct, unpack_from
from struct import error as StructError
from typing import NamedTuple, Protocol

from kwire.broker.service import foreign
from kwire.codec.acks import acks_place
from kwire.codec.headers import behind_tags, request_header_version
from kwire.codec.library import builtin_library
from kwire.proxy.cutter import Cutter, Dead, Edit, End, Piece, Short
from kwire.proxy.types import PeerRefused
from kwire.schema.keys import PRODUCE, SASL_HANDSHAKE
from kwire.wire.varint import VarintError

SIZE = Struct(">i")
HEAD = Struct(">ihhi")
MOST_HEAD = 100_000  # bytes up to a Produce's acks: two texts of 32 KiB each, and tags


class PendingRequest(NamedTuple):
    """A request, as its header says. correlation None: a token of SASL, which has no header."""

    key: int
    version: int
    correlation: int | None


class Fate(NamedTuple):
    """What becomes of a request that was judged. forward: the broker gets it. made: what the client gets in its place,
    when its turn has come. after: what is made of the broker's answer."""

    forward: bool
    made: list[Piece] | None = None
    after: Edit | None = None


class Judging(Protocol):
    """Who keeps requests back. active: whether headers are to be shown to concerns(), which says whether a request is
    to be judged; client: its client id."""

    @property
    def active(self) -> bool: ...

    def concerns(self, asked: PendingRequest, client: str | None) -> bool: ...

    def judge(self, frame: bytes, asked: PendingRequest, client: str | None) -> Fate | None: ...


class Awaited(NamedTuple):
    """An answer that is due: the broker's, with what a judge makes of it, or one that was made here."""

    asked: PendingRequest
    after: Edit | None = None
    made: list[Piece] | None = None


class Edits(NamedTuple):
    """What changes whole frames, size prefix included, of a kind; None: they pass as they are. request is asked when a
    request begins, response when its answer does. token: SASL tokens without headers."""

    request: Callable[[PendingRequest], Edit | None] = lambda _: None
    response: Callable[[PendingRequest], Edit | None] = lambda _: None
    token: Edit | None = None


class Link:
    """requests() and responses() take what came and give what goes on; responses(b"") gives what is due meanwhile. Both
    raise PeerRefused. lenient: requests may stay without an answer, as where one was dropped."""

    def __init__(self, edits: Edits, largest: int, judge: Judging | None = None, lenient: bool = False) -> None:
        self.edits, self.largest, self.judge, self.lenient = edits, largest, judge, lenient
        self.waiting: deque[Awaited] = deque()
        self.requests = Cutter(self._request)
        self.responses = Cutter(self._response, self._made if judge else None)
        self.ending = False  # an end is due: what the client still asks is not looked at
        self._tokens = False  # SaslHandshake v0 was asked, and no request with a header since

    @property
    def held(self) -> int:
        """Bytes that wait for the rest of their frame."""
        return len(self.requests.held) + len(self.responses.held)

    def let_go(self) -> None:
        """Nothing that waits goes on any more."""
        self.requests.held, self.responses.held = bytearray(), bytearray()

    def _size(self, data: bytes | bytearray, at: int, who: str) -> int:
        if len(data) - at < 4:
            raise Short(4)
        size: int = SIZE.unpack_from(data, at)[0]
        if not 0 <= size <= self.largest:
            raise PeerRefused(f"{who} sends a frame of {size:,} bytes, the limit is {self.largest:,}{foreign(size)}")
        return 4 + size

    def _request(self, data: bytes | bytearray, at: int) -> tuple[int, Edit | None]:
        total = self._size(data, at, "the client")
        have = len(data) - at
        if have < min(total, 14):
            raise Short(min(total, 14))
        if self.ending:
            return total, lambda _: b""
        if self._tokens and not _plausible(data, at, total):
            self.waiting.append(Awaited(PendingRequest(-1, -1, None)))
            return total, self.edits.token
        if total < 12:
            raise PeerRefused(f"the client sends a request of {total - 4} bytes, too few for a header")
        _, key, version, correlation = HEAD.unpack_from(data, at)
        asked = PendingRequest(key, version, correlation)
        answered = key != PRODUCE or _acks(data, at, total, version) != 0
        edit = self.edits.request(asked)
        if self.judge is not None and self.judge.active:
            client = _client(data, at, total)
            if self.judge.concerns(asked, client):
                return total, lambda frame: self._judged(frame, asked, client, answered)
        self._tokens = key == SASL_HANDSHAKE and version == 0
        if answered:
            self.waiting.append(Awaited(asked))
        return total, edit

    def _judged(self, frame: bytes, asked: PendingRequest, client: str | None, answered: bool) -> bytes | list[Piece]:
        """A whole request, and what the judge lets of it pass."""
        assert self.judge is not None
        fate = self.judge.judge(frame, asked, client) or Fate(True)
        made = fate.made
        if fate.forward:
            self._tokens = asked.key == SASL_HANDSHAKE and asked.version == 0
            if answered:
                self.waiting.append(Awaited(asked, fate.after))
            request = self.edits.request(asked)
            return request(frame) if request else frame
        if made and isinstance(made[0], Dead):  # at once, whatever is due
            return made
        self.ending = any(isinstance(piece, End) for piece in made or ())
        if made and (answered or self.ending):
            self.waiting.append(Awaited(asked, None, made))
        return b""

    def _made(self) -> list[Piece]:
        """Answers that were made here and are next."""
        out: list[Piece] = []
        while self.waiting and (made := self.waiting[0].made) is not None:
            out += made
            self.waiting.popleft()
        return out

    def _response(self, data: bytes | bytearray, at: int) -> tuple[int, Edit | None]:
        total = self._size(data, at, "the broker")
        if not self.waiting:
            raise PeerRefused("the broker answers what nobody asked")
        asked = self.waiting[0].asked
        if asked.correlation is not None:
            if total < 8:
                raise PeerRefused(f"the broker sends an answer of {total - 4} bytes, too few for a header")
            if len(data) - at < 8:
                raise Short(8)
            (found,) = SIZE.unpack_from(data, at + 4)
            if found != asked.correlation and not self._skip_to(found):
                raise PeerRefused(f"the broker answers {found}, due is the answer to {asked.correlation}")
        due = self.waiting.popleft()
        edit = self.edits.token if due.asked.correlation is None else self.edits.response(due.asked)
        return total, _both(edit, due.after) if due.after else edit

    def _skip_to(self, correlation: int) -> bool:
        """Leaves out requests that got no answer, where that may be."""
        ids = [each.asked.correlation for each in self.waiting] if self.lenient else []
        if correlation not in ids:
            return False
        for _ in range(ids.index(correlation)):
            self.waiting.popleft()
        return True


def _both(first: Edit | None, then: Edit) -> Edit:
    """One edit after another one, which gives bytes."""

    def edit(frame: bytes) -> bytes | list[Piece]:
        between = first(frame) if first is not None else frame
        return then(between) if isinstance(between, bytes) else between

    return edit


def _client(data: bytes | bytearray, at: int, total: int) -> str | None:
    """The client id of a request; None where there is none. Raises Short."""
    if total < 14:
        return None
    (length,) = unpack_from(">h", data, at + 12)
    end = 14 + max(length, 0)
    if end > total or length < 0:
        return None
    if len(data) - at < end:
        raise Short(end)
    return data[at + 14 : at + end].decode("utf-8", "replace")


def _acks(data: bytes | bytearray, at: int, total: int, version: int) -> int:
    """What a Produce request asks for; -1 where its header cannot be read. Raises Short."""
    message = builtin_library().api_message(PRODUCE, request=True)
    have = len(data) - at
    try:
        pos = at + 14 + max(int(unpack_from(">h", data, at + 12)[0]), 0)
        if request_header_version(PRODUCE, version, message) == 2:
            pos = behind_tags(data, pos)
        pos = acks_place(version, data, pos)
        if pos + 2 - at > total:
            return -1
        return int(unpack_from(">h", data, pos)[0])
    except (VarintError, StructError) as error:
        if have < min(total, MOST_HEAD):
            raise Short(min(total, MOST_HEAD, max(2 * have, 512))) from error
    return -1


def _plausible(data: bytes | bytearray, at: int, total: int) -> bool:
    """Whether a frame begins as a request that kwire knows, and not as a token would."""
    if total < 14:
        return False
    _, key, version, _ = HEAD.unpack_from(data, at)
    message = builtin_library().api_message(key, request=True)
    (name,) = unpack_from(">h", data, at + 12)
    return message is not None and version in message.versions and -1 <= name <= total - 14
