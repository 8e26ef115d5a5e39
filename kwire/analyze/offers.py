"""Which versions of each API a Kafka release takes, and which release a broker's offers look like."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from kwire.schema.model import NONE, Versions
from kwire.schema.registry import builtin

Release = tuple[int, int]
FOUR = (4, 0)


def release_named(text: str) -> Release:
    """4.0 out of "4.0", "4.0.1" or "v4". Raises ValueError."""
    parts = text.strip().lower().removeprefix("v").split(".")
    return int(parts[0]), int(parts[1]) if len(parts) > 1 else 0


def versions_at(key: int, release: Release) -> Versions:
    """What brokers of a release take of an API. Before 2.2, of which there are no figures, what 2.2 takes of what was
    there."""
    definition = builtin().api(key)
    past = [one for one in definition.releases if one.order[:2] <= release]
    if past:
        return Versions(past[-1].versions.low, min(past[-1].versions.high, past[-1].highest_stable))
    since = definition.since.split(".")
    began = (int(since[0]), int(since[1])) if len(since) > 1 else (99, 0)
    return definition.releases[0].versions if definition.releases and began <= release else NONE


def is_gone(key: int, release: Release) -> bool:
    """Whether an API was there before a release and is no more."""
    past = [one for one in builtin().api(key).releases if one.order[:2] <= release]
    return bool(past) and not past[-1].versions and any(one.versions for one in past)


@cache
def known_releases() -> tuple[Release, ...]:
    """Releases that there are figures of, the oldest first."""
    return tuple(builtin().releases())


@cache
def release_like(offered: frozenset[tuple[int, int, int]]) -> Release | None:
    """The newest release of which an ApiVersions answer (key, lowest, highest) offers all that it takes; None when it
    offers less than the oldest that is known."""
    ranges: Mapping[int, tuple[int, int]] = {key: (low, high) for key, low, high in offered}
    found = None
    for release in known_releases():
        if release >= FOUR and ranges.get(1, (0, 0))[0] < versions_at(1, FOUR).low:
            break
        fits = True
        for key, (_, high) in ranges.items():
            if key in builtin().keys() and high < versions_at(key, release).high:  # noqa: SIM118
                fits = False
        if fits:
            found = release
    return found
