"""What the configuration of groups may be: bounds, which a real broker has as group.share.min.… and group.share.max.…
among its own settings, and words. After GroupConfig.validate; the bounds are the defaults there."""

from __future__ import annotations

from kwire.broker.refused import Refused
from kwire.coordinator.share.reset import milliseconds
from kwire.schema import codes

BOUNDS = {
    "consumer.session.timeout.ms": (45_000, 60_000),
    "consumer.heartbeat.interval.ms": (5_000, 15_000),
    "consumer.assignment.interval.ms": (0, 15_000),
    "share.session.timeout.ms": (45_000, 60_000),
    "share.heartbeat.interval.ms": (5_000, 15_000),
    "share.assignment.interval.ms": (0, 15_000),
    "share.record.lock.duration.ms": (15_000, 60_000),
    "share.delivery.count.limit": (2, 10),
    "share.partition.max.record.locks": (100, 4_000),
    "streams.session.timeout.ms": (45_000, 60_000),
    "streams.heartbeat.interval.ms": (5_000, 15_000),
    "streams.assignment.interval.ms": (0, 15_000),
    "streams.num.standby.replicas": (0, 2),
    "streams.initial.rebalance.delay.ms": (0, (1 << 31) - 1),
}
WORDS = {
    "share.isolation.level": ("read_uncommitted", "read_committed"),
    "group.consumer.migration.policy": ("disabled", "downgrade", "upgrade", "bidirectional"),  # the broker's
}


def check(name: str, value: str) -> None:
    """Raises Refused for a value that a group may not have; that it is a number where one is needed has been seen."""
    low, high = BOUNDS.get(name, (None, None))
    if low is not None and int(value) < low:
        raise Refused(codes.INVALID_CONFIG, f"{name} must be greater than or equal to group.{_limit(name, 'min')}")
    if high is not None and int(value) > high:
        raise Refused(codes.INVALID_CONFIG, f"{name} must be less than or equal to group.{_limit(name, 'max')}")
    words = WORDS.get(name)
    if words is not None and value not in words:
        why = f"Invalid value {value} for configuration {name}: String must be one of: {', '.join(words)}"
        raise Refused(codes.INVALID_CONFIG, why)
    if name == "share.auto.offset.reset" and value not in ("earliest", "latest"):
        kind, _, duration = value.partition(":")
        if kind != "by_duration" or milliseconds(duration) is None:
            forms = "earliest, latest, by_duration:PnDTnHnMn.nS"
            raise Refused(
                codes.INVALID_CONFIG, f"Invalid value {value} for configuration {name}: it is none of {forms}"
            )


def _limit(name: str, end: str) -> str:
    kind, _, rest = name.partition(".")
    return f"{kind}.{end}.{rest.removeprefix('num.')}"
