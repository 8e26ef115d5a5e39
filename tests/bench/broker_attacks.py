"""Attacks on the broker, by name: what their connections send, over and over. hostile_broker.py runs them."""

# mypy: disable-error-code="dict-item"

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from struct import pack
from typing import Any

from broker_client import MB, Attack, Body, Client, again, each, frame, named, produce_body

from kwire.records import Record, build

N = 49_000
LARGE = bytes(1_000_000)


# ---------------------------------------------------------------- what is there before


def many_topics(client: Client) -> None:
    """10,000 topics with five partitions each, as far as the broker has room for them."""
    for first in range(0, 9_990, 500):
        rows = [{"Name": f"t{first + n}", "NumPartitions": 5, "ReplicationFactor": 1} for n in range(500)]
        client.ask("CreateTopics", 4, {"Topics": rows, "TimeoutMs": 60_000})


def bomb(records: int, value: int) -> bytes:
    listed = [Record(n, 1_700_000_000_000, None, bytes(value), []) for n in range(records)]
    return build(listed, base_offset=0, compression="zstd")


def bombs(client: Client) -> None:
    client.ask("CreateTopics", 4, {"Topics": [{"Name": "bombs", "NumPartitions": 50, "ReplicationFactor": 1}]})
    data = bomb(300_000, 100)
    for partition in range(50):
        body = produce_body("bombs", data)
        body["TopicData"][0]["PartitionData"][0]["Index"] = partition
        client.ask("Produce", 9, body)


def large_log(client: Client) -> None:
    client.ask("CreateTopics", 4, {"Topics": [{"Name": "large", "NumPartitions": 60, "ReplicationFactor": 1}]})
    data = build([(None, LARGE)])
    for partition in range(60):
        body = produce_body("large", data)
        body["TopicData"][0]["PartitionData"][0]["Index"] = partition
        client.ask("Produce", 9, body)


# ---------------------------------------------------------------- frames


def fetch_body(topic: str, partitions: list[Body], wait: int = 500) -> Body:
    topics = [{"Topic": topic, "Partitions": partitions}]
    return {"MaxWaitMs": wait, "MinBytes": 1, "MaxBytes": 100 * MB, "Topics": topics}


def fetch_parts(partitions: int, offset: int = 0, most: int = 10 * MB) -> list[Body]:
    return [{"Partition": n, "FetchOffset": offset, "PartitionMaxBytes": most} for n in range(partitions)]


def waiting_fetch(_: int) -> Iterator[bytes]:
    """The good client's partition many times over, from its end on, for ever."""
    parts = [{"Partition": 0, "FetchOffset": 0, "PartitionMaxBytes": 1}] * N
    yield frame("Fetch", 4, fetch_body("good", parts, 100_000) | {"MinBytes": 1 << 30})
    while True:
        time.sleep(1)
        yield b""


def unfinished(_: int) -> Iterator[bytes]:
    yield pack(">ihhi", 100 * MB, 0, 9, 1)
    for _ in range(96):
        yield bytes(MB)
    while True:
        time.sleep(0.2)
        yield b"\0"


def slow_loris(_: int) -> Iterator[bytes]:
    data = frame("Metadata", 4, {"Topics": [{"Name": name} for name in named("x", 1000)]})
    for at in range(len(data)):
        yield data[at : at + 1]
        time.sleep(0.05)


def pipelined(_: int) -> Iterator[bytes]:
    data = frame("Metadata", 4, {"Topics": None}) * 10_000
    while True:
        yield data


def silence(_: int) -> Iterator[bytes]:
    while True:
        time.sleep(1)
        yield b""


class Crowd(Attack):
    """Each thread holds 400 connections open, speaks once on each of them, and opens those anew that were ended."""

    def run(self, address: str, number: int, end: float, tally: Any) -> None:
        hello, ended, held = frame("ApiVersions", 0, {}), 0, []
        while time.monotonic() < end:
            try:
                client = Client(address, "attacker", 5)
                if number % 2:
                    client.sock.sendall(hello)
                held.append(client)
            except OSError:
                ended += 1
            if len(held) >= 400:
                held.pop(0).sock.close()
                time.sleep(0.01)
        tally["ended"] += ended


