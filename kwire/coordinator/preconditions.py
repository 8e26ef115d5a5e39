"""The checks that come before any group is looked at: may the caller, is the coordinator active, is it this group's.

KafkaApis asks for the authorisation. The rest was each handler's own in GroupCoordinator.scala until 1.1, became
validateGroupStatus in 2.0 (which looks at the loading before the ownership), and lies in GroupCoordinatorService and
its CoordinatorRuntime since 4.0. A rule's number is its place among a heartbeat's checks; 0 for those that have none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from kwire.coordinator.types import Check, ClientIdentity
from kwire.schema.codes import (
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    GROUP_AUTHORIZATION_FAILED,
    INVALID_GROUP_ID,
    NOT_COORDINATOR,
)

EMPTY_ID = frozenset(  # they take group id "" too, or have an error of their own for it
    {
        "OffsetCommit",
        "OffsetFetch",
        "DescribeGroups",
        "DeleteGroups",
        "ConsumerGroupHeartbeat",
        "ShareGroupHeartbeat",
        "StreamsGroupHeartbeat",
    }
)


class CoordinatorStatus(Protocol):
    """What of a coordinator the preconditions look at; see Context."""

    active: bool
    loading: set[str]

    @property
    def owns(self) -> Callable[[str], bool]: ...

    @property
    def may(self) -> Callable[[ClientIdentity, str], bool]: ...


class Precondition(NamedTuple):
    """fails gives the reason when the request ends here, else None."""

    number: int
    name: str
    error: int
    fails: Callable[[CoordinatorStatus, str, ClientIdentity, str], str | None]  # context, api, caller, group


def _authorised(context: CoordinatorStatus, api: str, caller: ClientIdentity, group: str) -> str | None:  # noqa: ARG001
    if context.may(caller, group):
        return None
    return f"{caller.principal or 'nobody, logged in as such,'} may not use group {group}"


def _active(context: CoordinatorStatus, api: str, caller: ClientIdentity, group: str) -> str | None:  # noqa: ARG001
    return None if context.active else "the coordinator is not active"


def _named(context: CoordinatorStatus, api: str, caller: ClientIdentity, group: str) -> str | None:  # noqa: ARG001
    return None if group or api in EMPTY_ID else "the group id is empty"


def _owned(context: CoordinatorStatus, api: str, caller: ClientIdentity, group: str) -> str | None:  # noqa: ARG001
    return None if context.owns(group) else f"another broker coordinates group {group}"


def _loaded(context: CoordinatorStatus, api: str, caller: ClientIdentity, group: str) -> str | None:  # noqa: ARG001
    return f"group {group} is being loaded" if group in context.loading else None


AUTHORISED = Precondition(1, "authorised", GROUP_AUTHORIZATION_FAILED, _authorised)
ACTIVE = Precondition(2, "active", COORDINATOR_NOT_AVAILABLE, _active)
OWNED = Precondition(3, "coordinator", NOT_COORDINATOR, _owned)
LOADED = Precondition(4, "loading", COORDINATOR_LOAD_IN_PROGRESS, _loaded)
NAMED = Precondition(0, "group id", INVALID_GROUP_ID, _named)

ERAS: tuple[tuple[tuple[int, int], tuple[Precondition, ...]], ...] = (  # newest first
    ((4, 0), (AUTHORISED, ACTIVE, NAMED, OWNED, LOADED)),
    ((2, 0), (AUTHORISED, NAMED, ACTIVE, LOADED, OWNED)),
    ((0, 9), (AUTHORISED, ACTIVE, NAMED, OWNED, LOADED)),
)


def of_era(era: tuple[int, int]) -> tuple[Precondition, ...]:
    """The preconditions in that release's order."""
    return next((preconditions for start, preconditions in ERAS if era >= start), ERAS[-1][1])


def stopped(
    context: CoordinatorStatus, preconditions: tuple[Precondition, ...], api: str, caller: ClientIdentity, group: str
) -> Check | None:
    """The check that ends the request, or None."""
    for precondition in preconditions:
        why = precondition.fails(context, api, caller, group)
        if why is not None:
            return Check(precondition.number, precondition.name, precondition.error, why)
    return None
