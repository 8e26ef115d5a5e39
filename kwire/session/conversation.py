"""One connection: from its two streams to frames, in an order in which requests and responses can be paired.

Regular parts are left to vectorized.py, the rest is read frame by frame: messages.py reads headers, pairing.py matches
responses to requests.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import cached_property
from struct import Struct
from typing import TYPE_CHECKING

from kwire.capture.streams import HELD, PACKET_COST, Piece, SegmentRun
from kwire.codec.verdict import judge
from kwire.session import roles
from kwire.session.acks import is_silent
from kwire.session.connection_info import ConnectionInfo
from kwire.session.exchange import Exchange
from kwire.session.framing import Framer, Raw, Skipped
from kwire.session.messages import FrameMessages
from kwire.session.pairing import Pairing
from kwire.session.pieces import behind, up_to
from kwire.session.resync import find_request, find_response
from kwire.session.twins import NO_HEADS, NOTHING, Head, Twins, heads_of

if TYPE_CHECKING:
    from kwire.capture.segmenter import CaptureMoment
    from kwire.session.vectorized import Vectorized

NO_PIECES: tuple[deque[Piece], deque[Piece]] = deque(maxlen=0), deque(maxlen=0)
ROUNDS = 16  # how often vectorized may read a byte, on average

id_at = Struct(">i").unpack_from


class Conversation:
    """pump() reads what arrived since the last call; finish() ends the connection.

    info: filled in on the way. done(exchange) is called for every exchange as it becomes complete.
    """

    def __init__(
        self, info: ConnectionInfo, known: roles.Brokers, done: Callable[[Exchange], None], max_size: int,
        twins: Twins | None = None,
    ) -> None:  # fmt: skip
        self.info, self.connection = info, info.tcp
        self.known, self.done, self._twins, self._max_size = known, done, twins, max_size
        self._compared = False  # with other connections, by its first bytes
        self._pieces: tuple[list[Piece], list[Piece]] = [], []  # while the sides are not known
        self._midstream = self.connection.opener is None
        self.messages = FrameMessages(info)
        self._left = NO_PIECES  # pieces still to be read
        self._few = self._worth = 0  # frames to read one by one; bytes that vectorized may still read
        self._block: list[Piece] = []  # all request pieces of this pump
        self._start: Framer | None = None  # a framer at their beginning, if that is inside a frame
        self._open_ids: frozenset[int] = frozenset()  # correlation ids open before them
        self._ids: frozenset[int] | None = None  # these and those of the requests in _block

    @cached_property
    def pairing(self) -> Pairing:
        """Made when the sides are known, as the framers are: connections that are not Kafka need none."""
        return Pairing(self.info, self.complete)

    @cached_property
    def requests(self) -> Framer:
        return Framer(self._find_request, self._midstream, self._max_size)

    @cached_property
    def responses(self) -> Framer:
        return Framer(self._find_response, self._midstream, self._max_size)

    @property
    def indexes(self) -> list[int]:
        """The number of requests and responses so far."""
        return self.messages.indexes

    @property
    def _framers(self) -> tuple[Framer, ...]:
        """The framers of requests and responses; none where frames are not read."""
        return (self.requests, self.responses) if self._reads else ()

    @property
    def _reads(self) -> bool:
        """Whether frames are read: the sides are known, and it is Kafka."""
        return self.info.client is not None and self.info.verdict is None

    @property
    def oldest(self) -> CaptureMoment | None:
        """The moment of the oldest message that waits for its counterpart or for missing bytes; None: nothing waits."""
        found = self.pairing.oldest if self._reads else None
        streams = self.connection.streams
        first: list[Piece | SegmentRun] = [stream.pieces[0] for stream in streams if stream.pieces]
        first += [stream.held[-1][1] for stream in streams if self._reads and stream.held and not stream.lone]
        began = [self.info.moment(one.numbers[0], one.times[0]) for one in first]
        return min(began if found is None else [found, *began], default=None)

    @property
    def waiting(self) -> int:
        """Bytes kept for incomplete frames."""
        pending = sum(len(piece.data) for pieces in self._pieces for piece in pieces)
        return pending + sum(framer.waiting for framer in self._framers)

    @property
    def cost(self) -> int:
        """Memory that the waiting bytes take, about, in bytes: every packet adds a fixed cost."""
        waiting = *self._pieces, *(stream.pieces for stream in self.connection.streams)
        pending = sum(len(piece.data) + PACKET_COST * len(piece.starts) for pieces in waiting for piece in pieces)
        return pending + sum(framer.cost for framer in self._framers)

    def known_from(self, client: int, name: str = "") -> None:
        """Sets the client's side before any byte is read."""
        self.info.client, self.connection.known = client, True
        self.info.name = name or self.info.full_name

    def compare(self, heads: tuple[Head, Head]) -> None:
        """Looks at its first bytes whether it is a second recording of a connection; remembers a head that comes later,
        as that of the answers may, for others to be compared with. heads: of its streams' first bytes."""
        if self._twins is None:
            return
        info = self.info
        if not self._compared:
            info.heads, self._compared = heads, True
            info.twin_of = self._twins.of(self.connection, heads, info.capture)
        elif heads != NO_HEADS:
            self._twins.meet(self.connection, heads, info.capture)
            info.heads = heads[0] if heads[0][0] else info.heads[0], heads[1] if heads[1][0] else info.heads[1]
        if info.twin_of or NOTHING not in info.heads:
            self._twins = None

    def stand(self, taken: tuple[int, int], ends: tuple[int, int]) -> None:
        """Starts behind frames that were read elsewhere: their counts and the stream positions behind them."""
        self._compared = True
        for turn, framer in enumerate((self.requests, self.responses)):
            framer.frames, framer.position, self.indexes[turn] = taken[turn], ends[turn], taken[turn]

    def pump(self, vectorized: Vectorized | None = None) -> None:
        """Reads what is new in both streams; with vectorized, the regular part is read when that is run."""
        new = self._arrived()
        if not any(new) and not (self.connection.finished and any(self._pieces)):
            return
        if self._twins is not None and not self.info.twin_of and any(new):
            self.compare(heads_of(new))
        if self.info.twin_of:
            return  # a second recording: the first one is read
        if self.info.verdict:
            self.info.verdict.more(new)
            return
        if self.info.client is None:
            again = not any(new)
            new[0][:0], new[1][:0] = self._pieces
            decided = roles.decide(self.connection, new, self.known, self.info.kinds, again)
            self._pieces = new if decided is None else ([], [])
            if decided is None:
                return
            if isinstance(decided, roles.NotKafka):
                self.info.verdict, self.info.client = decided, self.connection.opener
                return
            self.info.client, self.connection.known = decided, True
            self.known.add(self.connection.ends[1 - decided])
            streams = self.connection.streams
            streams[0].pieces, streams[1].pieces = new
            new = self._arrived()
            if not any(new):
                return
        assert self.info.client is not None
        self.info.name = self.info.full_name
        self._left = deque(new[self.info.client]), deque(new[1 - self.info.client])
        self._block, self._ids, self._open_ids = new[self.info.client], None, frozenset(self.pairing.ids)
        self._start = None if self.requests.clean else self.requests.fork()
        for jumps, pieces in zip(self.messages.jumps, self._left, strict=True):
            jumps += [(one.position, cut.frame or 0) for one in pieces if (cut := one.left_out) is not None]
        if vectorized is None or any(self.messages.jumps):
            self.read_rest()
        else:
            self._few, self._worth = 1, ROUNDS * sum(len(piece.data) for side in new for piece in side)
            self._go_on(vectorized)

    def _arrived(self) -> roles.Both:
        """Takes the pieces of both streams. Where one lacks bytes that may still come, both are taken up to there only,
        since a response whose request is in the hole would look like an orphan."""
        streams = self.connection.streams
        new = streams[0].pieces, streams[1].pieces
        streams[0].pieces, streams[1].pieces = [], []
        holes = any(stream.held for stream in streams) and self._reads and not self.connection.finished
        if not holes or sum(len(piece.data) for pieces in new for piece in pieces) >= HELD:
            return new
        client = self.info.client or 0
        asking, answering = streams[client], streams[1 - client]
        if answering.held:
            new[client][:], asking.pieces = up_to(new[client], answering.held[-1][1].numbers[0])
        if asking.held:
            new[1 - client][:], answering.pieces = up_to(new[1 - client], asking.latest[0])
        return new

    def _go_on(self, vectorized: Vectorized) -> None:
        """Offers the regular part up to the next hole to vectorized; what precedes it is read frame by frame, and so is
        everything once the budget (_worth) is used up."""
        requests, responses = self._left
        while requests and self.info.login.token_after is None and self._worth > 0:
            if self._is_regular and not requests[0].missing and not (responses and responses[0].missing):
                pieces = _before_hole(requests), _before_hole(responses)
                self._worth -= sum(len(piece.data) for side in pieces for piece in side)
                vectorized.offer(self, *pieces)
                return
            if not responses:
                break
            self._read_few()
        self.read_rest()

    @property
    def _is_regular(self) -> bool:
        """Whether both sides are at the beginning of a frame and nothing is open."""
        return self.pairing.idle and self.requests.clean and self.responses.clean

    def _read_few(self, few: int = 1) -> None:
        """Reads a few frames so that both sides may become regular. few: requests to read when nothing is open."""
        pairing = self.pairing
        if pairing.open:
            few = min(len(pairing.early), 1)
        elif pairing.early:
            few = len(pairing.early)
        self._requests(self.requests.take(self._left[0], few))
        if self.info.login.token_after is None:  # else read_rest reads the responses: requests decide which are tokens
            self._responses(self.responses.take(self._left[1], len(pairing.open)))

    def read_rest(self) -> None:
        """Reads all remaining pieces, frame by frame."""
        asked = self.requests.take(self._left[0])
        self._exchange(asked, self.responses.take(self._left[1]))
        self._block, self._start = [], None
        if not self.pairing.idle:
            held = self.info.client is not None and bool(self.connection.streams[self.info.client].held)
            self.pairing.limit(self.connection.last_time, held)

    def put_back(self, pieces: tuple[list[Piece], list[Piece]]) -> None:
        """Takes pieces back that vectorized did not read."""
        for left, side in zip(self._left, pieces, strict=True):
            left.extendleft(reversed(side))

    def resume(
        self, vectorized: Vectorized, pieces: tuple[list[Piece], list[Piece]], taken: tuple[int, int],
        ends: tuple[int, int],
    ) -> None:  # fmt: skip
        """Goes on behind what vectorized read. taken: frames, ends: bytes, each of requests and responses."""
        self.info.exchanges += taken[0]
        left = []
        for turn, (framer, side) in enumerate(zip((self.requests, self.responses), pieces, strict=True)):
            position = (side[0].position if side else 0) + ends[turn]
            if taken[turn]:
                framer.frames += taken[turn]
                framer.position = position
                self.indexes[turn] += taken[turn]
            left.append(behind(side, position))
        if not (any(left) or any(self._left)):
            self._block, self._start = [], None
            return
        self.put_back((left[0], left[1]))
        self._few = 1 if taken[0] > self._few else 2 * self._few
        self._read_few(self._few)
        self._go_on(vectorized)

    def _exchange(self, requests: list[Raw], responses: list[Raw]) -> None:
        """Pairs frames that came together. Usually the next response is the request's own: then no state is needed."""
        taken = paired = 0
        pairing = self.pairing
        if pairing.idle:
            count = len(responses)
            for raw in requests:
                request = self.messages.request(raw)
                taken += 1
                exchange = Exchange(self.info, request)
                if paired < count and not request.token:
                    answer = responses[paired]
                    # bytes 8 to 12 of a request and 4 to 8 of a response are the correlation id
                    if (
                        answer.data[4:8] == raw.data[8:12]
                        and len(answer.data) >= 8
                        and not is_silent(request.api, request.data, request.body_at)
                    ):
                        paired += 1
                        pairing.pair(exchange, self.messages.response(answer))
                        continue
                pairing.asked(exchange)
                if pairing.open:
                    break
        self._requests(requests[taken:])
        self._responses(responses[paired:])

    def finish(self, why: str = "the capture ended") -> None:
        """Ends the connection: open requests stay without a response. why: the reason noted on them."""
        self.pump()
        self.messages.finished = True
        if self._reads:
            assert self.info.client is not None
            reason = self.connection.ending or why
            ends = [reason if stream.ended or self.connection.reset else why for stream in self.connection.streams]
            self._requests(self.requests.finish(ends[self.info.client], False))
            self._responses(self.responses.finish(ends[1 - self.info.client], False))
            self.info.foreign = self.responses.foreign
            foreign = judge(self.info.foreign) if self.info.foreign else None
            if foreign is not None:
                reason = f"the broker answered with {foreign.what} ({foreign.detail}), then {reason}"
            self.pairing.finish(reason)

    def take_skipped(self) -> Iterator[tuple[str, Skipped]]:
        """Ranges of which no frames could be made, each given once, with "request" or "response"."""
        for side, framer in zip(("request", "response"), self._framers, strict=False):
            for skipped in framer.take_skipped():
                yield side, skipped

    def give_up(self) -> None:
        """Drops incomplete frames, to bound memory."""
        self._pieces = [], []
        for framer in self._framers:
            framer.give_up()

    def release(self) -> None:
        """Breaks its reference cycles, so that its memory is freed at once."""
        for framer in self._framers:
            framer.search = _nothing
        self.__dict__.pop("pairing", None)

    def complete(self, exchange: Exchange) -> None:
        """Hands on an exchange that will not change any more."""
        self.info.exchanges += 1
        self.done(exchange)

    def _requests(self, frames: list[Raw]) -> None:
        for raw in frames:
            self.pairing.asked(Exchange(self.info, self.messages.request(raw)))

    def _responses(self, frames: list[Raw]) -> None:
        for raw in frames:
            self.pairing.answered(self.messages.response(raw), self.info.login.token_after is not None)

    def _find_request(self, data: bytes, starts: list[int]) -> int | None:
        return find_request(data, starts, self.info.kinds)

    def _find_response(self, data: bytes, starts: list[int]) -> int | None:
        if not self._block:
            return find_response(data, starts, self.pairing.ids)
        if self._ids is None:
            framer = self._start or Framer(self._find_request, False, self._max_size)
            asked = framer.feed(self._block)
            self._ids = self._open_ids.union(id_at(raw.data, 8)[0] for raw in asked if len(raw.data) >= 12)
        return find_response(data, starts, self._ids)


def _before_hole(pieces: deque[Piece]) -> list[Piece]:
    """Removes and returns the pieces before the first hole."""
    out = []
    while pieces and not pieces[0].missing:
        out.append(pieces.popleft())
    return out


def _nothing(_data: bytes, _starts: list[int]) -> None:
    """Finds no frame."""