def joining(version: int, group: str, protocols: list[tuple[str, bytes]], client: str = "attacker") -> bytes:
    body = {"GroupId": group, "SessionTimeoutMs": 1_800_000, "RebalanceTimeoutMs": 500, "MemberId": ""}
    body |= {"ProtocolType": "consumer", "Protocols": [{"Name": name, "Metadata": data} for name, data in protocols]}
    return frame("JoinGroup", version, body, client)


def joins(connection: int, number: int) -> bytes:
    """A group of its own with as much as fits."""
    body = {
        "GroupId": f"g{connection}-{number}",
        "SessionTimeoutMs": 1_800_000,
        "RebalanceTimeoutMs": 1_000,
        "MemberId": "",
    }
    body |= {"ProtocolType": "consumer", "Protocols": [{"Name": "range", "Metadata": bytes(3 * MB)}]}
    return frame("JoinGroup", 3, body)


def join_many_names(connection: int, number: int) -> bytes:
    return joining(3, f"g{connection}", [(name, b"") for name in named("p", N)], f"c{number}")


def pending_ids(connection: int, number: int) -> bytes:
    return joining(6, f"g{connection}", [("range", b"")], f"{number}".rjust(32_000, "c"))


def small_groups(connection: int, number: int) -> bytes:
    body = {
        "GroupId": f"g{connection}-{number}",
        "SessionTimeoutMs": 60_000,
        "RebalanceTimeoutMs": 1_000,
        "MemberId": "",
    }
    body |= {"ProtocolType": "consumer", "Protocols": [{"Name": "range", "Metadata": b"x" * 100}]}
    return frame("JoinGroup", 3, body)


def one_large_group(connection: int, number: int) -> bytes:
    """Members that all join one group, and never come back."""
    return joining(3, "large", [("range", b"x" * 100)], f"c{connection}-{number}")


def commits(connection: int, number: int) -> bytes:
    parts = [{"PartitionIndex": n, "CommittedOffset": 1, "CommittedMetadata": "m" * 4_000} for n in range(5)]
    topics = [{"Name": f"t{n}", "Partitions": parts} for n in range(180)]
    return frame("OffsetCommit", 5, {"GroupId": f"g{connection}-{number}", "MemberId": "", "Topics": topics})


def many_commits(connection: int, number: int) -> bytes:
    parts = [{"PartitionIndex": n, "CommittedOffset": 1, "CommittedMetadata": ""} for n in range(5)]
    topics = [{"Name": f"t{n}", "Partitions": parts} for n in range(8_000)]
    return frame("OffsetCommit", 5, {"GroupId": f"g{connection}-{number}", "MemberId": "", "Topics": topics})


def consumer_joins(connection: int, number: int) -> bytes:
    body = {"GroupId": f"g{connection}", "MemberId": f"m{number}", "MemberEpoch": 0, "RebalanceTimeoutMs": 1_000,
            "SubscribedTopicNames": named(f"{number}-", N), "TopicPartitions": []}  # fmt: skip
    return frame("ConsumerGroupHeartbeat", 0, body)


def consumer_patterns(connection: int, number: int) -> bytes:
    pattern = "(" + "|".join(f"t{n}.*.*.*.*{number}" for n in range(10)) + ")"
    body = {"GroupId": f"g{connection}-{number}", "MemberId": "m", "MemberEpoch": 0, "RebalanceTimeoutMs": 1_000,
            "SubscribedTopicNames": None, "SubscribedTopicRegex": pattern, "TopicPartitions": []}  # fmt: skip
    return frame("ConsumerGroupHeartbeat", 1, body)


