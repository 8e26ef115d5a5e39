"""Clients that are refused for want of a right, on which resource, for which operation.

Sees the errors TOPIC_AUTHORIZATION_FAILED (29), GROUP_AUTHORIZATION_FAILED (30), CLUSTER_AUTHORIZATION_FAILED (31),
TRANSACTIONAL_ID_AUTHORIZATION_FAILED (53) and DELEGATION_TOKEN_AUTHORIZATION_FAILED (65) of any answer. The operations
are those that KafkaApis asks the authorizer about (kafka.server.KafkaApis, org.apache.kafka.common.acl.AclOperation).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.facts import Trouble
from kwire.analyze.findings import Finding, about, lasted
from kwire.counted import counted
from kwire.schema import codes
from kwire.schema.keys import CREATE_ACLS, DESCRIBE_ACLS

if TYPE_CHECKING:
    from kwire.analyze.case import Case
    from kwire.session.exchange import Exchange

RESOURCES = {
    codes.TOPIC_AUTHORIZATION_FAILED: "topic",
    codes.GROUP_AUTHORIZATION_FAILED: "group",
    codes.CLUSTER_AUTHORIZATION_FAILED: "cluster",
    codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "transactional id",
    codes.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "delegation token",
}
NAMED = {
    codes.TOPIC_AUTHORIZATION_FAILED: "topic",
    codes.GROUP_AUTHORIZATION_FAILED: "group",
    codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "transactional_id",
}
OPERATIONS = {  # by error, then by API; the first word is what --operation takes
    codes.TOPIC_AUTHORIZATION_FAILED: {
        "Produce": "Write", "AddPartitionsToTxn": "Write", "Metadata": "Describe", "CreateTopics": "Create",
        "DeleteTopics": "Delete", "DeleteRecords": "Delete", "CreatePartitions": "Alter",
        "DescribeConfigs": "DescribeConfigs", "AlterConfigs": "AlterConfigs",
        "IncrementalAlterConfigs": "AlterConfigs", "ListOffsets": "Describe", "DescribeProducers": "Read",
        "OffsetForLeaderEpoch": "Describe", "OffsetDelete": "Read", "DescribeTopicPartitions": "Describe",
        "OffsetFetch": "Describe",
    },
    codes.GROUP_AUTHORIZATION_FAILED: {
        "OffsetFetch": "Describe", "DescribeGroups": "Describe", "FindCoordinator": "Describe",
        "DeleteGroups": "Delete", "OffsetDelete": "Delete", "ConsumerGroupDescribe": "Describe",
        "ShareGroupDescribe": "Describe",
    },
    codes.CLUSTER_AUTHORIZATION_FAILED: {
        "CreateTopics": "Create", "InitProducerId": "IdempotentWrite", "Produce": "IdempotentWrite",
        "DescribeConfigs": "DescribeConfigs", "AlterConfigs": "AlterConfigs",
        "IncrementalAlterConfigs": "AlterConfigs", "DescribeAcls": "Describe", "ListGroups": "Describe",
        "DescribeLogDirs": "Describe", "DescribeClientQuotas": "DescribeConfigs", "AlterClientQuotas": "AlterConfigs",
        "ElectLeaders": "Alter", "CreateAcls": "Alter", "DeleteAcls": "Alter",
    },
    codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: {
        "FindCoordinator": "Describe", "DescribeTransactions": "Describe",
    },
}  # fmt: skip
USUAL = {
    codes.TOPIC_AUTHORIZATION_FAILED: "Read",
    codes.GROUP_AUTHORIZATION_FAILED: "Read",
    codes.CLUSTER_AUTHORIZATION_FAILED: "ClusterAction",
    codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Write",
    codes.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "Describe",
}
DENY = 2  # org.apache.kafka.common.acl.AclPermissionType
TYPES = {2: "topic", 3: "group", 4: "cluster", 5: "transactional id", 6: "delegation token"}
PREFIXED = 4


class Denied(Watch):
    """denials: explicit DENY entries that the capture shows: of which type, name, pattern and principal."""

    def __init__(self, case: Case, limits: Mapping[str, float]) -> None:
        super().__init__(case, limits)
        self.denials: dict[tuple[str, str, int, str], None] = {}

    def exchange(self, exchange: Exchange) -> None:
        request, response = exchange.request, exchange.response
        asked, answer = request and request.body(), response and response.body()
        for one in (asked or {}).get("Creations") or ():
            if one["PermissionType"] == DENY and len(self.denials) < 10_000:
                kind, pattern = one["ResourceType"], one.get("ResourcePatternType", 3)
                self.denials[TYPES.get(kind, ""), one["ResourceName"], pattern, one["Principal"]] = None
        for resource in (answer or {}).get("Resources") or ():
            for one in resource["Acls"]:
                if one["PermissionType"] == DENY and len(self.denials) < 10_000:
                    kind, pattern = resource["ResourceType"], resource.get("PatternType", 3)
                    self.denials[TYPES.get(kind, ""), resource["ResourceName"], pattern, one["Principal"]] = None

    def findings(self) -> Iterator[Finding]:
        for trouble in self.case.troubles.of(*RESOURCES):
            if trouble.count >= self.limit("least"):
                yield self._finding(trouble)

    def _finding(self, trouble: Trouble) -> Finding:
        fact, clock = trouble.fact, self.case.clock
        kind = RESOURCES[fact.code]
        operation = OPERATIONS.get(fact.code, {}).get(fact.api, USUAL[fact.code])
        name = str(fact.about.get(NAMED.get(fact.code, ""), ""))
        resource = f"{kind} {name}".strip()
        who = f"User:{fact.principal}" if fact.principal else fact.client_id or f"a client at {fact.host}"
        what = f"{who} may not {operation} {resource}: {fact.api} got {fact.error}"
        if trouble.count > 1:
            what += f" {counted(trouble.count, 'time')} in {lasted(trouble.last.time - fact.time)}"
        if trouble.over is not None:
            what += f"; from {clock(trouble.over)} on it may"
        principal = f"User:{fact.principal}" if fact.principal else "User:…"
        if denial := self._denial(kind, name, fact.principal):
            advice = f"A DENY stands in the way ({denial}), and wins over every ALLOW: remove it."
        else:
            option = {"topic": f"--topic {name}", "group": f"--group {name}", "cluster": "--cluster",
                      "transactional id": f"--transactional-id {name}"}.get(kind, "")  # fmt: skip
            advice = f"kafka-acls --add --allow-principal {principal} --operation {operation} {option}".strip()
        severity = "error" if trouble.over is None else "warning"
        return Finding(
            severity, what, tuple(trouble.samples), advice, time=fact.time, last=trouble.last.time,
            about=trouble.about | about(principal=fact.principal, api=fact.api),
            words=trouble.words, count=trouble.count,
            otherwise="a later answer is without the error, or an ACL was added after the capture's end",
        )  # fmt: skip

    def _denial(self, kind: str, name: str, principal: str) -> str:
        for of, pattern, how, whom in self.denials:
            fits = name.startswith(pattern) if how == PREFIXED else pattern in (name, "*")
            if of == kind and (fits or kind == "cluster") and whom in (f"User:{principal}", "User:*"):
                return f"{whom} on {of} {pattern}"
        return ""


DETECTOR = Detector(
    "clients that lack a right on a topic, group or cluster",
    watch=Denied,
    fields="the error codes 29, 30, 31, 53 and 65 of any answer; Acls of DescribeAcls and CreateAcls",
    source="KIP-11; kafka.server.KafkaApis for the operation that each API asks for",
    means="The authorizer knows the principal and found no ALLOW for the operation on the resource, or a DENY.",
    proof="An answer whose element carries the error. The principal is what the connection's login named.",
    advice="Add the ACL that the finding spells out; where a DENY is shown, remove that.",
    thresholds={"least": 1},
    exchanges=(DESCRIBE_ACLS, CREATE_ACLS),
)
