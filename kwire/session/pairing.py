"""Pairs requests with their responses.

A broker answers the requests of a connection in order (Kafka protocol guide, "Network"), so once one is answered,
earlier ones will not be. Exceptions: Produce with acks=0 is never answered; a bare SASL token is answered by a frame
without a header; responses may be captured before their requests.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from kwire.codec.quality import Quality
from kwire.session.acks import is_silent
from kwire.session.exchange import Exchange, Message
from kwire.session.messages import read_response

if TYPE_CHECKING:
    from collections.abc import Callable

    from kwire.capture.segmenter import CaptureMoment
    from kwire.session.connection_info import ConnectionInfo

LOST = "its answer is missing from the capture"
OPEN_MOST = 4096  # most requests that wait for a response
OPEN_LONGEST = 900 * 1_000_000_000  # ns; no long poll and no rebalance lasts longer
EARLY = 1_000_000_000  # ns by which an answer may be captured before its request


class Pairing:
    """asked() and answered() take messages in stream order, pair() two that belong together. complete is called with
    each exchange that will not change any more.

    open: unanswered requests, the oldest first; ids: how many of them have each correlation id; early: responses whose
    requests did not come yet.
    """

    def __init__(self, info: ConnectionInfo, complete: Callable[[Exchange], None]) -> None:
        self._info, self._complete = info, complete
        self.open: deque[Exchange] = deque()
        self.ids: dict[int, int] = {}
        self.early: list[Message] = []

    @property
    def idle(self) -> bool:
        """Whether nothing waits for its counterpart."""
        return not self.open and not self.early

    @property
    def oldest(self) -> CaptureMoment | None:
        """The moment of the oldest message that waits for its counterpart; None when none does."""
        waiting = [*self.early, self.open[0].first] if self.open else self.early
        return min((self._info.moment(message.packet, message.time) for message in waiting), default=None)

    def asked(self, exchange: Exchange) -> None:
        """Takes a request."""
        message = exchange.first
        if self.early and self._came_early(exchange):
            return
        if not message.token and is_silent(message.api, message.data, message.body_at):
            exchange.silent = True
            self._complete(exchange)
            return
        self.open.append(exchange)
        exchange.connection.asked = True
        ident = exchange.correlation_id
        if ident is not None:
            self.ids[ident] = self.ids.get(ident, 0) + 1

    def answered(self, message: Message, tokens: bool) -> None:
        """Takes a response. tokens: after SaslHandshake v0, when it may answer a token that comes later."""
        if self.open and self.open[0].first.token:
            self._pair_token(self.open.popleft(), message)
        elif tokens and not self.open:
            self.early.append(message)
        elif message.correlation_id is None:
            damaged = message.quality != Quality.OK
            _too_short(message)
            if self.open and damaged:
                self.pair(self._next(), message)
            else:
                message.guarded = self._info.login.guarded
                self._complete(Exchange(self._info, None, message))
        elif message.correlation_id not in self.ids:
            self.early.append(message)
        else:
            while self.open[0].correlation_id != message.correlation_id:
                self._unanswered(self._passed_over)
            self._orphan(len(self.early), self.open[0].first)  # earlier responses have no request
            self.pair(self._next(), message)

    def pair(self, exchange: Exchange, message: Message) -> None:
        """Completes an exchange with its response."""
        request = exchange.request
        assert request is not None
        exchange.response = message
        message.client_id, message.guarded = request.client_id, request.guarded
        kind = message.api = request.api
        if kind is not None:
            read_response(message, kind, self._info.kinds)
        self._complete(exchange)

    def limit(self, now: int, held: bool = False) -> None:
        """Gives up what waited too long, since in a capture of one direction nothing is ever answered. now: ns since
        the epoch; held: there may be requests behind a hole that is not given up yet."""
        while self.open and (len(self.open) > OPEN_MOST or self.open[0].time < now - OPEN_LONGEST):
            self._unanswered("none was captured")
        since = 0 if held else now - EARLY
        late = next((at for at, message in enumerate(self.early) if message.time >= since), len(self.early))
        self._orphan(max(late, len(self.early) - OPEN_MOST))

    def finish(self, why: str) -> None:
        """Gives up all that waits. why: noted on the requests."""
        while self.open:
            self._unanswered(why)
        self._orphan(len(self.early))

    def _next(self) -> Exchange:
        """Takes out the oldest open request."""
        exchange = self.open.popleft()
        ident = exchange.correlation_id
        if ident is not None:
            left = self.ids.get(ident, 1) - 1
            if left:
                self.ids[ident] = left
            else:
                self.ids.pop(ident, None)
        return exchange

    @property
    def _passed_over(self) -> str:
        """Why a request has no response though a later one has."""
        return LOST if self._info.answers_missing else "a later request was answered"

    def _pair_token(self, exchange: Exchange, message: Message) -> None:
        message.token, message.quality, message.correlation_id, message.guarded = True, Quality.OPAQUE, None, True
        message.note = f"the answer to a bare SASL token{self._info.identity.of_mechanism}"
        message.client_id = exchange.client_id
        exchange.response = message
        self._complete(exchange)

    def _unanswered(self, why: str) -> None:
        exchange = self._next()
        request = exchange.request
        assert request is not None
        exchange.ending = why
        if request.quality == Quality.OK and not request.token:
            request.quality, request.note = Quality.ORPHAN, f"no answer: {why}"
        self._complete(exchange)

    def _came_early(self, exchange: Exchange) -> bool:
        """Pairs a request with a response that was captured before it, if there is one."""
        if exchange.first.token:
            self._pair_token(exchange, self.early.pop(0))
            return True
        for at, message in enumerate(self.early):
            if message.correlation_id == exchange.correlation_id:
                self._orphan(at, exchange.first)
                self.early.pop(0)
                while self.open:
                    self._unanswered(self._passed_over)
                self.pair(exchange, message)
                return True
        return False

    def _orphan(self, count: int, behind: Message | None = None) -> None:
        """Gives up the first count early responses. behind: the request after theirs, if known."""
        for message in self.early[:count]:
            message.guarded = self._info.login.guarded if behind is None else behind.guarded
            if message.correlation_id is None:
                _too_short(message)
            self._complete(Exchange(self._info, None, message))
        del self.early[:count]


def _too_short(message: Message) -> None:
    if message.quality == Quality.OK:
        message.quality, message.note = Quality.MALFORMED, f"{len(message.data) - 4} bytes are no response header"
