"""A broker's configuration as it is given at the start, by Kafka's names: each value goes to the setting that it is,
and what nothing here goes by is refused."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache
from typing import Any

from kwire.broker.configs import BROKER, checked, known
from kwire.broker.context import BrokerSettings
from kwire.broker.refused import Refused
from kwire.coordinator.types import GroupSettings, TransactionSettings
from kwire.errors import KwireError

SETTINGS = {"num.partitions": "partitions", "auto.create.topics.enable": "create_topics"}
LIMITS = {
    "connections.max.idle.ms": "idle_ms", "max.connections": "connections", "max.connections.per.ip": "per_ip",
    "socket.request.max.bytes": "frame",
}  # fmt: skip
PARTS = {"groups": GroupSettings, "transactions": TransactionSettings}  # fields are named as the configurations, with _
BY_RACK = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


def configured(settings: BrokerSettings, config: Mapping[str, object]) -> BrokerSettings:
    """The settings with this configuration. Raises KwireError for a name or a value that there is not."""
    given: dict[str, str] = {}
    for name, value in config.items():
        given[name] = _text(name, value)
        settings = _with(settings, name, given[name])
    return replace(settings, config=tuple(given.items()))


def in_force(settings: BrokerSettings) -> dict[str, str]:
    """All settings under the names that a broker's configuration has for them."""
    found = dict(settings.config)
    if any(setup.rack for setup in settings.all_setups):
        found.setdefault("replica.selector.class", BY_RACK)
    for name in known("broker"):
        value = _value(settings, name)
        if value is not None:
            found[name] = str(value).lower()
    return found


def plain(value: object) -> str:
    """A configuration's value as Kafka writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _text(name: str, value: object) -> str:
    try:
        return checked(BROKER, name, plain(value))
    except Refused as refused:
        near = difflib.get_close_matches(name, known("broker"), 2, 0.6) if name not in known("broker") else []
        raise KwireError(f"{refused.why}{f'; did you mean {near[0]}?' if near else ''}") from None


@cache
def settings_field(name: str) -> tuple[str, str] | None:
    """The part of the settings that a configuration is in ("": the settings themselves), and its field there."""
    field = name.replace(".", "_")
    for part, kind in PARTS.items():
        if field != "era" and field in {each.name for each in fields(kind)}:
            return part, field
    if name in SETTINGS:
        return "", SETTINGS[name]
    return ("limits", LIMITS[name]) if name in LIMITS else None


def _value(settings: BrokerSettings, name: str) -> Any:
    """What a setting is now, None where the configuration is none."""
    place = settings_field(name)
    if place is None:
        return None
    part, field = place
    return getattr(getattr(settings, part) if part else settings, field)


def _with(settings: BrokerSettings, name: str, text: str) -> BrokerSettings:
    place = settings_field(name)
    if place is None:
        return settings
    part, field = place
    value: Any = text == "true" if text in ("true", "false") else text
    if text.lstrip("-").isdecimal():
        value = int(text)
    if not part:
        return replace(settings, **{field: value})
    return replace(settings, **{part: replace(getattr(settings, part), **{field: value})})
