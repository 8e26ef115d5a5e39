"""Who may do what: each API's rights as a table, asked in front of its handler (KafkaApis does so within each).

A WholeRequest right is needed for the request; without it the answer is that error throughout. An Each right is needed
for an element of an array: those that lack it are answered with the error, and the handler sees the others. A
FilteredAnswer right decides which rows of an answer that lists everything are told.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from kwire.broker import acls
from kwire.broker.acls import CLUSTER, GROUP, THE_CLUSTER, TOPIC, TRANSACTIONAL_ID
from kwire.broker.context import Body, Later, Outcome, Request
from kwire.broker.shape import refusal
from kwire.codec.library import builtin_library
from kwire.schema import codes

if TYPE_CHECKING:
    from collections.abc import Generator

    from kwire.broker.state import BrokerState

ERRORS = {
    TOPIC: codes.TOPIC_AUTHORIZATION_FAILED,
    GROUP: codes.GROUP_AUTHORIZATION_FAILED,
    CLUSTER: codes.CLUSTER_AUTHORIZATION_FAILED,
    TRANSACTIONAL_ID: codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
COORDINATED = {0: GROUP, 1: TRANSACTIONAL_ID}  # by FindCoordinator's KeyType
TOPIC_CONFIGS, GROUP_CONFIGS = 2, 32  # ConfigResource.Type


class WholeRequest(NamedTuple):
    """field: what names the resource; "": it is the cluster."""

    operation: int
    kind: int = CLUSTER
    field: str = ""


class Each(NamedTuple):
    """array: of the request, whose elements are names or have the name in field, or a topic's id in TopicId; answered:
    the answer's array. or_cluster: this right on the cluster does too. together: one that lacks the right stops the
    others, as OPERATION_NOT_ATTEMPTED."""

    array: str
    answered: str
    operation: int
    kind: int = TOPIC
    field: str = "Name"
    or_cluster: int = 0
    together: bool = False


class FilteredAnswer(NamedTuple):
    """array: of the answer; asked: of the request, which must be null or missing for the answer to list everything."""

    array: str
    operation: int
    kind: int
    field: str
    asked: str = ""


Right = WholeRequest | Each | FilteredAnswer
R, W, D = acls.READ, acls.WRITE, acls.DESCRIBE
_GROUP_READ = WholeRequest(R, GROUP, "GroupId")

RIGHTS: dict[str, tuple[Right, ...]] = {
    "Produce": (Each("TopicData", "Responses", W),),
    "Fetch": (Each("Topics", "Responses", R, field="Topic"),),
    "ListOffsets": (Each("Topics", "Topics", D),),
    "OffsetForLeaderEpoch": (Each("Topics", "Topics", D, field="Topic", or_cluster=acls.CLUSTER_ACTION),),
    "Metadata": (Each("Topics", "Topics", D), FilteredAnswer("Topics", D, TOPIC, "Name", "Topics")),
    "DescribeTopicPartitions": (Each("Topics", "Topics", D), FilteredAnswer("Topics", D, TOPIC, "Name", "Topics")),
    "FindCoordinator": (Each("CoordinatorKeys", "Coordinators", D, GROUP), WholeRequest(D, GROUP, "Key")),
    "JoinGroup": (_GROUP_READ,),
    "SyncGroup": (_GROUP_READ,),
    "Heartbeat": (_GROUP_READ,),
    "LeaveGroup": (_GROUP_READ,),
    "ConsumerGroupHeartbeat": (_GROUP_READ,),
    "OffsetCommit": (_GROUP_READ, Each("Topics", "Topics", R)),
    "OffsetFetch": (
        WholeRequest(D, GROUP, "GroupId"), Each("Groups", "Groups", D, GROUP, "GroupId"), Each("Topics", "Topics", D),
    ),
    "OffsetDelete": (WholeRequest(acls.DELETE, GROUP, "GroupId"), Each("Topics", "Topics", R)),
    "DescribeGroups": (Each("Groups", "Groups", D, GROUP),),
    "ConsumerGroupDescribe": (Each("GroupIds", "Groups", D, GROUP),),
    "StreamsGroupHeartbeat": (_GROUP_READ,),
    "StreamsGroupDescribe": (Each("GroupIds", "Groups", D, GROUP),),
    "ShareGroupHeartbeat": (_GROUP_READ,),
    "ShareGroupDescribe": (Each("GroupIds", "Groups", D, GROUP),),
    "ShareFetch": (_GROUP_READ, Each("Topics", "Responses", R)),
    "ShareAcknowledge": (_GROUP_READ, Each("Topics", "Responses", R)),
    "DescribeShareGroupOffsets": (Each("Groups", "Groups", D, GROUP, "GroupId"),),
    "AlterShareGroupOffsets": (_GROUP_READ, Each("Topics", "Responses", R, field="TopicName")),
    "DeleteShareGroupOffsets": (
        WholeRequest(acls.DELETE, GROUP, "GroupId"), Each("Topics", "Responses", R, field="TopicName"),
    ),
    "ListGroups": (FilteredAnswer("Groups", D, GROUP, "GroupId"),),
    "DeleteGroups": (Each("GroupsNames", "Results", acls.DELETE, GROUP),),
    "CreateTopics": (Each("Topics", "Topics", acls.CREATE, or_cluster=acls.CREATE),),
    "DeleteTopics": (
        Each("Topics", "Responses", acls.DELETE, or_cluster=acls.DELETE),
        Each("TopicNames", "Responses", acls.DELETE, or_cluster=acls.DELETE),
    ),
    "DeleteRecords": (Each("Topics", "Topics", acls.DELETE),),
    "CreatePartitions": (Each("Topics", "Results", acls.ALTER),),
    "ListConfigResources": (WholeRequest(acls.DESCRIBE_CONFIGS),),
    "DescribeConfigs": (Each("Resources", "Results", acls.DESCRIBE_CONFIGS, field="ResourceName"),),
    "AlterConfigs": (Each("Resources", "Responses", acls.ALTER_CONFIGS, field="ResourceName"),),
    "IncrementalAlterConfigs": (Each("Resources", "Responses", acls.ALTER_CONFIGS, field="ResourceName"),),
    "InitProducerId": (WholeRequest(W, TRANSACTIONAL_ID, "TransactionalId"),),
    "AddPartitionsToTxn": (
        WholeRequest(W, TRANSACTIONAL_ID, "V3AndBelowTransactionalId"),
        Each("V3AndBelowTopics", "ResultsByTopicV3AndBelow", W, together=True),
        Each("Transactions", "ResultsByTransaction", acls.CLUSTER_ACTION, CLUSTER),
    ),
    "AddOffsetsToTxn": (WholeRequest(W, TRANSACTIONAL_ID, "TransactionalId"), _GROUP_READ),
    "EndTxn": (WholeRequest(W, TRANSACTIONAL_ID, "TransactionalId"),),
    "TxnOffsetCommit": (WholeRequest(W, TRANSACTIONAL_ID, "TransactionalId"), _GROUP_READ, Each("Topics", "Topics", R)),
    "DescribeTransactions": (Each("TransactionalIds", "TransactionStates", D, TRANSACTIONAL_ID),),
    "ListTransactions": (FilteredAnswer("TransactionStates", D, TRANSACTIONAL_ID, "TransactionalId"),),
    "DescribeProducers": (Each("Topics", "Topics", R),),
    "WriteTxnMarkers": (WholeRequest(acls.ALTER),),
    "DescribeAcls": (WholeRequest(D),),
    "CreateAcls": (WholeRequest(acls.ALTER),),
    "DeleteAcls": (WholeRequest(acls.ALTER),),
    "DescribeLogDirs": (WholeRequest(D),),
    "AlterReplicaLogDirs": (WholeRequest(acls.ALTER),),
    "ElectLeaders": (WholeRequest(acls.ALTER),),
    "AlterPartitionReassignments": (WholeRequest(acls.ALTER),),
    "ListPartitionReassignments": (WholeRequest(D),),
    "DescribeQuorum": (WholeRequest(D),),
    "AddRaftVoter": (WholeRequest(acls.ALTER),),
    "RemoveRaftVoter": (WholeRequest(acls.ALTER),),
    "UnregisterBroker": (WholeRequest(acls.ALTER),),
    **dict.fromkeys(
        (
            "InitializeShareGroupState", "ReadShareGroupState", "WriteShareGroupState", "DeleteShareGroupState",
            "ReadShareGroupStateSummary",
        ),
        (WholeRequest(acls.CLUSTER_ACTION),),
    ),
    "UpdateFeatures": (WholeRequest(acls.ALTER),),
    "DescribeUserScramCredentials": (WholeRequest(D),),
    "AlterUserScramCredentials": (WholeRequest(acls.ALTER),),
    "DescribeClientQuotas": (WholeRequest(acls.DESCRIBE_CONFIGS),),
    "AlterClientQuotas": (WholeRequest(acls.ALTER_CONFIGS),),
}  # fmt: skip
CONFIGS = ("DescribeConfigs", "AlterConfigs", "IncrementalAlterConfigs")


class Guard:
    """One request before its handler."""

    def __init__(self, request: Request, state: BrokerState) -> None:
        self.request, self.state = request, state
        library = builtin_library()
        self.answer = library.plan(f"{request.api}Response", request.version).root
        self.asked = library.plan(f"{request.api}Request", request.version).root

    def may(self, operation: int, kind: int, name: str) -> bool:
        peer = self.request.peer
        return self.state.acls.may(peer.principal, peer.host, operation, kind, name)

    def handle(self, handler: Callable[[Request, BrokerState], Outcome]) -> Outcome:
        """The handler's outcome with what the client may not have left out of it."""
        request = self.request
        denied: list[Body] = []
        for right in RIGHTS.get(request.api, ()):
            if isinstance(right, WholeRequest):
                error = self._refused(right)
                if error is not None:
                    return refusal(self.answer, self.asked, self.request.body, error, once=True)
            elif isinstance(right, Each) and request.body.get(right.array) is not None:
                request, rows = self._parted(request, right)
                denied += [{right.answered: rows}] if rows else []
                if rows and right.together:
                    others = refusal(self.answer, self.asked, request.body, codes.OPERATION_NOT_ATTEMPTED)
                    return self._told(others, denied)
        if request.api == "Metadata":
            request, rows = self._without_new_ones(request)
            denied += [{"Topics": rows}] if rows else []
        if self.request.api == "Produce" and request.body["Acks"] == 0 and denied:
            denied = []  # who asks for no answer gets none
        return self._after(handler(request, self.state), denied)

    def _without_new_ones(self, request: Request) -> tuple[Request, list[Body]]:
        """Metadata without the topics that it would create and the client may not, and rows for those."""
        body, there = request.body, self.state.cluster.topics
        creates = body.get("AllowAutoTopicCreation", True) and self.state.settings.create_topics
        if not creates or self.may(acls.CREATE, CLUSTER, THE_CLUSTER):
            return request, []
        asked = body.get("Topics") or []
        names = {topic["Name"] for topic in asked if topic.get("Name") and topic["Name"] not in there}
        lacking = {name for name in names if not self.may(acls.CREATE, TOPIC, name)}
        left = [topic for topic in asked if topic.get("Name") not in lacking]
        rows = [{"ErrorCode": ERRORS[TOPIC], "Name": name, "Partitions": []} for name in sorted(lacking)]
        return request._replace(body={**body, "Topics": left}) if rows else request, rows

    def _refused(self, right: WholeRequest) -> int | None:
        """The error of a right that is missing."""
        body, kind = self.request.body, right.kind
        name = body.get(right.field) if right.field else THE_CLUSTER
        if self.request.api == "InitProducerId" and name is None:
            peer = self.request.peer
            some = self.state.acls.may_somewhere(peer.principal, peer.host, acls.WRITE, TOPIC)
            allowed = some or self.may(acls.IDEMPOTENT_WRITE, CLUSTER, THE_CLUSTER)
            return None if allowed else codes.CLUSTER_AUTHORIZATION_FAILED
        if name is None:
            return None
        if self.request.api == "FindCoordinator":
            kind = COORDINATED.get(body.get("KeyType", 0), CLUSTER)
        name = THE_CLUSTER if kind == CLUSTER else name
        return None if self.may(right.operation, kind, name) else ERRORS[kind]

    def _parted(self, request: Request, right: Each) -> tuple[Request, list[Body]]:
        """The request with the elements that are allowed, and rows for the others."""
        allowed, rows = [], []
        for item in request.body[right.array]:
            kind, name = self._resource(right, item)
            everywhere = right.or_cluster and self.may(right.or_cluster, CLUSTER, THE_CLUSTER)
            if everywhere or name is None or self.may(right.operation, kind, name):
                allowed.append(item)
            else:
                body = {**request.body, right.array: [item]}
                rows += self._rows(body, right, ERRORS[kind])
        return request._replace(body={**request.body, right.array: allowed}) if rows else request, rows

    def _rows(self, body: Body, right: Each, error: int) -> list[Body]:
        """The rows of an answer for what is asked in body."""
        rows: list[Body] = refusal(self.answer, self.asked, body, error).get(right.answered, [])
        return [{**row, "Topics": []} if right.kind == GROUP and "Topics" in row else row for row in rows]

    def _resource(self, right: Each, item: Body | str) -> tuple[int, str | None]:
        """What an element is about; no name where the handler knows better what to say of it."""
        kind = right.kind
        if self.request.api == "FindCoordinator":
            kind = COORDINATED.get(self.request.body.get("KeyType", 0), CLUSTER)
        if kind == CLUSTER:
            return kind, THE_CLUSTER
        if isinstance(item, str):
            return kind, item
        if self.request.api in CONFIGS:
            kind = {TOPIC_CONFIGS: TOPIC, GROUP_CONFIGS: GROUP}.get(item["ResourceType"], CLUSTER)
            return kind, THE_CLUSTER if kind == CLUSTER else item[right.field]
        if item.get(right.field):
            return kind, item[right.field]
        topic = self.state.cluster.by_id.get(item["TopicId"]) if "TopicId" in item else None
        return kind, topic.name if topic else None

    def _after(self, outcome: Outcome, denied: list[Body]) -> Outcome:
        """The same, wherever the answer comes from."""
        if isinstance(outcome, Later):
            later = Later()
            outcome.then(lambda body: later.give(self._told(body, denied)))
            return later
        if outcome is None or isinstance(outcome, dict):
            return self._told(outcome, denied)
        return self._afterwards(outcome, denied)

    def _afterwards(self, work: Generator[None, None, Outcome], denied: list[Body]) -> Generator[None, None, Outcome]:
        return self._after((yield from work), denied)

    def _told(self, body: Body | None, denied: list[Body]) -> Body | None:
        if body is None:
            return None
        for right in RIGHTS.get(self.request.api, ()):
            if isinstance(right, FilteredAnswer) and not (right.asked and self.request.body.get(right.asked)):
                rows = body.get(right.array) or []
                body = {**body, right.array: [r for r in rows if self.may(right.operation, right.kind, r[right.field])]}
        if self.request.api == "OffsetFetch" and body.get("Groups"):
            body = {**body, "Groups": [self._offsets_shown(group) for group in body["Groups"]]}
        for more in denied:
            for array, rows in more.items():
                body = {**body, array: [*(body.get(array) or []), *rows]}
        return body

    def _offsets_shown(self, group: Body) -> Body:
        """A group's offsets without those of topics that the client may not see (v8 and up)."""
        asked = {each["GroupId"]: each["Topics"] for each in self.request.body["Groups"]}
        topics = []
        for topic in group["Topics"]:
            _, name = self._resource(Each("", "", acls.DESCRIBE), topic)
            if name is None or self.may(acls.DESCRIBE, TOPIC, name):
                topics.append(topic)
            elif asked.get(group["GroupId"]) is not None:
                nothing = {"CommittedOffset": -1, "CommittedLeaderEpoch": -1, "Metadata": ""}
                nothing["ErrorCode"] = codes.TOPIC_AUTHORIZATION_FAILED
                rows = [{**nothing, "PartitionIndex": row["PartitionIndex"]} for row in topic["Partitions"]]
                topics.append({**topic, "Partitions": rows})
        return {**group, "Topics": topics}
