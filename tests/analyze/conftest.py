"""Groups that live through what a test says: requests with their answers at given seconds, judged at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kwire.analyze.calls import Call
from kwire.analyze.findings import Finding, Reference, TimeFormat
from kwire.analyze.groups import GroupHistories
from kwire.analyze.history import History
from kwire.analyze.verdicts import judge
from kwire.schema.registry import builtin

START = 1_700_000_000_000_000_000
VERSIONS = {"JoinGroup": 3, "SyncGroup": 3, "Heartbeat": 3, "LeaveGroup": 3, "OffsetCommit": 8}


class Life:
    """Calls of one group. Each gets the next two frame numbers: its request's and its answer's."""

    def __init__(self, group: str = "billing") -> None:
        self.group, self.frame = group, 0
        self.groups = GroupHistories()
        self.end = START

    def call(
        self, api: str, at: float, body: dict[str, Any], answer: dict[str, Any] | None, *, client: str, error: int = 0,
        took: float = 0.001, member: str = "", generation: int | None = None, instance: str | None = None,
        host: str = "10.0.0.7",
    ) -> None:  # fmt: skip
        asked = START + round(at * 1e9)
        answered = None if answer is None else asked + round(took * 1e9)
        request = Reference("a.pcap", self.frame + 1, asked, client, f"{api}Request v{VERSIONS.get(api, 0)}")
        response = Reference("a.pcap", self.frame + 2, answered or 0, client, f"{api}Response v{VERSIONS.get(api, 0)}")
        self.frame += 2
        key = builtin().find(api).definition.key
        assert key is not None
        ending = "the capture ended" if answer is None else None
        self.groups.take(
            Call(
                key,
                api,
                VERSIONS.get(api, 0),
                self.group,
                member,
                instance,
                generation,
                error,
                asked,
                answered,
                request,
                None if answered is None else response,
                client,
                host,
                "10.0.0.2:9092",
                f"{client}@{host}",
                {"GroupId": self.group, **body},
                answer,
                ending,
                str,
            )
        )
        self.end = max(self.end, answered or asked)

    def join(
        self, client: str, at: float, generation: int | None, *, members: tuple[str, ...] = (),
        member: str | None = None, took: float = 0.001, error: int = 0, session: int = 6000,
        rebalance: int = 300_000, leader: str = "", instance: str | None = None, asks: str = "",
        protocol: str = "range", host: str = "10.0.0.7",
    ) -> None:  # fmt: skip
        """A JoinGroup; generation None: it has no answer. members: the leader's list."""
        ident = f"{client}-id" if member is None else member
        answer = None
        if generation is not None:
            roster = [{"MemberId": one, "GroupInstanceId": None, "Metadata": b""} for one in members]
            answer = {
                "ErrorCode": error, "GenerationId": generation, "ProtocolName": protocol, "MemberId": ident,
                "Leader": leader or ident, "Members": roster,
            }  # fmt: skip
        body = {
            "MemberId": asks, "SessionTimeoutMs": session, "RebalanceTimeoutMs": rebalance, "GroupInstanceId": instance,
            "ProtocolType": "consumer", "Protocols": [{"Name": protocol, "Metadata": b""}],
        }  # fmt: skip
        self.call("JoinGroup", at, body, answer, client=client, error=error, took=took, member=asks, instance=instance,
                  host=host)  # fmt: skip

    def sync(
        self, client: str, at: float, generation: int, *, given: tuple[str, ...] = (), took: float = 0.001
    ) -> None:
        assignments = [{"MemberId": one, "Assignment": b""} for one in given]
        body = {"GenerationId": generation, "MemberId": f"{client}-id", "Assignments": assignments}
        answer = {"ErrorCode": 0, "Assignment": b""}
        self.call("SyncGroup", at, body, answer, client=client, took=took, member=f"{client}-id", generation=generation)

    def beat(
        self, client: str, at: float, generation: int, error: int = 0, *, member: str | None = None,
        instance: str | None = None, host: str = "10.0.0.7",
    ) -> None:  # fmt: skip
        ident = f"{client}-id" if member is None else member
        body = {"GenerationId": generation, "MemberId": ident, "GroupInstanceId": instance}
        self.call("Heartbeat", at, body, {"ErrorCode": error}, client=client, error=error, member=ident,
                  generation=generation, instance=instance, host=host)  # fmt: skip

    def leave(self, client: str, at: float, *, whose: str | None = None) -> None:
        member = {"MemberId": whose or f"{client}-id", "GroupInstanceId": None}
        answer = {"ErrorCode": 0, "Members": [{**member, "ErrorCode": 0}]}
        self.call("LeaveGroup", at, {"Members": [member]}, answer, client=client)

    def commit(self, client: str, at: float, generation: int, error: int = 0) -> None:
        topics = [{"Name": "orders", "Partitions": [{"PartitionIndex": 0, "CommittedOffset": 7}]}]
        body = {"GenerationIdOrMemberEpoch": generation, "MemberId": f"{client}-id", "Topics": topics}
        self.call(
            "OffsetCommit", at, body, {}, client=client, error=error, member=f"{client}-id", generation=generation
        )

    def pair(self, session: int = 6000) -> None:
        """c1, the leader, and c2 form generation 1 in the fourth second: frames 1 to 8."""
        self.join("c1", 1.0, 1, members=("c1-id", "c2-id"), took=3.0, session=session)
        self.join("c2", 1.2, 1, took=2.8, session=session, leader="c1-id")
        self.sync("c2", 4.01, 1, took=0.01)
        self.sync("c1", 4.015, 1, given=("c1-id", "c2-id"))

    def history(self, until: float | None = None) -> History:
        """The group when the capture ends."""
        self.groups.activity.first_time = START
        self.groups.activity.last_time = self.end if until is None else START + round(until * 1e9)
        self.groups.finish()
        return self.groups.histories[self.group]

    def findings(self, until: float | None = None) -> list[Finding]:
        self.history(until)
        (found,) = [found for _, _, found in judge(self.groups, TimeFormat(START)).groups]
        return found

    def said(self, until: float | None = None, *, notes: bool = False) -> list[str]:
        """The findings as "error: what"."""
        return [f"{one.severity}: {one.what}" for one in self.findings(until) if notes or one.severity != "note"]


@pytest.fixture
def life() -> Life:
    return Life()


@pytest.fixture
def lives() -> Callable[[str], Life]:
    return Life
