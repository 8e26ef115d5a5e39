"""The checks that come before any group is looked at: may the caller, is the coordinator active, is it this group's.

KafkaApis asks for the authorisation. The rest was each handler's own in GroupCoordinator.scala until 1.1, became
validateGroupStatus in 2.0 (which looks at the loading before the ownership), and lies in GroupCoordinatorService and
its CoordinatorRuntime since 4.0. A rule's number is its place among a heartbeat's checks; 0 for those that have none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kwire.coordinator.codes import (
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    GROUP_AUTHORIZATION_FAILED,
    INVALID_GROUP_ID,
    NOT_COORDINATOR,
)
from kwire.coordinator.desk import Desk
from kwire.coordinator.words import Caller, Check

EMPTY_ID = frozenset(  # they take group id "" too, or have an error of their own for it
    {"OffsetCommit", "OffsetFetch", "DescribeGroups", "DeleteGroups", "ConsumerGroupHeartbeat"}
)


class Gate(NamedTuple):
    """fails gives the reason when the request ends here, else None."""

    number: int
    name: str
    error: int
    fails: Callable[[Desk, str, Caller, str], str | None]  # desk, api, caller, group


def _authorised(desk: Desk, api: str, caller: Caller, group: str) -> str | None:  # noqa: ARG001
    if desk.may(caller, group):
        return None
    return f"{caller.principal or 'nobody, logged in as such,'} may not use group {group}"


def _active(desk: Desk, api: str, caller: Caller, group: str) -> str | None:  # noqa: ARG001
    return None if desk.active else "the coordinator is not active"


def _named(desk: Desk, api: str, caller: Caller, group: str) -> str | None:  # noqa: ARG001
    return None if group or api in EMPTY_ID else "the group id is empty"


def _owned(desk: Desk, api: str, caller: Caller, group: str) -> str | None:  # noqa: ARG001
    return None if desk.owns(group) else f"another broker coordinates group {group}"


def _loaded(desk: Desk, api: str, caller: Caller, group: str) -> str | None:  # noqa: ARG001
    return f"group {group} is being loaded" if group in desk.loading else None


AUTHORISED = Gate(1, "authorised", GROUP_AUTHORIZATION_FAILED, _authorised)
ACTIVE = Gate(2, "active", COORDINATOR_NOT_AVAILABLE, _active)
OWNED = Gate(3, "coordinator", NOT_COORDINATOR, _owned)
LOADED = Gate(4, "loading", COORDINATOR_LOAD_IN_PROGRESS, _loaded)
NAMED = Gate(0, "group id", INVALID_GROUP_ID, _named)

ERAS: tuple[tuple[tuple[int, int], tuple[Gate, ...]], ...] = (  # newest first
    ((4, 0), (AUTHORISED, ACTIVE, NAMED, OWNED, LOADED)),
    ((2, 0), (AUTHORISED, NAMED, ACTIVE, LOADED, OWNED)),
    ((0, 9), (AUTHORISED, ACTIVE, NAMED, OWNED, LOADED)),
)


def of_era(era: tuple[int, int]) -> tuple[Gate, ...]:
    """The gates in that release's order."""
    return next((gates for start, gates in ERAS if era >= start), ERAS[-1][1])


def stopped(desk: Desk, gates: tuple[Gate, ...], api: str, caller: Caller, group: str) -> Check | None:
    """The check that ends the request, or None."""
    for gate in gates:
        why = gate.fails(desk, api, caller, group)
        if why is not None:
            return Check(gate.number, gate.name, gate.error, why)
    return None
