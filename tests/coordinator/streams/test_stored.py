"""A streams group in the middle of a move comes back from its records as it was, whatever the roles of its tasks."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from kwire.codec.library import builtin_library
from kwire.coordinator.streams.group import StreamsGroup
from kwire.coordinator.streams.stored import KINDS, restore, stored
from kwire.coordinator.streams.tasks import TaskState
from kwire.coordinator.types import MS, ClientIdentity, GroupSettings, KnownTopic

TOPICS = {name: KnownTopic(name, UUID(int=n), 4) for n, name in enumerate(("a", "b", "store", "back"), 1)}
INTERNAL = {"Partitions": 0, "ReplicationFactor": 0, "TopicConfigs": [{"Key": "k", "Value": "v"}]}
TOPOLOGY = {"Epoch": 0, "Subtopologies": [{
    "SubtopologyId": "0", "SourceTopics": ["b", "a"], "SourceTopicRegex": [],
    "StateChangelogTopics": [{"Name": "store", **INTERNAL}], "RepartitionSinkTopics": ["back"],
    "RepartitionSourceTopics": [{"Name": "back", **INTERNAL}],
    "CopartitionGroups": [{"SourceTopics": [0, 1], "SourceTopicRegex": [], "RepartitionSourceTopics": [0]}],
}]}  # fmt: skip
NOTHING: dict[str, Any] = {"ActiveTasks": [], "StandbyTasks": [], "WarmupTasks": []}


def beat(group: StreamsGroup, member: str, epoch: int, now: int, **more: Any) -> dict[str, Any]:
    body = {"GroupId": "s", "MemberId": member, "MemberEpoch": epoch, **more}
    if epoch == 0:
        body |= {"Topology": TOPOLOGY, "RebalanceTimeoutMs": 30_000, "ProcessId": f"p-{member}", **NOTHING,
                 "ClientTags": [{"Key": "zone", "Value": "z"}], "UserEndpoint": {"Host": "h", "Port": 80}}  # fmt: skip
    answer, check, _ = group.heartbeat(body, ClientIdentity(f"c-{member}", "host"), now)
    assert check.error == 0, check
    return answer


def test_a_group_in_the_middle_of_a_move() -> None:
    settings = GroupSettings(group_streams_initial_rebalance_delay_ms=0, group_streams_num_standby_replicas=1)
    before = StreamsGroup("s", settings, lambda: TOPICS)
    first = beat(before, "m1", 0, 1 * MS)
    assert len(first["ActiveTasks"][0]["Partitions"]) == 4
    beat(before, "m2", 0, 3_000 * MS)
    holds = {name: first[name] for name in NOTHING}
    asked = beat(before, "m1", first["MemberEpoch"], 6_000 * MS, **holds)
    assert len(asked["ActiveTasks"][0]["Partitions"]) == 2
    assert before.members["m1"].state is TaskState.UNREVOKED
    found: dict[str, dict[Any, Any]] = {}
    library = builtin_library()
    for kind in KINDS:
        codec = library.codec(f"StreamsGroup{kind}Value", 0)
        found[kind] = {key: codec.decode(codec.encode(row)) for key, row in stored(before, kind).items()}
        assert found[kind] == stored(before, kind), kind
    after = StreamsGroup("s", settings, lambda: TOPICS)
    restore(after, found, 9_000 * MS)
    for key, told in before.describe(0).items():
        if key != "Topology":  # partitions are counted with the next heartbeat
            assert after.describe(0)[key] == told, key
    assert (after.state, after.topics_hash, after.standbys) == (before.state, before.topics_hash, 1)
    assert {kind: stored(after, kind) for kind in KINDS} == found
    given = {name: asked[name] for name in NOTHING}
    for group in (before, after):
        beat(group, "m1", asked["MemberEpoch"], 9_001 * MS, **given)
    assert after.describe(0) == before.describe(0)
    after.tick(9_001 * MS + settings.group_streams_session_timeout_ms * MS)
    assert after.state == "Empty"


def test_what_other_brokers_wrote_may_lack_fields() -> None:
    found: dict[str, dict[Any, Any]] = {kind: {} for kind in KINDS}
    found["Metadata"]["s",] = {"Epoch": 7, "MetadataHash": 1}
    group = StreamsGroup("s", GroupSettings(), lambda: TOPICS)
    restore(group, found, 5)
    assert (group.state, group.epoch, group.target_epoch, group.validated_epoch) == ("Empty", 7, 7, -1)
