"""What went wrong in exchanges, each fact once: an error of the element that carries it, or an answer that never came.

Facts that are equal but for their time make a trouble: one error of one client, API and element, with how often it
came, for how long without a success between, and whether the same client then had what it asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kwire.analyze.callers import callers
from kwire.analyze.failures import About, failures_of
from kwire.analyze.findings import Reference
from kwire.codec.quality import Quality
from kwire.schema.keys import FIND_COORDINATOR, METADATA
from kwire.session.record import error_name

if TYPE_CHECKING:
    from kwire.session.batch import ExchangeBatch
    from kwire.session.exchange import Exchange
    from kwire.wire.columns import Ints

MOST = 10_000  # troubles
MOST_LOOKS = 1000  # exchanges of a client that are looked into for whether a trouble is over
SAMPLES = 8  # packets of a trouble that are kept: the first ones and the last
COORDINATED = {0: "group", 1: "transactional_id"}
UNANSWERED = 0  # stands for no error
READABLE = (Quality.OK, Quality.TRAILING, Quality.TRUNCATED)
ORPHAN = Quality.ORPHAN  # a request without an answer


class Fact(NamedTuple):
    """code: the error, UNANSWERED where no answer came, and ending says why; time: the answer's, or the request's, ns;
    proof: its packet; about: the element, by the names of a finding's about; words: the broker's own."""

    code: int
    time: int
    proof: Reference
    client_id: str
    host: str
    broker: str
    api: str
    key: int
    about: About
    words: str
    principal: str
    ending: str
    exchange: Exchange | None = None  # not in facts that are kept

    @property
    def error(self) -> str:
        """The error's name."""
        return error_name(self.code) or str(self.code) if self.code else "no answer"


def host_of(exchange: Exchange) -> str:
    """The client's address, without its port."""
    return exchange.connection.host


def facts_of(exchange: Exchange) -> Iterator[Fact]:
    """The failures in one exchange. Exchanges whose request or answer was guessed give none."""
    request, response = exchange.request, exchange.response
    kind = None if request is None else request.api
    if request is None or kind is None or request.token or request.quality not in (*READABLE, ORPHAN):
        return
    connection = exchange.connection
    common = (request.client_id or "", host_of(exchange), connection.ends[1], kind.api, kind.key)
    principal = connection.identity.principal or ""
    if response is None:
        if not exchange.silent:
            about = asked_about(exchange)
            yield Fact(UNANSWERED, request.time, Reference.of(request), *common, about, "", principal,
                       exchange.ending or "", exchange)  # fmt: skip
        return
    if not response.errors or response.quality not in READABLE:
        return
    proof = Reference.of(response)
    for one in failures_of(exchange):
        words = "; ".join(filter(None, (one.words, *(f"record {at}: {said}" for at, said in one.records[:3] if said))))
        about = dict(one.about) or asked_about(exchange)
        if kind.key == FIND_COORDINATOR and one.subject:
            about = _coordinated(exchange, one.subject)
        yield Fact(one.code, response.time, proof, *common, about, words, principal, "", exchange)


def asked_about(exchange: Exchange) -> About:
    """The one thing that a request is about; nothing where it is about several."""
    found = exchange.about
    about: About = {}
    if len(found.groups) == 1:
        about["group"] = found.groups[0]
    if len(found.transactions) == 1:
        about["transactional_id"] = found.transactions[0]
    if len(found.topics) == 1 and not about:
        ((topic, partitions),) = found.topics.items()
        about["topic"] = topic
        if len(partitions) == 1:
            about["partition"] = partitions[0]
    return about


def _coordinated(exchange: Exchange, key: str) -> About:
    body = exchange.request.body() if exchange.request else None
    kind = COORDINATED.get((body or {}).get("KeyType", 0))
    return {kind: key} if kind else {}


