"""What the coordinator's tests share: a coordinator that is talked to in few words."""

from collections.abc import Callable, Iterable
from itertools import count
from typing import Any, Self
from uuid import UUID

import pytest

from kwire.coordinator.coordinator import Coordinator
from kwire.coordinator.types import MS, Answer, ClientIdentity, Event, GroupSettings, KnownTopic

TOPICS = {"orders": KnownTopic("orders", UUID(int=1), 4), "payments": KnownTopic("payments", UUID(int=2), 2)}


class Lab:
    """Times are ms. Member ids are the client id with a number behind: a-1, b-2, …"""

    def __init__(self, **settings: Any) -> None:
        numbers = count(1)
        settings.setdefault("group_initial_rebalance_delay_ms", 0)
        self.topics = dict(TOPICS)
        self.coordinator = Coordinator(
            GroupSettings(**settings), lambda name: f"{name}-{next(numbers)}", lambda: self.topics
        )
        self.now = 0
        self.seen: list[Event] = []
        self._ready: dict[int, Answer] = {}

    def ask(self, api: str, version: int, body: dict[str, Any], client: str = "a") -> int:
        return self.coordinator.ask(api, version, body, ClientIdentity(client), self.now * MS)

    def answer(self, ticket: int) -> Answer | None:
        self._ready |= {each.ticket: each for each in self.coordinator.answers()}
        return self._ready.pop(ticket, None)

    def body(self, ticket: int) -> dict[str, Any]:
        """The answer's body; the answer must be there."""
        answer = self.answer(ticket)
        assert answer is not None, f"ticket {ticket} waits"
        return answer.body

    def pick(self, ticket: int, *fields: str) -> list[Any]:
        """Some of the answer's fields."""
        body = self.body(ticket)
        return [body[field] for field in fields]

    def get(self, api: str, version: int, body: dict[str, Any], client: str = "a") -> dict[str, Any]:
        return self.body(self.ask(api, version, body, client))

    def wait(self, ms: int) -> None:
        """Time passes, as a server would let it: tick at each due."""
        self.now += ms
        while self.coordinator.due is not None and self.coordinator.due <= self.now * MS:
            self.coordinator.tick(self.coordinator.due)
        self.coordinator.tick(self.now * MS)

    def events(self, *kinds: str) -> list[Event]:
        """All events so far, or those of these kinds."""
        self.seen += self.coordinator.events()
        return [event for event in self.seen if not kinds or event.kind in kinds]

    # requests in short

    def join(self, member: str = "", version: int = 9, client: str = "a", **fields: Any) -> int:
        protocols = fields.pop("protocols", {"range": b"r"})
        body = {
            "GroupId": "g",
            "SessionTimeoutMs": 10_000,
            "RebalanceTimeoutMs": 20_000,
            "MemberId": member,
            "GroupInstanceId": None,
            "ProtocolType": "consumer",
            "Protocols": [{"Name": name, "Metadata": data} for name, data in protocols.items()],
            "Reason": None,
            **fields,
        }
        return self.ask("JoinGroup", version, body, client)

    def sync(self, member: str, generation: int, assigned: dict[str, bytes] | None = None, **fields: Any) -> int:
        given = [{"MemberId": who, "Assignment": what} for who, what in (assigned or {}).items()]
        body = {
            "GroupId": "g",
            "GenerationId": generation,
            "MemberId": member,
            "GroupInstanceId": None,
            "ProtocolType": "consumer",
            "ProtocolName": "range",
            "Assignments": given,
            **fields,
        }
        return self.ask("SyncGroup", 5, body)

    def beat(self, member: str, generation: int, instance: str | None = None, group: str = "g") -> Answer:
        body = {"GroupId": group, "GenerationId": generation, "MemberId": member, "GroupInstanceId": instance}
        answer = self.answer(self.ask("Heartbeat", 4, body))
        assert answer is not None
        return answer

    def leave(self, *members: tuple[str, str | None]) -> dict[str, Any]:
        each = [{"MemberId": member, "GroupInstanceId": instance, "Reason": "done"} for member, instance in members]
        return self.get("LeaveGroup", 5, {"GroupId": "g", "Members": each})

    def commit(
        self, member: str = "", generation: int = -1, version: int = 9, offset: int = 7, **fields: Any
    ) -> Answer:
        part = {"PartitionIndex": 0, "CommittedOffset": offset, "CommittedLeaderEpoch": 3, "CommittedMetadata": "m"}
        body = {
            "GroupId": "g",
            "GenerationIdOrMemberEpoch": generation,
            "MemberId": member,
            "GroupInstanceId": None,
            "Topics": [{"Name": "orders", "Partitions": [part]}],
            **fields,
        }
        answer = self.answer(self.ask("OffsetCommit", version, body))
        assert answer is not None
        return answer

    # groups in short

    @property
    def group(self) -> Any:
        return self.coordinator.groups["g"]

    def joined(self, clients: Iterable[str] = "ab", **fields: Any) -> list[str]:
        """Members of a CompletingRebalance group, by JoinGroup v3; the first leads."""
        names = list(clients)
        tickets = {names[0]: self.join(version=3, client=names[0], **fields)}
        ids = {names[0]: self.body(tickets[names[0]])["MemberId"]}
        for name in names[1:]:
            tickets[name] = self.join(version=3, client=name, **fields)
            rejoined = [self.join(ids[each], version=3, client=each, **fields) for each in ids]
            ids[name] = self.body(tickets[name])["MemberId"]
            for ticket in rejoined:
                self.body(ticket)
        return list(ids.values())

    def stable(self, clients: Iterable[str] = "ab", **fields: Any) -> list[str]:
        """Members of a Stable group, each assigned its own id."""
        ids = self.joined(clients, **fields)
        plan = {each: each.encode() for each in ids}
        for each in ids[1:]:
            self.sync(each, self.group.generation)
        self.sync(ids[0], self.group.generation, plan)
        self.coordinator.answers()
        return ids

    def in_state(self, state: str) -> Self:
        """The group of one member, a-1, in this state; none: nobody ever joined."""
        if state == "none":
            return self
        (self.joined if state == "CompletingRebalance" else self.stable)("a")
        if state == "PreparingRebalance":
            self.join(version=3, client="b")
        if state == "Empty":
            self.leave(("a-1", None))
        assert self.group.state == state
        return self


@pytest.fixture
def lab() -> Callable[..., Lab]:
    """Makes a Lab; keywords are GroupSettings."""
    return Lab
