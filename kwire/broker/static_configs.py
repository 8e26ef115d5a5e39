"""A broker's configuration as it is given at the start, by Kafka's names: each value goes to the setting that it is,
and what nothing here goes by is refused."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from kwire.broker.codes import Refused
from kwire.broker.configs import BROKER, checked, known
from kwire.broker.context import BrokerSettings
from kwire.errors import KwireError

SETTINGS = {"num.partitions": "partitions", "auto.create.topics.enable": "create_topics"}
LIMITS = {
    "connections.max.idle.ms": "idle_ms", "max.connections": "connections", "max.connections.per.ip": "per_ip",
    "socket.request.max.bytes": "frame",
}  # fmt: skip
PARTS = ("groups", "transactions")  # of BrokerSettings: their fields are called as the configurations, with underscores
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


def _text(name: str, value: object) -> str:
    try:
        return checked(BROKER, name, str(value).lower() if isinstance(value, bool) else str(value))
    except Refused as refused:
        near = difflib.get_close_matches(name, known("broker"), 2, 0.6) if name not in known("broker") else []
        raise KwireError(f"{refused.why}{f'; did you mean {near[0]}?' if near else ''}") from None


def _part(settings: BrokerSettings, name: str) -> str | None:
    field = name.replace(".", "_")
    for part in PARTS:
        if field != "era" and field in {each.name for each in fields(getattr(settings, part))}:
            return part
    return None


def _value(settings: BrokerSettings, name: str) -> Any:
    """What a setting is now, None where the configuration is none."""
    part = _part(settings, name)
    if part is not None:
        return getattr(getattr(settings, part), name.replace(".", "_"))
    if name in SETTINGS:
        return getattr(settings, SETTINGS[name])
    return getattr(settings.limits, LIMITS[name]) if name in LIMITS else None


def _with(settings: BrokerSettings, name: str, text: str) -> BrokerSettings:
    value: Any = text == "true" if text in ("true", "false") else text
    part = _part(settings, name)
    if part is not None or name in SETTINGS or name in LIMITS:
        value = int(text) if text.lstrip("-").isdecimal() else value
    if part is not None:
        changed = replace(getattr(settings, part), **{name.replace(".", "_"): value})
        return replace(settings, **{part: changed})
    if name in SETTINGS:
        return replace(settings, **{SETTINGS[name]: value})
    if name in LIMITS:
        return replace(settings, limits=replace(settings.limits, **{LIMITS[name]: value}))
    return settings
