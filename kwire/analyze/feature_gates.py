"""APIs that a release of Kafka knows and takes only where a setting or a feature of the cluster allows them: what their
versions alone do not tell.

Of the group protocols: KIP-848 is early access in 3.7 and a preview in 3.8 and 3.9, behind a setting of the brokers,
and from 4.0 on behind the feature group.version, which new clusters have and upgraded ones get when the upgrade is
finalized (KIP-1022, kafka-features); share groups (KIP-932) are a preview in 4.1; streams groups (KIP-1071) need 4.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from kwire.analyze.offers import Release, known_releases, meet, versions_at
from kwire.schema import keys

CONSUMER = (keys.CONSUMER_GROUP_HEARTBEAT, keys.CONSUMER_GROUP_DESCRIBE)
SHARE = (keys.SHARE_GROUP_HEARTBEAT, keys.SHARE_GROUP_DESCRIBE, keys.SHARE_FETCH, keys.SHARE_ACKNOWLEDGE)
STREAMS = (keys.STREAMS_GROUP_HEARTBEAT, keys.STREAMS_GROUP_DESCRIBE)
OPTIONAL = {keys.GET_TELEMETRY_SUBSCRIPTIONS, keys.PUSH_TELEMETRY}  # clients go on without them
EVER: Release = (99, 0)
CLASSIC = "or group.protocol=classic in the client; from 4.0 on the brokers take it by default"


class Gate(NamedTuple):
    """keys: of which APIs; since, until: from which release on, and before which; open_: whether new clusters take
    them; needs: what they are taken with; cure: what to do where that is not so."""

    keys: tuple[int, ...]
    since: Release
    until: Release
    open_: bool
    needs: str
    cure: str


GATES = (
    Gate(CONSUMER, (3, 7), (4, 0), False,
         "is early access or a preview before 4.0, taken only where brokers have "
         "group.coordinator.rebalance.protocols=classic,consumer",
         f"set group.coordinator.rebalance.protocols=classic,consumer on the brokers, {CLASSIC}"),
    Gate(CONSUMER, (4, 0), EVER, True, "is taken where group.version is at least 1: in new clusters it is, upgraded "
         "ones get it with kafka-features upgrade", "kafka-features upgrade --feature group.version=1"),
    Gate(SHARE, (4, 1), (4, 2), False, "is a preview in 4.1, taken only where share.version is 1",
         "kafka-features upgrade --feature share.version=1"),
    Gate(SHARE, (4, 2), EVER, True, "is taken where share.version is at least 1: in new clusters it is, upgraded ones "
         "get it with kafka-features upgrade", "kafka-features upgrade --feature share.version=1"),
    Gate(STREAMS, (4, 2), EVER, True, "is taken where streams.version is at least 1: in new clusters it is, upgraded "
         "ones get it with kafka-features upgrade", "kafka-features upgrade --feature streams.version=1"),
)  # fmt: skip


class Asked(Protocol):
    """How often a version was asked for, and how often refused as unsupported."""

    count: int
    refused: int


class GatedApi(NamedTuple):
    """An API that a client asks for. shut: whether it is not to be expected that the brokers take it."""

    key: int
    gate: Gate
    shut: bool


def gated(uses: Mapping[tuple[int, int], Asked], present: Iterable[Release | None], to: Release) -> list[GatedApi]:
    """What a client asks for (by API key and version) and brokers of a release take only under a condition. present:
    the releases of the brokers that it talks to: what these take under the same condition, it is met for."""
    gates = {key: gate for key in sorted({key for key, _ in uses}) if (gate := gate_of(key, to)) is not None}
    if not gates:
        return []
    there = {release for release in present if release is not None}
    found = []
    for key, gate in gates.items():
        alike = any((other := gate_of(key, release)) is not None and other.cure == gate.cure for release in there)
        works = any(use.refused < use.count for (of, _), use in uses.items() if of == key)
        if not alike or not works:
            found.append(GatedApi(key, gate, alike or not gate.open_))
    return found


def brokers_serving(uses: Mapping[tuple[int, int], Asked], new: Release | None = None) -> str:
    """Which brokers serve clients of a new release, or of the newest, that ask for the same; as a cure."""
    asked = {key for key, _ in uses} - {keys.API_VERSIONS} - OPTIONAL
    spoken = {key: versions_at(key, new or known_releases()[-1]) for key in asked}
    for release in known_releases():
        shut = any(one.shut for one in gated(uses, (), release))
        if not shut and all(meet(versions, versions_at(key, release)) for key, versions in spoken.items()):
            return f"brokers of {release[0]}.{release[1]} or newer"
    return "brokers of the client's release"


def gate_of(key: int, release: Release) -> Gate | None:
    """Under which condition a release takes an API; None where it does in any case, or never."""
    return next((one for one in GATES if key in one.keys and one.since <= release < one.until), None)