@dataclass(slots=True)
class Trouble:
    """Facts that are equal but for their time. over: when the client had what it asked for after the last of them, ns,
    None where that was not seen; lasted: the longest time from a first failure to the last one without a success
    between, ns; seen: when the client was last seen to ask for anything of the API, ns."""

    fact: Fact
    count: int = 1
    last: Fact = field(init=False)
    samples: list[Reference] = field(default_factory=list)
    over: int | None = None
    lasted: int = 0
    words: str = ""
    streak: int = 0  # failures since the last success, when the last one came
    most: int = 0  # of these, the most
    begun: int = 0
    looks: int = 0

    def __post_init__(self) -> None:
        self.last = self.fact = self.fact._replace(exchange=None)
        self.begun, self.streak, self.most = self.fact.time, 1, 1
        self.samples, self.words = [self.fact.proof], self.fact.words

    def again(self, fact: Fact) -> None:
        """Counts the same fact again."""
        self.count += 1
        if self.over is not None:
            self.over, self.begun, self.streak, self.looks = None, fact.time, 0, 0
        self.streak += 1
        self.most = max(self.most, self.streak)
        self.last = fact._replace(exchange=None)
        self.words = self.words or fact.words
        self.lasted = max(self.lasted, fact.time - self.begun)
        if fact.proof not in self.samples:
            del self.samples[SAMPLES - 1 :]
            self.samples.append(fact.proof)

    @property
    def about(self) -> About:
        """As a finding's: the element, and who asked for it."""
        fact = self.fact
        who: About = {"client_id": fact.client_id} if fact.client_id else {}
        return who | {"address": fact.host} | fact.about

    def is_met(self, exchange: Exchange) -> bool:
        """Whether an exchange without the error gave the client what it had failed to get."""
        about, found = self.fact.about, exchange.about
        if "group" in about:
            return about["group"] in found.groups
        if "transactional_id" in about:
            return about["transactional_id"] in found.transactions
        if "topic" in about:
            partitions = found.topics.get(str(about["topic"]))
            if partitions is None:
                return not found.topics and self.fact.key == METADATA  # of all topics
            return "partition" not in about or not partitions or about["partition"] in partitions
        return True


Key = tuple[int, str, str, str, tuple[tuple[str, str | int], ...]]


class Troubles:
    """add(batch) in the order of time; gives the batch's facts. of(codes) gives the troubles of these errors."""

    def __init__(self) -> None:
        self.known: dict[Key, Trouble] = {}
        self.unkept = 0
        self._open: dict[tuple[str, str, int], list[Trouble]] = {}  # by client, host and API

    def of(self, *codes: int) -> list[Trouble]:
        """The troubles of these errors, in the order in which they began; of all errors where none is named."""
        return [one for one in self.known.values() if (one.fact.code in codes if codes else one.fact.code)]

    def unanswered(self) -> list[Trouble]:
        """Requests that got no answer."""
        return [one for one in self.known.values() if one.fact.code == UNANSWERED]

    def add(self, batch: ExchangeBatch) -> list[Fact]:
        """Adds a batch's failures, and ends earlier troubles that its successes resolve."""
        asked = batch.request.there
        failed = np.zeros(len(batch), bool)
        failed[batch.failed] = True
        failed &= asked
        if not self._open and not failed.any():
            return []
        asks, which = _asks(batch)
        wanted = set(self._open).union(asks[at] for at in np.unique(which[failed]).tolist())
        rows = np.flatnonzero(np.array([ask in wanted for ask in asks], bool)[which] & asked)
        answered = batch.response.there & ~batch.silent
        found: list[Fact] = []
        columns = rows, which[rows], failed[rows], answered[rows]
        for row, at, wrong, fine in zip(*(column.tolist() for column in columns), strict=True):
            if wrong:
                exchange = batch[row]
                facts = list(facts_of(exchange))
                for fact in facts:
                    self._take(fact)
                found += facts
                self._meet(exchange, facts)
            elif fine and asks[at] in self._open:
                self._meet(batch[row], [])
        return found

    def _meet(self, exchange: Exchange, facts: list[Fact]) -> None:
        """Ends the open troubles that an exchange resolves: everything in it succeeded, except these facts."""
        response = exchange.response
        kind = exchange.first.api
        if response is None or kind is None or response.quality not in READABLE:
            return
        who = exchange.client_id or "", host_of(exchange), kind.key
        open_ = self._open.get(who)
        if not open_ or any(not fact.about for fact in facts):
            return
        failed = [fact.about for fact in facts]
        left = []
        for trouble in open_:
            trouble.looks += 1
            if trouble.fact.about not in failed and trouble.is_met(exchange):
                trouble.over = response.time
            elif trouble.looks < MOST_LOOKS:
                left.append(trouble)
        if left:
            self._open[who] = left
        else:
            del self._open[who]

    def _take(self, fact: Fact) -> None:
        key = fact.code, fact.api, fact.client_id, fact.host, tuple(fact.about.items())
        known = self.known.get(key)
        if known is None:
            if len(self.known) >= MOST:
                self.unkept += 1
                return
            known = self.known[key] = Trouble(fact)
        else:
            was_over = known.over is not None
            known.again(fact)
            if not was_over:
                return
        self._open.setdefault((fact.client_id, fact.host, fact.key), []).append(known)


def _asks(batch: ExchangeBatch) -> tuple[list[tuple[str, str, int]], Ints]:
    """Client id, host and API key as they occur in a batch, and which of these each row has."""
    people, who = callers(batch)
    kinds = len(batch.kinds)
    pairs, which = np.unique(who * kinds + batch.kind, return_inverse=True)
    keys = [-1 if kind is None else kind.key for kind in batch.kinds]
    return [(*people[pair // kinds].client, keys[pair % kinds]) for pair in pairs.tolist()], which
