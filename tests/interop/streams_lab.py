"""What a script of a streams group's requests is written with: members, their topology, the tasks that they own.

The topics are the script's own: NAME-t with two partitions, NAME-u with one; NAME-r and NAME-c are those that its
topology may ask for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from coordinator_lab import Body, Lab

ROLES = ("ActiveTasks", "StandbyTasks", "WarmupTasks")


@dataclass(slots=True)
class Worker:
    """A member of a streams group. owned: by role, as it would say."""

    client: str
    id: str
    process: str
    epoch: int = 0
    owned: dict[str, Any] = field(default_factory=lambda: {role: [] for role in ROLES})


@dataclass
class StreamsLab(Lab):
    """A script's run."""

    def worker(self, client: str, process: str = "") -> Worker:
        return Worker(client, f"{client}-member", process or f"{client}-process")

    def part(self, name: str = "0", *sources: str, **fields: Any) -> Body:
        """A subtopology that reads NAME-t, or these topics."""
        row = {"SubtopologyId": name, "SourceTopics": [f"{self.group}-{each}" for each in sources or ("t",)]}
        empty = ("SourceTopicRegex", "StateChangelogTopics", "RepartitionSinkTopics", "RepartitionSourceTopics")
        return row | {each: [] for each in (*empty, "CopartitionGroups")} | fields

    def internal(self, name: str, partitions: int = 0) -> Body:
        return {"Name": f"{self.group}-{name}", "Partitions": partitions, "ReplicationFactor": 1, "TopicConfigs": []}

    def stateful(self) -> list[Body]:
        """Two subtopologies: one reads NAME-t into NAME-r, the other keeps what it read there in NAME-c."""
        first = self.part("0", RepartitionSinkTopics=[f"{self.group}-r"])
        second = self.part("1") | {"SourceTopics": []}
        second |= {"RepartitionSourceTopics": [self.internal("r")], "StateChangelogTopics": [self.internal("c")]}
        return [first, second]

    async def beat(self, worker: Worker, epoch: int | None = None, **fields: Any) -> Body:  # type: ignore[override]
        """StreamsGroupHeartbeat with the worker's epoch. A join brings everything, as Java's client does; of a later
        one Parts is no field of the request but the subtopologies."""
        epoch = worker.epoch if epoch is None else epoch
        body: Body = {"GroupId": self.group, "MemberId": worker.id, "MemberEpoch": epoch}
        parts = fields.pop("Parts", None)
        if epoch == 0:
            body |= {"RebalanceTimeoutMs": 1500, "ProcessId": worker.process, "ClientTags": []}
            body |= {role: [] for role in ROLES}
            body["Topology"] = {"Epoch": 0, "Subtopologies": [self.part()] if parts is None else parts}
        answer = await self.ask(worker.client, "StreamsGroupHeartbeat", 0, body | fields)
        if not answer["ErrorCode"]:
            worker.epoch = answer["MemberEpoch"]
            if answer["ActiveTasks"] is not None:
                worker.owned = {role: answer[role] for role in ROLES}
        return answer

    async def own(self, worker: Worker, **fields: Any) -> Body:
        """A heartbeat that says what the worker owns."""
        return await self.beat(worker, **worker.owned | fields)

    async def look(self) -> Body:  # type: ignore[override]
        return await self.ask("watcher", "StreamsGroupDescribe", 0, {"GroupIds": [self.group]})
