"""A made-up message for a plan, as it could be on a wire: plausible values that agree with each other.

A table of field names decides; what it does not name gets its default, else the first meaning of an enumerated field,
else something of the type. Tagged fields are left out, as most senders do. Error codes are 0, error messages null.
"""

from __future__ import annotations

import re
from typing import Any

from kwire.codec.plan import Plan, Slot, StructPlan
from kwire.wire import uuids

# one batch of magic 2 at offset 1042: one record, key order-17, value {"total":42}, 2026-01-01; CRC-32C 39ce9e94
BATCH = bytes.fromhex(
    "00000000000004120000004c000000050239ce9e940000000000000000019b76daa8000000019b76daa800ffffffffffffffffffff"
    "ffffffff0000000134000000106f726465722d3137187b22746f74616c223a34327d00"
)
MIDNIGHT = 1767225600000  # 2026-01-01 00:00 UTC
UUID = uuids.from_text("sOSqQYZWTjucdj5wVCWvPg")

# the first pattern that matches the whole of a field's name, among the rows of its type, decides
STRINGS = (
    (r"Topic|TopicName|SubscribedTopicNames|Topics|SourceTopics|TopicNames", "orders"),
    (r"GroupId|Groups|GroupsNames|Group", "billing"),
    (r"MemberId|Leader", "billing-1-9f2a7c54-3c1e-4d0b-8a55-7a1b6f0c2d33"),
    (r"(Group)?InstanceId", None),
    (r"TransactionalIds?|TransactionalIdPattern", "payments-1"),
    (r"ClientId", "billing-1"),
    (r".*Host(Name)?|Host", "broker-1.example.com"),
    (r"ClientHost", "/10.0.0.7"),
    (r"Rack(Id)?", "eu-1a"),
    (r"ClusterId", "5L6g3nShT-eMCtK--X86sw"),
    (r"ProtocolType", "consumer"),
    (r"ProtocolName|ServerAssignor|AssignorName", "range"),
    (r"ErrorMessage|.*Reason", None),
    (r"(Sasl|Auth)?Mechanisms?", "SCRAM-SHA-256"),
    (r".*PrincipalType", "User"),
    (r".*Principal(Name)?|User|Username", "alice"),
    (r"ClientSoftwareName", "apache-kafka-java"),
    (r"ClientSoftwareVersion", "4.4.0"),
    (r"ConfigName", "cleanup.policy"),
    (r"Value|ConfigValue", "compact"),
    (r"Feature(Name)?", "metadata.version"),
    (r"LogDir|Path", "/var/lib/kafka"),
    (r"SecurityProtocol", "PLAINTEXT"),
    (r"(Group|Member|Transaction)State|StatesFilter|StateFilters", "Stable"),
    (r"GroupType|TypesFilter", "consumer"),
    (r"ResourceName.*", "orders"),
    (r"EntityType", "user"),
    (r"EntityName", "alice"),
    (r"ContentType", "OTLP"),
)
NUMBERS = (
    (r"ThrottleTimeMs", 0),
    (r"SessionTimeoutMs", 45000),
    (r"RebalanceTimeoutMs", 300000),
    (r"HeartbeatIntervalMs", 3000),
    (r"MaxWaitMs", 500),
    (r"MinBytes|Acks", 1),
    (r"MaxBytes|PartitionMaxBytes", 1048576),
    (r"(Request)?TimeoutMs|timeoutMs", 30000),
    (r"TransactionTimeoutMs", 60000),
    (r".*(Timestamp|TimestampMs)", MIDNIGHT),
    (r"LogStartOffset|FirstOffset|StartOffset", 1000),
    (r".*(Offset|HighWatermark)", 1042),
    (r"GenerationId|MemberEpoch|GroupEpoch", 3),
    (r".*(LeaderEpoch|CurrentLeaderEpoch)|Epoch", 5),
    (r"OfflineReplicas|EligibleLeaderReplicas|LastKnownElr", ()),
    (r".*(NodeId|LeaderId|BrokerId|ControllerId|ReplicaNodes|IsrNodes|NodeIds?|ReplicaIds?|Replicas|Isr|Leader)", 1),
    (r"Port", 9092),
    (r"ProducerId", 4000),
    (r"ProducerEpoch", 0),
    (r"PartitionIndex(es)?|Partitions?|PartitionId|Partitions?Ids?", 0),
    (r"NumPartitions|Count", 3),
    (r"ReplicationFactor", 3),
    (r"CorrelationId", 7),
    (r"RequestApiKey", 12),
    (r"RequestApiVersion|MaxVersion", 4),
    (r"ApiKey", 18),
)


def example(plan: Plan) -> dict[str, Any]:
    """A message that plan can encode; the same at every call."""
    return _struct(plan.root, plan.message.name)


def _struct(plan: StructPlan, owner: str) -> dict[str, Any]:
    return {slot.name: _field(slot, owner) for slot in plan.slots}


def _field(slot: Slot, owner: str) -> Any:
    if slot.array:
        element = _struct(slot.struct, slot.name) if slot.struct else _scalar(slot, owner)
        return list(element) if isinstance(element, tuple) else [] if element is None else [element]
    if slot.struct:
        return _struct(slot.struct, slot.name)
    return _scalar(slot, owner)


def _scalar(slot: Slot, owner: str) -> Any:
    match slot.type:
        case "string":
            return _string(slot, owner)
        case "bytes":
            return None if slot.nullable and slot.field.default == "null" else b""
        case "records":
            return BATCH
        case "uuid":
            return UUID
        case "bool" | "float64":
            return slot.default()
        case _:
            return _number(slot)


def _string(slot: Slot, owner: str) -> str | None:
    if owner == "FindCoordinatorRequest" and slot.name in ("Key", "CoordinatorKeys"):
        return "billing"
    if slot.name in ("Name", "Names", "Key"):
        near = {"Topic": "orders", "Config": "cleanup.policy", "Protocol": "range", "Feature": "metadata.version"}
        return next(
            (value for word, value in near.items() if word in owner), "orders" if slot.field.entity else "example"
        )
    value = _looked_up(STRINGS, slot.name, "example")
    if value is None and not slot.nullable:
        return ""
    return str(value) if value is not None else None


def _number(slot: Slot) -> Any:
    if slot.field.error:
        return 0
    meanings = slot.field.meanings
    if meanings:
        positive = [meaning.value for meaning in meanings if meaning.value > 0]
        return positive[0] if positive else meanings[0].value
    default = 0 if slot.array else slot.default()
    found = _looked_up(NUMBERS, slot.name, default)
    low, high = (-128, 127) if slot.type == "int8" else (-(1 << 15), (1 << 15) - 1)
    if slot.type in ("int8", "int16", "uint16") and isinstance(found, int) and not low <= found <= high:
        return default
    return found


def _looked_up(rows: tuple[tuple[str, Any], ...], name: str, otherwise: Any) -> Any:
    return next((value for pattern, value in rows if re.fullmatch(pattern, name)), otherwise)
