"""Which versions of each API a Kafka release takes, what a broker's ApiVersions answer offers, and which release that
looks like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from kwire.codec.library import Library
from kwire.errors import DecodeError
from kwire.schema.model import NONE, Versions
from kwire.schema.registry import builtin

if TYPE_CHECKING:
    from kwire.session.exchange import Message

Release = tuple[int, int]
FOUR = (4, 0)
ANSWERS = 256  # that are remembered: brokers say the same to whoever asks
SHORT = 8192  # bytes of answers that are


@dataclass(frozen=True, slots=True, eq=False)
class Offer:
    """What an ApiVersions answer says. error: its own; ranges: lowest and highest version by API key; features:
    finalized levels by name, None where the answer does not tell them."""

    error: int
    ranges: Mapping[int, tuple[int, int]]
    features: Mapping[str, int] | None


def offer_of(response: Message) -> Offer | None:
    """What an ApiVersions answer says; None where it cannot be read. Answers of the same bytes are read once."""
    kind, version = response.api, response.body_version
    if kind is None or kind.response is None or response.body_at is None or not (kind.supported or version is not None):
        return None
    body = response.data[response.body_at :]
    read = _offer if len(body) <= SHORT else _offer.__wrapped__
    return read(kind.library, kind.response.name, kind.version if version is None else version, body)


@lru_cache(ANSWERS)
def _offer(library: Library, name: str, version: int, body: bytes) -> Offer | None:
    try:
        answer = library.codec(name, version).decode_at(body, 0)[0]
    except DecodeError:
        return None
    ranges = {row["ApiKey"]: (row["MinVersion"], row["MaxVersion"]) for row in answer["ApiKeys"]}
    features = None
    if (answer.get("FinalizedFeaturesEpoch") or -1) >= 0:
        features = {row["Name"]: row["MaxVersionLevel"] for row in answer.get("FinalizedFeatures") or ()}
    return Offer(answer["ErrorCode"], ranges, features)


def release_named(text: str) -> Release:
    """4.0 out of "4.0", "4.0.1" or "v4". Raises ValueError."""
    parts = text.strip().lower().removeprefix("v").split(".")
    return int(parts[0]), int(parts[1]) if len(parts) > 1 else 0


@cache
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


@cache
def is_gone(key: int, release: Release) -> bool:
    """Whether a release has dropped an API that earlier ones had."""
    past = [one for one in builtin().api(key).releases if one.order[:2] <= release]
    return bool(past) and not past[-1].versions and any(one.versions for one in past)


@cache
def known_releases() -> tuple[Release, ...]:
    """The releases with known versions, oldest first."""
    return tuple(builtin().releases())


@cache
def release_like(offered: frozenset[tuple[int, int, int]]) -> Release | None:
    """The newest release whose versions an ApiVersions answer (key, lowest, highest) offers in full; None if it offers
    less than the oldest known release."""
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


def meet(one: Versions, other: Versions) -> bool:
    """Whether both ranges share a version, or one is empty."""
    return not one or (bool(other) and one.low <= other.high and other.low <= one.high)


def range_words(versions: Versions) -> str:
    """As "takes v4 to v17"."""
    if not versions:
        return "takes none"
    return f"takes v{versions.low}" + (f" to v{versions.high}" if versions.high > versions.low else "")
