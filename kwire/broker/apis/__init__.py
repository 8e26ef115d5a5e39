"""One file per API, or per family of APIs that are answered alike; each has a table APIS, and this gathers them.

A handler takes a request and the broker's state and gives the answer's body (fields that the version lacks may be in
it), or a Later, or None for no answer at all. It may raise codes.Refused: the error goes into every error field.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, NamedTuple

from kwire.broker.context import Outcome, Request
from kwire.schema.keys import GET_TELEMETRY_SUBSCRIPTIONS, PUSH_TELEMETRY
from kwire.schema.model import NONE, Versions
from kwire.schema.registry import builtin

if TYPE_CHECKING:
    from kwire.broker.state import BrokerState

Handler = Callable[[Request, "BrokerState"], Outcome]
NEWEST = (4, 3)


class Api(NamedTuple):
    """An API as it is served: all versions within versions that kwire knows."""

    name: str
    versions: Versions
    handle: Handler


@cache
def served() -> dict[str, Api]:
    """Every API of this folder, by name."""
    found: dict[str, Api] = {}
    for module in iter_modules(__path__):
        for api in import_module(f"{__name__}.{module.name}").APIS:
            found[api.name] = api
    return found


TELEMETRY = (GET_TELEMETRY_SUBSCRIPTIONS, PUSH_TELEMETRY)


@cache
def announced(era: tuple[int, int] | None, telemetry: bool = False) -> dict[int, Versions]:
    """Key to versions: those of the era's release, or from the oldest on to those of the newest release. telemetry:
    somebody takes the clients' metrics."""
    registry = builtin()
    ranges: dict[int, Versions] = {}
    for key in registry.keys():  # noqa: SIM118 (a registry is no dict)
        api = served().get(registry.name_of(key) or "")
        if api is None or (key in TELEMETRY and not telemetry):
            continue
        versions = _of_release(key, era or NEWEST)
        if era is None and versions:
            versions = Versions(api.versions.low, versions.high)
        versions = versions.within(api.versions)
        if versions:
            ranges[key] = versions
    return ranges


def _of_release(key: int, era: tuple[int, int]) -> Versions:
    """An API's versions in a release. Before 2.2, of which kwire has no figures, those of 2.2 for what was there."""
    definition = builtin().api(key)
    past = [release for release in definition.releases if release.order <= era]
    if past:
        return Versions(past[-1].versions.low, min(past[-1].versions.high, past[-1].highest_stable))
    since = tuple(int(part) for part in definition.since.split(".")[:2]) if definition.since else era
    return definition.releases[0].versions if definition.releases and since <= era else NONE
