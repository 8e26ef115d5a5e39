"""ApiVersions (18): what is served. A version that is not known is answered with error 35 in the form of v0 (KIP-511);
service.py sees to the form."""

from __future__ import annotations

import re

from kwire.broker.apis import NEWEST, Api, announced
from kwire.broker.context import Body, Request
from kwire.broker.state import BrokerState
from kwire.schema import codes
from kwire.schema.keys import PRODUCE
from kwire.schema.model import Versions
from kwire.schema.registry import builtin

SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")
FEATURES = {  # name: (lowest, highest, the release that has it)
    "group.version": (0, 1, (4, 0)),
    "share.version": (0, 1, (4, 2)),
    "streams.version": (0, 1, (4, 2)),
    "kraft.version": (0, 1, (3, 9)),
    "transaction.version": (0, 2, (4, 0)),
}
METADATA = {(4, 0): (7, 30), (0, 9): (1, 21)}  # metadata.version of that release and later ones, newest first


def features(state: BrokerState) -> dict[str, tuple[int, int, int]]:
    """Name to lowest, highest, and what is in force."""
    era = state.settings.era or NEWEST
    low, high = next(levels for since, levels in METADATA.items() if era >= since)
    levels = state.cluster.levels
    found = {name: (low, high, levels.get(name, high)) for name, (low, high, since) in FEATURES.items() if era >= since}
    found["metadata.version"] = (low, high, high)
    if "transaction.version" in found:
        found["transaction.version"] = (0, 2, state.transactions.coordinator.settings.level)
    return found


def handle(request: Request, state: BrokerState) -> Body:
    body = request.body
    if request.version >= 3:
        names = (body["ClientSoftwareName"], body["ClientSoftwareVersion"])
        if not all(SOFTWARE.fullmatch(name) for name in names):
            return {"ErrorCode": codes.INVALID_REQUEST}
        request.peer.software = " ".join(names)
    return answer(state, request.version)


def answer(state: BrokerState, version: int) -> Body:
    """The table. Clients of old versions take a range of levels from 0 on for broken (KAFKA-17492)."""
    known, levels = announced(state.settings.era, state.telemetry), features(state)
    # Produce from v0 on: librdkafka concludes from it what a broker can (KAFKA-18659)
    ranges = {**known, PRODUCE: Versions(0, known[PRODUCE].high), **state.faults.ranges()}
    return {
        "ErrorCode": codes.NONE,
        "ApiKeys": [
            {"ApiKey": key, "MinVersion": versions.low, "MaxVersion": versions.high}
            for key, versions in sorted(ranges.items())
            if versions
        ],
        "SupportedFeatures": [
            {"Name": name, "MinVersion": low, "MaxVersion": high}
            for name, (low, high, _) in levels.items()
            if low or version >= 4
        ],
        "FinalizedFeaturesEpoch": state.cluster.features,
        "FinalizedFeatures": [
            {"Name": name, "MaxVersionLevel": level, "MinVersionLevel": level}
            for name, (_, _, level) in levels.items()
            if level
        ],
    }


def refusal(state: BrokerState) -> Body:
    """To a version that is not served: error 35, and in which versions this API is (KIP-511)."""
    key = builtin().find("ApiVersions").definition.key
    assert key is not None
    versions = announced(state.settings.era)[key]
    row = {"ApiKey": key, "MinVersion": versions.low, "MaxVersion": versions.high}
    return {"ErrorCode": codes.UNSUPPORTED_VERSION, "ApiKeys": [row]}


APIS = (Api("ApiVersions", Versions(0, 5), handle),)