def consumer_members(connection: int, number: int) -> bytes:
    body = {"GroupId": f"g{connection}", "MemberId": f"m{number}", "MemberEpoch": 0, "RebalanceTimeoutMs": 1_000,
            "SubscribedTopicNames": named("t", 1000), "TopicPartitions": []}  # fmt: skip
    return frame("ConsumerGroupHeartbeat", 0, body)


def configs(connection: int, number: int) -> bytes:
    rows = [{"Name": f"{number}-{n}", "ConfigOperation": 0, "Value": "v" * 30_000} for n in range(100)]
    resources = [{"ResourceType": 32, "ResourceName": f"g{connection}-{number}", "Configs": rows}]
    return frame("IncrementalAlterConfigs", 0, {"Resources": resources, "ValidateOnly": False})


def auto_created(connection: int, number: int) -> bytes:
    rows = [{"Name": f"a{connection}-{number}-{n}"} for n in range(5_000)]
    return frame("Metadata", 4, {"Topics": rows, "AllowAutoTopicCreation": True})


def created(connection: int, number: int) -> bytes:
    rows = [{"Name": f"c{connection}-{number}-{n}", "NumPartitions": 1, "ReplicationFactor": 1} for n in range(N)]
    return frame("CreateTopics", 4, {"Topics": rows, "TimeoutMs": 1000})


def created_and_deleted(connection: int, number: int) -> bytes:
    rows = named(f"d{connection}-", 1_000)
    if number % 2:
        return frame("DeleteTopics", 3, {"TopicNames": rows, "TimeoutMs": 1000})
    return frame("CreateTopics", 4, {"Topics": [{"Name": n, "NumPartitions": 5, "ReplicationFactor": 1} for n in rows]})


def producers(connection: int, number: int) -> bytes:
    records = build([(None, b"")], producer_id=(connection << 40) + number, producer_epoch=0, base_sequence=0)
    parts = [{"Index": 0, "Records": records}]
    topics = [{"Name": f"t{n}", "PartitionData": parts} for n in range(1_000)]
    return frame("Produce", 9, {"Acks": 1, "TimeoutMs": 1000, "TopicData": topics})


def deleted_records(connection: int, number: int) -> bytes:  # noqa: ARG001
    if number % 2:
        parts = [{"PartitionIndex": 0, "Offset": -1}]
        return frame("DeleteRecords", 1, {"Topics": [{"Name": f"t{n}", "Partitions": parts} for n in range(1_000)]})
    parts = [{"Index": 0, "Records": build([(None, b"")])}]
    topics = [{"Name": f"t{n}", "PartitionData": parts} for n in range(1_000)]
    return frame("Produce", 9, {"Acks": 1, "TimeoutMs": 1000, "TopicData": topics})


