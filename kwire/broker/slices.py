"""Requests about many things, answered a slice at a time, so that nobody else waits for the whole.

Most requests name things one beside the other, and each of them is answered for itself: such a request is cut into
requests for a few of them, the handler sees nothing else, and the answer is put together from the answers, as bytes.
In between others have their turn (turns.py). A slice takes a few milliseconds, whatever its elements cost; an answer
that grows beyond the limit ends the connection.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from kwire.broker.context import MS, Body, Hangup, Later, Outcome, Request
from kwire.broker.pieces import Pieces, weight
from kwire.wire.uuids import ZERO

if TYPE_CHECKING:
    from kwire.broker.state import BrokerState

FIRST, MOST = 1, 4_096  # things in the first slice, and in the largest
GOAL = 4 * MS  # ns that a slice should take
Handle = Callable[[Request], Outcome]


class RequestCut(NamedTuple):
    """Where a request can be cut. asked: its array; answered: the answer's. inner: an array within the elements that
    can be cut too. everything: what null stands for."""

    asked: str
    answered: str
    inner: str = ""
    everything: Callable[[BrokerState], list[Body]] | None = None


def _all_topics(state: BrokerState) -> list[Body]:
    return [{"Name": name, "TopicId": ZERO} for name in sorted(state.cluster.topics)]


def _all_partitions(state: BrokerState) -> list[Body]:
    topics = state.cluster.topics.values()
    return [{"Topic": topic.name, "Partitions": [p.index for p in topic.partitions]} for topic in topics]


CUTS: dict[str, tuple[RequestCut, ...]] = {  # the first whose array the version has
    "Produce": (RequestCut("TopicData", "Responses", "PartitionData"),),
    "ListOffsets": (RequestCut("Topics", "Topics", "Partitions"),),
    "Metadata": (RequestCut("Topics", "Topics", everything=_all_topics),),
    "OffsetCommit": (RequestCut("Topics", "Topics", "Partitions"),),
    "OffsetFetch": (RequestCut("Groups", "Groups"), RequestCut("Topics", "Topics", "PartitionIndexes")),
    "FindCoordinator": (RequestCut("CoordinatorKeys", "Coordinators"),),
    "LeaveGroup": (RequestCut("Members", "Members"),),
    "DescribeGroups": (RequestCut("Groups", "Groups"),),
    "CreateTopics": (RequestCut("Topics", "Topics"),),
    "DeleteTopics": (RequestCut("Topics", "Responses"), RequestCut("TopicNames", "Responses")),
    "DeleteRecords": (RequestCut("Topics", "Topics", "Partitions"),),
    "OffsetForLeaderEpoch": (RequestCut("Topics", "Topics", "Partitions"),),
    "DescribeConfigs": (RequestCut("Resources", "Results", "ConfigurationKeys"),),
    "AlterConfigs": (RequestCut("Resources", "Responses"),),
    "CreatePartitions": (RequestCut("Topics", "Results"),),
    "DeleteGroups": (RequestCut("GroupsNames", "Results"),),
    "ElectLeaders": (RequestCut("TopicPartitions", "ReplicaElectionResults", "Partitions", _all_partitions),),
    "IncrementalAlterConfigs": (RequestCut("Resources", "Responses"),),
    "OffsetDelete": (RequestCut("Topics", "Topics", "Partitions"),),
    "DescribeProducers": (RequestCut("Topics", "Topics", "PartitionIndexes"),),
    "ConsumerGroupDescribe": (RequestCut("GroupIds", "Groups"),),
    "StreamsGroupDescribe": (RequestCut("GroupIds", "Groups"),),
    "ShareGroupDescribe": (RequestCut("GroupIds", "Groups"),),
    "DescribeShareGroupOffsets": (RequestCut("Groups", "Groups", "Topics"),),
    "WriteTxnMarkers": (RequestCut("Markers", "Markers"),),
    "TxnOffsetCommit": (RequestCut("Topics", "Topics", "Partitions"),),
    "DescribeTransactions": (RequestCut("TransactionalIds", "TransactionStates"),),
}
OF_EVERYTHING = {api for api, cuts in CUTS.items() if any(cut.everything for cut in cuts)}


class RequestSlices:
    """One request in slices. items: what is asked about."""

    def __init__(self, request: Request, cut: RequestCut, items: list[Any]) -> None:
        self.request, self.cut, self.items = request, cut, items
        self.size = FIRST

    def requests(self) -> Iterator[tuple[Request, bool]]:
        """Each slice as a request; true: it goes on with the last element of the slice before."""
        part: list[Any] = []
        room = self.size
        for item in self.items:
            inner = item.get(self.cut.inner) if self.cut.inner else None
            if inner and len(inner) > self.size:
                if part:
                    yield self._of(part), False
                    part = []
                at = 0
                while at < len(inner):
                    size = self.size
                    yield self._of([{**item, self.cut.inner: inner[at : at + size]}]), at > 0
                    at += size
                room = self.size
                continue
            part.append(item)
            room -= weight(item)
            if room <= 0:
                yield self._of(part), False
                part, room = [], self.size
        if part:
            yield self._of(part), False

    def _of(self, part: list[Any]) -> Request:
        return self.request._replace(body={**self.request.body, self.cut.asked: part})

    def answer(self, handle: Handle, now: Callable[[], int], most: int, throttle_ms: int = 0) -> Iterator[bytes | None]:
        """Yields None after each slice, and the answer's body at the end; nothing then when the request has no answer.
        Raises Hangup for an answer of more than most bytes."""
        out = Pieces(self.request, self.cut.answered, most)
        for request, goes_on in self.requests():
            begun = now()
            body = _now(handle(request))
            if body is not None:
                out.take({**body, "ThrottleTimeMs": throttle_ms} if throttle_ms else body, goes_on)
            took = now() - begun
            if took > GOAL:
                self.size = max(self.size * GOAL // took, 1)
            elif took < GOAL // 2:
                self.size = min(self.size * 2, MOST)
            yield None
        if out.first is not None:
            yield out.whole()


def of(request: Request, state: BrokerState, size: int) -> RequestSlices | None:
    """The slices of a request of so many bytes, when it is about so much that it must be cut."""
    most = state.settings.limits.at_once
    if size <= most and request.api not in OF_EVERYTHING:
        return None
    body = request.body
    cut = next((cut for cut in CUTS.get(request.api, ()) if cut.asked in body), None)
    if cut is None:
        return None
    items = body[cut.asked]
    if cut.everything is not None and (items is None or (request.version == 0 and not items)):
        if state.cluster.size <= most:
            return None
        items = cut.everything(state)
        if request.api == "Metadata":
            request = request._replace(body={**body, "AllowAutoTopicCreation": False})
    elif not items or size <= most or (len(items) <= most and sum(map(weight, items)) <= most):
        return None
    return RequestSlices(request, cut, items)


def _now(outcome: Outcome) -> Body | None:
    """What is answered element for element is answered at once."""
    if isinstance(outcome, Generator):
        raise Hangup("an answer in parts that takes long for one of them")
    if not isinstance(outcome, Later):
        return outcome
    found: list[Body | None] = []
    outcome.then(found.append)
    if not found:
        raise Hangup("an answer in parts that did not come at once")
    return found[0]
