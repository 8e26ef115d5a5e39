"""A JoinGroup as its handlers see it, of any version."""

from __future__ import annotations

from typing import NamedTuple

from kwire.coordinator.context import CoordinatorRequest


class JoinRequest(NamedTuple):
    """A JoinGroup request's values."""

    member: str
    instance: str | None
    session_ms: int
    rebalance_ms: int
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]
    reason: str

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.protocols]


def read(request: CoordinatorRequest) -> JoinRequest:
    body = request.body
    session = body["SessionTimeoutMs"]
    return JoinRequest(
        body["MemberId"],
        body.get("GroupInstanceId"),
        session,
        session if request.version == 0 else body["RebalanceTimeoutMs"],
        body["ProtocolType"],
        tuple((each["Name"], each["Metadata"]) for each in body["Protocols"]),
        body.get("Reason") or "not provided",
    )
