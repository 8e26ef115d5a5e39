"""GetTelemetrySubscriptions (71) and PushTelemetry (72): what clients are to measure, and what they push (KIP-714).

Subscriptions are configurations of type CLIENT_METRICS: metrics, interval.ms, match. As in Kafka the APIs are told of
only when somebody takes the metrics: where metric.reporters is configured. What is pushed is kept for who looks.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID, uuid4

from kwire.broker.apis import Api
from kwire.broker.configs import CLIENT_METRICS
from kwire.broker.context import MS, Body, Request
from kwire.broker.refused import Refused
from kwire.broker.state import PUSHING, BrokerState, Telemetry
from kwire.coordinator.consumer.topic_patterns import BadPattern, TopicPattern
from kwire.schema import codes
from kwire.schema.model import Versions
from kwire.wire.uuids import ZERO, to_text

ACCEPTED = [4, 3, 1, 2]  # zstd, lz4, gzip, snappy, in the order of Kafka's liking
INTERVAL = 300_000  # ms, where no subscription says another
MOST_BYTES = 1_048_576  # telemetry.max.bytes
EVERYTHING = "*"
MATCHES: dict[str, Callable[[Request], str]] = {
    "client_instance_id": lambda request: to_text(request.body["ClientInstanceId"]),
    "client_id": lambda request: request.client_id or "",
    "client_software_name": lambda request: request.peer.software.partition(" ")[0],
    "client_software_version": lambda request: request.peer.software.partition(" ")[2],
    "client_source_address": lambda request: request.peer.host,
    "client_source_port": lambda request: str(request.peer.port),
}


class MetricsSubscription(NamedTuple):
    """All that is asked of one client. id: 0 with nothing."""

    id: int
    metrics: list[str]
    interval_ms: int


def wanted(request: Request, state: BrokerState) -> MetricsSubscription:
    metrics: list[str] = []
    interval = 0
    for (kind, _), given in sorted(state.cluster.configs.given.items()):
        if kind != CLIENT_METRICS or not _matches(given.get("match", ""), request):
            continue
        metrics += [name for name in given.get("metrics", "").split(",") if name and name not in metrics]
        own = int(given.get("interval.ms", INTERVAL))
        interval = min(interval, own) if interval else own
    if EVERYTHING in metrics:
        metrics = [""]  # the prefix of all names
    interval = interval or INTERVAL
    number = zlib.crc32("\0".join([*sorted(metrics), str(interval)]).encode()) & 0x7FFFFFFF if metrics else 0
    return MetricsSubscription(number, metrics, interval)


def _matches(text: str, request: Request) -> bool:
    """name=pattern, all of them. Who sets them is a stranger: they are matched as patterns of topics are, in bounded
    time."""
    for part in filter(None, text.split(",")):
        name, _, pattern = part.partition("=")
        value = MATCHES.get(name)
        try:
            if value is None or not TopicPattern(pattern).matching([value(request)])[0]:
                return False
        except BadPattern:
            return False
    return True


def subscriptions(request: Request, state: BrokerState) -> Body:
    instance = request.body["ClientInstanceId"]
    if instance == ZERO:
        instance = uuid4()
    found = wanted(request._replace(body={**request.body, "ClientInstanceId": instance}), state)
    _known(instance, request, state)
    return {
        "ErrorCode": codes.NONE,
        "ClientInstanceId": instance,
        "SubscriptionId": found.id,
        "AcceptedCompressionTypes": ACCEPTED,
        "PushIntervalMs": found.interval_ms,
        "TelemetryMaxBytes": MOST_BYTES,
        "DeltaTemporality": True,
        "RequestedMetrics": found.metrics,
    }


def _known(instance: UUID, request: Request, state: BrokerState) -> Telemetry:
    found = state.pushed.get(instance)
    if found is None:
        if len(state.pushed) >= PUSHING:
            del state.pushed[next(iter(state.pushed))]
        found = state.pushed[instance] = Telemetry(request.client_id)
    return found


def push(request: Request, state: BrokerState) -> Body:
    """Raises Refused."""
    body = request.body
    instance, now = body["ClientInstanceId"], request.time // MS
    if instance == ZERO:
        raise Refused(codes.INVALID_REQUEST, "no client instance id")
    found, told = wanted(request, state), _known(instance, request, state)
    if told.over:
        raise Refused(codes.INVALID_REQUEST, "this client has said that it ends")
    if told.pushes and now - told.time_ms < found.interval_ms // 2 and not body["Terminating"]:
        raise Refused(codes.THROTTLING_QUOTA_EXCEEDED, f"a push each {found.interval_ms} ms")
    if body["SubscriptionId"] != found.id:
        raise Refused(codes.UNKNOWN_SUBSCRIPTION_ID, f"the subscription is {found.id}")
    if body["CompressionType"] not in (0, *ACCEPTED):
        raise Refused(codes.UNSUPPORTED_COMPRESSION_TYPE, f"compression type {body['CompressionType']}")
    if len(body["Metrics"]) > MOST_BYTES:
        raise Refused(codes.TELEMETRY_TOO_LARGE, f"{len(body['Metrics']):,} bytes, the limit is {MOST_BYTES:,}")
    told.time_ms, told.over = now, body["Terminating"]
    told.keep(body["CompressionType"], body["Metrics"])
    state.tell("telemetry", str(request.peer), f"{len(body['Metrics']):,} bytes of metrics")
    return {"ErrorCode": codes.NONE}


APIS = (
    Api("GetTelemetrySubscriptions", Versions(0, 0), subscriptions),
    Api("PushTelemetry", Versions(0, 0), push),
)
