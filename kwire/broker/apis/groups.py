"""Everything that a group coordinator answers: one handler, as kwire.coordinator knows the rules."""

from __future__ import annotations

from kwire.broker.apis import Api
from kwire.broker.context import Body, Later, Request
from kwire.broker.refused import Refused
from kwire.broker.state import BrokerState
from kwire.schema import codes
from kwire.schema.model import Versions


def ask(request: Request, state: BrokerState) -> Body | Later:
    return state.groups.ask(request)


def join(request: Request, state: BrokerState) -> Body | Later:
    """The same, unless there are too many groups."""
    group = request.body["GroupId"]
    if group not in state.groups.coordinator.groups and state.groups.full:
        raise Refused(codes.GROUP_MAX_SIZE_REACHED, "too many groups")
    return state.groups.ask(request)


def consumer(request: Request, state: BrokerState) -> Body | Later:
    """The new protocol's, while the cluster's group.version has it (KafkaApis.isConsumerGroupProtocolEnabled)."""
    if state.cluster.levels.get("group.version") == 0:
        raise Refused(codes.UNSUPPORTED_VERSION, "group.version is 0")
    return join(request, state) if request.api == "ConsumerGroupHeartbeat" else ask(request, state)


APIS = (
    Api("OffsetCommit", Versions(0, 10), join),
    Api("OffsetFetch", Versions(0, 10), ask),
    Api("JoinGroup", Versions(0, 9), join),
    Api("Heartbeat", Versions(0, 4), ask),
    Api("LeaveGroup", Versions(0, 5), ask),
    Api("SyncGroup", Versions(0, 5), ask),
    Api("DescribeGroups", Versions(0, 6), ask),
    Api("ListGroups", Versions(0, 5), ask),
    Api("DeleteGroups", Versions(0, 3), ask),
    Api("OffsetDelete", Versions(0, 0), ask),
    Api("ConsumerGroupHeartbeat", Versions(0, 1), consumer),
    Api("ConsumerGroupDescribe", Versions(0, 1), consumer),
    Api("StreamsGroupHeartbeat", Versions(0, 0), join),
    Api("StreamsGroupDescribe", Versions(0, 0), ask),
)
