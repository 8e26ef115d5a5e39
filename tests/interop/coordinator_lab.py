"""What a script of group requests is written with: clients on raw sockets, a transcript, members that join and sync.

Every client is a connection of its own, for a JoinGroup may wait. After each request that is not waited for there is a
pause, since a broker reads its sockets in no fixed order. All steps are kept as they were sent and answered.
"""

from __future__ import annotations

import asyncio
import struct
import time
from dataclasses import dataclass, field
from typing import Any

import kwire
from kwire.codec.library import builtin_library
from kwire.render.jsonform import to_jsonable

PAUSE = 0.03  # seconds between two requests of two clients, so that the broker sees them in this order
UNSUPPORTED_VERSION = 35
PATIENCE = 30  # seconds for an answer
Body = dict[str, Any]


class NotOffered(Exception):
    """The broker lacks an API or a version."""


class Client:
    """A connection: one request in flight at a time."""

    def __init__(self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.name, self.reader, self.writer = name, reader, writer
        self.count = 0

    @classmethod
    async def connect(cls, name: str, address: tuple[str, int]) -> Client:
        return cls(name, *await asyncio.open_connection(*address))

    def write(self, api: str, version: int, body: Body) -> None:
        found = kwire.decode_frame(b"", api=api, version=version)
        self.count += 1
        header = kwire.encode(
            "RequestHeader",
            2 if version in builtin_library().registry.find(api).definition.messages[0].flexible else 1,
            {
                "RequestApiKey": found.api_key,
                "RequestApiVersion": version,
                "CorrelationId": self.count,
                "ClientId": self.name,
            },
        )
        frame = header + kwire.encode(f"{api}Request", version, body)
        self.writer.write(struct.pack(">i", len(frame)) + frame)

    async def read(self, api: str, version: int) -> Body:
        size = await self.reader.readexactly(4)
        data = size + await self.reader.readexactly(struct.unpack(">i", size)[0])
        frame = kwire.decode_frame(data, api=api, version=version)
        assert frame.quality == "ok", (frame.name, frame.quality, frame.note)
        assert frame.correlation_id == self.count
        assert frame.body is not None
        return frame.body

    async def ask(self, api: str, version: int, body: Body) -> Body:
        self.write(api, version, body)
        return await asyncio.wait_for(self.read(api, version), PATIENCE)


@dataclass(slots=True)
class Member:
    """A member as its client knows it."""

    client: str
    id: str = ""
    generation: int = -1
    instance: str | None = None


@dataclass
class Lab:
    """One script's run. group: its group's name; topics: name to id and number of partitions."""

    group: str
    address: tuple[str, int]
    versions: dict[str, tuple[int, int]]
    topics: dict[str, dict[str, Any]]
    admin: Client
    steps: list[dict[str, Any]] = field(default_factory=list)
    denied: list[str] = field(default_factory=list)
    settings: dict[str, int] = field(default_factory=dict)
    clients: dict[str, Client] = field(default_factory=dict)
    configs: dict[str, str] = field(default_factory=dict)
    begun: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.known_at_first = dict(self.topics)

    def newest(self, api: str) -> int:
        """The newest version that the broker and kwire know."""
        if api not in self.versions:
            raise NotOffered(f"the broker knows no {api}")
        return min(self.versions[api][1], max(builtin_library().registry.find(api).definition.messages[0].versions))

    def now_ms(self) -> float:
        return round((time.monotonic() - self.begun) * 1000, 1)

    async def send(self, client: str, api: str, version: int | None, body: Body) -> asyncio.Task[Body]:
        """Sends a request and pauses; the task ends with the answer. version None: the newest."""
        if client not in self.clients:
            self.clients[client] = await Client.connect(client, self.address)
        if version is None:
            version = self.newest(api)
        low, high = self.versions.get(api, (0, -1))
        if not low <= version <= high:
            raise NotOffered(f"{api} v{version}: the broker knows {low} to {high}")
        connection, step = self.clients[client], self._step(client, api, version, body)
        connection.write(api, version, body)

        async def answer() -> Body:
            got = await asyncio.wait_for(connection.read(api, version), PATIENCE)
            step["took_ms"] = round(self.now_ms() - step["at_ms"], 1)
            if api == "ListGroups":  # other scripts run beside this one
                got["Groups"] = [row for row in got["Groups"] if row["GroupId"] == self.group]
            step["response"] = to_jsonable(got)
            return got

        task = asyncio.create_task(answer())
        await asyncio.sleep(PAUSE)
        return task

    async def ask(self, client: str, api: str, version: int | None, body: Body) -> Body:
        """Sends a request and waits for its answer."""
        return await (await self.send(client, api, version, body))

    def _step(self, client: str, api: str, version: int, body: Body) -> dict[str, Any]:
        whole = kwire.decode(f"{api}Request", version, kwire.encode(f"{api}Request", version, body))
        step = {"at_ms": self.now_ms(), "client": client, "api": api, "version": version, "request": to_jsonable(whole)}
        self.steps.append(step)
        return step

    async def create_topic(self, name: str, partitions: int) -> None:
        """A new topic, which the transcript tells of as a step without a client."""
        asked = {"Topics": [{"Name": name, "NumPartitions": partitions, "ReplicationFactor": 1}], "TimeoutMs": 5000}
        made = (await self.admin.ask("CreateTopics", 7, asked))["Topics"][0]
        assert made["ErrorCode"] == 0, made
        self.topics = self.topics | {name: {"uuid": made["TopicId"], "partitions": partitions}}
        self.steps.append({"at_ms": self.now_ms(), "topics": topic_row(name, made["TopicId"], partitions)})

    async def deny(self) -> None:
        """From now on nobody may do anything with the script's group."""
        rule = {"ResourceType": 3, "ResourceName": self.group, "ResourcePatternType": 3, "Principal": "User:ANONYMOUS"}
        rule |= {"Host": "*", "Operation": 2, "PermissionType": 2}
        made = await self.admin.ask("CreateAcls", 3, {"Creations": [rule]})
        assert made["Results"][0]["ErrorCode"] == 0, made
        self.denied.append(self.group)
        await asyncio.sleep(0.5)
        self.begun = time.monotonic()

    async def configure(self, **settings: int) -> None:
        """Configuration of this group alone: consumer_assignment_interval_ms=1000 and the like."""
        await self.set_configs({key.replace("_", "."): str(value) for key, value in settings.items()})
        self.settings |= {f"group_{key}": value for key, value in settings.items()}

    async def set_configs(self, configs: dict[str, str]) -> None:
        """The same by its names in Kafka."""
        rows: list[Body] = [{"Name": key, "Value": value, "ConfigOperation": 0} for key, value in configs.items()]
        asked = {"ResourceType": 32, "ResourceName": self.group, "Configs": rows}
        made = await self.admin.ask("IncrementalAlterConfigs", 1, {"Resources": [asked], "ValidateOnly": False})
        if made["Responses"][0]["ErrorCode"]:
            raise NotOffered(f"configuration of a group: {made['Responses'][0]['ErrorMessage']}")
        self.configs |= configs
        await asyncio.sleep(0.5)
        self.begun = time.monotonic()

    async def close(self) -> None:
        for client in self.clients.values():
            client.writer.close()

    # ------------------------------------------------------------ a member's life

    async def join(self, member: Member, version: int | None = None, **fields: Any) -> asyncio.Task[Body]:
        """JoinGroup with the member's id; fields are set or replaced."""
        version = self.newest("JoinGroup") if version is None else version
        body: Body = {
            "GroupId": self.group,
            "SessionTimeoutMs": 10_000,
            "MemberId": member.id,
            "ProtocolType": "consumer",
            "Protocols": [protocol("range", member.client)],
        }
        if version >= 1:
            body["RebalanceTimeoutMs"] = 5_000
        if version >= 5:
            body["GroupInstanceId"] = member.instance
        return await self.send(member.client, "JoinGroup", version, body | fields)

    async def new(self, client: str, version: int | None = None, **fields: Any) -> Member:
        """A member that has asked for its id, no more."""
        member = Member(client)
        answer = await (await self.join(member, version, **fields))
        assert answer["ErrorCode"] == 79, answer
        member.id = answer["MemberId"]
        return member

    async def sync(
        self, member: Member, version: int | None = None, all_of: list[Member] | None = None, **fields: Any
    ) -> asyncio.Task[Body]:
        """SyncGroup; all_of: the members that this leader gives something."""
        version = self.newest("SyncGroup") if version is None else version
        body: Body = {"GroupId": self.group, "GenerationId": member.generation, "MemberId": member.id}
        body["Assignments"] = [{"MemberId": one.id, "Assignment": assignment(one.client)} for one in all_of or []]
        if version >= 3:
            body["GroupInstanceId"] = member.instance
        if version >= 5:
            body |= {"ProtocolType": "consumer", "ProtocolName": "range"}
        return await self.send(member.client, "SyncGroup", version, body | fields)

    async def settle(self, members: list[Member], joins: list[asyncio.Task[Body]]) -> Member:
        """Waits for the joins, then syncs: the group is stable. Returns the leader."""
        for member, answer in zip(members, await asyncio.gather(*joins), strict=True):
            assert answer["ErrorCode"] == 0, answer
            member.id, member.generation, leader_id = answer["MemberId"], answer["GenerationId"], answer["Leader"]
        leader = next(member for member in members if member.id == leader_id)
        syncs = [await self.sync(member) for member in members if member is not leader]
        syncs.append(await self.sync(leader, all_of=members))
        for answer in await asyncio.gather(*syncs):
            assert answer["ErrorCode"] == 0, answer
        return leader

    async def stable(self, *clients: str, **fields: Any) -> list[Member]:
        """A stable group of these, the leader first."""
        members = [await self.new(client, **fields) for client in clients]
        leader = await self.settle(members, [await self.join(member, **fields) for member in members])
        return [leader, *(member for member in members if member is not leader)]

    async def heartbeat(self, member: Member, client: str | None = None, **fields: Any) -> Body:
        version = self.newest("Heartbeat")
        body = {"GroupId": self.group, "GenerationId": member.generation, "MemberId": member.id}
        body["GroupInstanceId"] = member.instance
        return await self.ask(client or member.client, "Heartbeat", version, body | fields)

    async def leave(self, client: str, *members: Member) -> Body:
        rows = [{"MemberId": one.id, "GroupInstanceId": one.instance} for one in members]
        return await self.ask(client, "LeaveGroup", None, {"GroupId": self.group, "Members": rows})

    # ------------------------------------------------------------ offsets and looks from outside

    async def commit(self, member: Member, version: int = 9, *, topic: str = "orders", **fields: Any) -> Body:
        """OffsetCommit of offset 100 in partition 0."""
        partition: Body = {"PartitionIndex": 0, "CommittedOffset": 100, "CommittedMetadata": "by " + member.client}
        named = {"TopicId": self.topic_id(topic)} if version >= 10 else {"Name": topic}
        body: Body = {"GroupId": self.group, "Topics": [named | {"Partitions": [partition]}]}
        if version >= 1:
            body |= {"GenerationIdOrMemberEpoch": member.generation, "MemberId": member.id}
        if version >= 7:
            body["GroupInstanceId"] = member.instance
        return await self.ask(member.client, "OffsetCommit", version, body | fields)

    async def fetch(self, client: str, version: int = 8, *, stable: bool = False, every: bool = False) -> Body:
        """OffsetFetch of partitions 0 and 1, or of every one that has a commit."""
        topics = None if every else [{"Name": "orders", "PartitionIndexes": [0, 1]}]
        body: Body = {"Groups": [{"GroupId": self.group, "Topics": topics}]}
        if version < 8:
            body = {"GroupId": self.group, "Topics": topics}
        if version >= 7:
            body["RequireStable"] = stable
        return await self.ask(client, "OffsetFetch", version, body)

    async def beat(self, client: str, member_id: str, epoch: int, version: int = 1, **fields: Any) -> Body:
        """ConsumerGroupHeartbeat; one that joins (epoch 0) brings what a join needs."""
        version = min(version, self.newest("ConsumerGroupHeartbeat"))
        body: Body = {"GroupId": self.group, "MemberId": member_id, "MemberEpoch": epoch}
        if epoch == 0:
            body |= {"RebalanceTimeoutMs": 5_000, "SubscribedTopicNames": ["orders"], "TopicPartitions": []}
        answer = await self.ask(client, "ConsumerGroupHeartbeat", version, body | fields)
        if answer["ErrorCode"] == UNSUPPORTED_VERSION:
            raise NotOffered("consumer groups are off")
        return answer

    def owned(self, *partitions: int, topic: str = "orders") -> list[Body]:
        """TopicPartitions of one topic; none at all without partitions."""
        return [{"TopicId": self.topic_id(topic), "Partitions": list(partitions)}] if partitions else []

    async def describe(self, client: str = "watcher") -> Body:
        """The group as ConsumerGroupDescribe shows it."""
        return await self.ask(
            client, "ConsumerGroupDescribe", self.newest("ConsumerGroupDescribe"), {"GroupIds": [self.group]}
        )

    async def look(self, client: str = "watcher") -> None:
        """The group as DescribeGroups and ListGroups show it now."""
        await self.ask(client, "DescribeGroups", 5, {"Groups": [self.group]})
        await self.ask(client, "ListGroups", 4, {"StatesFilter": []})

    async def delete(self, client: str = "watcher", group: str | None = None) -> Body:
        return await self.ask(client, "DeleteGroups", 2, {"GroupsNames": [self.group if group is None else group]})

    def topic_id(self, name: str) -> Any:
        return next(row["uuid"] for known, row in self.topics.items() if known == name)


def protocol(name: str, data: str) -> Body:
    """A protocol of a JoinGroup: a subscription to orders, with the user data given. Brokers from 4.0 on read it."""
    subscription = {"Topics": ["orders"], "UserData": data.encode()}
    return {"Name": name, "Metadata": b"\0\0" + kwire.encode("ConsumerProtocolSubscription", 0, subscription)}


def assignment(data: str) -> bytes:
    """A member's part in a SyncGroup: orders 0, with the user data given."""
    body = {"AssignedPartitions": [{"Topic": "orders", "Partitions": [0]}], "UserData": data.encode()}
    return b"\0\0" + kwire.encode("ConsumerProtocolAssignment", 0, body)


def topic_row(name: str, topic_id: Any, partitions: int) -> dict[str, Any]:
    """A topic as transcripts name it."""
    return {name: {"id": to_jsonable(topic_id), "partitions": partitions}}