def tiny_partitions(connection: int, number: int) -> bytes:  # noqa: ARG001
    head = pack(">hhih", 0, 8, 7, 1) + b"x" + pack(">hhi", -1, 1, 1000) + pack(">ih", 1, 4) + b"good"
    parts = pack(">i", 12 * MB // 8) + bytes(12 * MB)
    return pack(">i", len(head + parts)) + head + parts


def damaged(connection: int, number: int) -> bytes:  # noqa: ARG001
    data = bytearray(frame("DescribeGroups", 0, {"Groups": [""] * 2_000_000}))
    data[:4] = pack(">i", len(data) - 5)
    return bytes(data[:-1])


def tokens(connection: int, number: int) -> bytes:  # noqa: ARG001
    return frame("SaslAuthenticate", 0, {"AuthBytes": bytes(3 * MB)})


# ---------------------------------------------------------------- the table

CONFIGS = {"ResourceType": 2, "ResourceName": "good", "ConfigurationKeys": None}
TIMES = [{"PartitionIndex": n % 50, "Timestamp": 1_700_000_000_001 if n % 2 else -3} for n in range(2_000)]
ALL = [{"Topic": f"t{n}", "Partitions": fetch_parts(5)} for n in range(8_000)]
GOOD = [{"Topic": "good", "Partitions": fetch_parts(1)}]
OLD_BOMB = [Record(n, 1, None, bytes(1000), []) for n in range(60_000)]
TWICE = {"Name": "good", "Count": 40_000, "Assignments": None}


def many(name: str, **part: Any) -> list[Body]:
    """One topic with the same part N times."""
    return [{name: "good", "Partitions": [part] * N}]


def every(api: str, version: int, threads: int = 3, setup: Any = None, reads: bool = True, **body: Any) -> Attack:
    """The same request over and over."""
    return Attack(again(api, version, body), threads, reads, setup)


def anew(make: Callable[[int, int], bytes], threads: int = 3, setup: Any = None) -> Attack:
    """Another request every time."""
    return Attack(each(make), threads, setup=setup)


ATTACKS: dict[str, Attack] = {
    "nobody": every("ApiVersions", 0, threads=0),
    "DescribeConfigs of one topic 150,000 times": every("DescribeConfigs", 1, Resources=[CONFIGS] * 150_000),
    "DescribeConfigs of one topic 49,000 times": every("DescribeConfigs", 1, Resources=[CONFIGS] * N),
    "DescribeConfigs with 49,000 keys": every(
        "DescribeConfigs", 1, Resources=[{**CONFIGS, "ConfigurationKeys": named("k", N)}]
    ),
    "Fetch v2 of bombs": every("Fetch", 2, setup=bombs, **fetch_body("bombs", fetch_parts(50))),
    "ListOffsets of bombs": every(
        "ListOffsets", 7, setup=bombs, ReplicaId=-1, Topics=[{"Name": "bombs", "Partitions": TIMES}]
    ),
    "Produce v2 of bombs": every("Produce", 2, **produce_body("good", build(OLD_BOMB, magic=1, compression="gzip"))),
    "Fetch of 60 MB that nobody reads": every(
        "Fetch", 4, 30, large_log, reads=False, **fetch_body("large", fetch_parts(60))
    ),
    "Metadata that nobody reads": every("Metadata", 4, 100, many_topics, reads=False, Topics=None),
    "Produce of 96 MB that is never finished": Attack(unfinished, threads=4, reads=False),
    "CreateTopics of 49,000 names": anew(created),
    "CreateTopics and DeleteTopics by turns": anew(created_and_deleted),
    "DescribeGroups of 4 MB": every("DescribeGroups", 0, Groups=["g"] * 1_390_000),
    "DescribeGroups of 49,000": every("DescribeGroups", 5, Groups=named("g", N)),
    "ConsumerGroupDescribe of 49,000": every("ConsumerGroupDescribe", 0, GroupIds=named("g", N)),
    "DeleteGroups of 49,000": every("DeleteGroups", 1, GroupsNames=named("g", N)),
    "FindCoordinator of 49,000": every("FindCoordinator", 4, CoordinatorKeys=named("g", N)),
    "a waiting Fetch of 49,000 partitions": Attack(waiting_fetch, reads=False),
    "Fetch of 49,000 partitions": every("Fetch", 4, **fetch_body("good", fetch_parts(1) * N)),
    "Fetch of all partitions that waits": every(
        "Fetch", 4, setup=many_topics, **{**fetch_body("", [], 60_000), "Topics": ALL + GOOD}
    ),
    "1,200 connections": Crowd(silence, threads=3),
    "capture of 1 MB fetches": Attack(
        again("Fetch", 4, fetch_body("large", fetch_parts(60, most=MB))), setup=large_log, capture=True
    ),
    "Produce of 1.5 million partitions": anew(tiny_partitions),
    "Produce of 19,000 partitions": every("Produce", 9, **produce_body("good", b"x" * 20, 19_000)),
    "Produce of 60 MB": every("Produce", 9, 2, large_log, **produce_body("large", build([(None, LARGE)]), 60)),
    "Metadata of 50,000 partitions": every("Metadata", 4, 10, many_topics, Topics=None),
    "Metadata that creates topics": anew(auto_created),
    "Metadata of one topic 49,000 times": every("Metadata", 4, setup=many_topics, Topics=[{"Name": "t1"}] * N),
    "DescribeTopicPartitions": every(
        "DescribeTopicPartitions", 0, 20, many_topics, Topics=[], Cursor=None, ResponsePartitionLimit=2000
    ),
    "DescribeLogDirs of all": every("DescribeLogDirs", 1, setup=many_topics, Topics=None),
    "ElectLeaders of all": every("ElectLeaders", 1, setup=many_topics, TopicPartitions=None, TimeoutMs=1),
    "DescribeProducers of 49,000": every(
        "DescribeProducers", 0, Topics=[{"Name": "good", "PartitionIndexes": [0] * N}]
    ),
    "ListOffsets of 49,000": every("ListOffsets", 7, Topics=many("Name", PartitionIndex=0, Timestamp=5)),
    "OffsetForLeaderEpoch of 49,000": every(
        "OffsetForLeaderEpoch", 3, Topics=many("Topic", Partition=0, LeaderEpoch=5, CurrentLeaderEpoch=-1)
    ),
    "OffsetFetch of 49,000 partitions": every(
        "OffsetFetch", 7, GroupId="g", Topics=[{"Name": "good", "PartitionIndexes": list(range(N))}]
    ),
    "OffsetFetch of 49,000 groups": every(
        "OffsetFetch", 8, setup=many_topics, Groups=[{"GroupId": name, "Topics": None} for name in named("g", N)]
    ),
    "OffsetCommit with metadata": anew(commits, setup=many_topics),
    "OffsetCommit of 40,000 partitions": anew(many_commits, setup=many_topics),
    "OffsetDelete of 49,000 partitions": every("OffsetDelete", 0, GroupId="g", Topics=many("Name", PartitionIndex=0)),
    "JoinGroup of 3 MB, a group each": anew(joins),
    "JoinGroup with 49,000 protocols": anew(join_many_names),
    "JoinGroup, ids handed out": anew(pending_ids),
    "JoinGroup, small groups": anew(small_groups, threads=6),
    "JoinGroup, one large group": anew(one_large_group, threads=50),
    "LeaveGroup of 49,000 members": every(
        "LeaveGroup", 3, GroupId="g", Members=[{"MemberId": name} for name in named("m", N)]
    ),
    "SyncGroup of 49,000 assignments": every(
        "SyncGroup", 3, GroupId="g", Assignments=[{"MemberId": name, "Assignment": b""} for name in named("m", N)]
    ),
    "Heartbeats": every("Heartbeat", 3, threads=20, GroupId="g" * 32_000, MemberId="m" * 32_000),
    "ConsumerGroupHeartbeat with 49,000 names": anew(consumer_joins),
    "ConsumerGroupHeartbeat with patterns": anew(consumer_patterns, setup=many_topics),
    "ConsumerGroupHeartbeat, many members": anew(consumer_members, setup=many_topics),
    "IncrementalAlterConfigs of 3 MB": anew(configs),
    "AlterConfigs of one topic 49,000 times": every(
        "AlterConfigs", 1, ValidateOnly=True,
        Resources=[{"ResourceType": 2, "ResourceName": "good", "Configs": []}] * N,
    ),
    "CreatePartitions of 49,000": every("CreatePartitions", 1, Topics=[TWICE] * N, TimeoutMs=1, ValidateOnly=True),
    "DeleteTopics of 49,000 names": every("DeleteTopics", 3, TopicNames=named("n", N), TimeoutMs=1),
    "DeleteRecords and Produce by turns": anew(deleted_records, setup=many_topics),
    "Produce by a new producer each": anew(producers, setup=many_topics),
    "SaslAuthenticate of 3 MB": anew(tokens),
    "requests that cannot be read": anew(damaged),
    "10,000 requests at once": Attack(pipelined, threads=10, reads=False),
    "a byte now and then": Attack(slow_loris, threads=200),
    "ApiVersions by 100": every("ApiVersions", 0, threads=100),
}  # fmt: skip
