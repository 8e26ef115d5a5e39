"""Configurations of topics, brokers and groups: which there are, their defaults (configs.txt), and what was set.

Sources and types are those of DescribeConfigsResponse (org.apache.kafka.clients.admin.ConfigEntry).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import NamedTuple
from zlib import crc32

from kwire.broker import group_configs
from kwire.broker.refused import Refused
from kwire.schema import codes
from kwire.schema.shipped import folder_of

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
KINDS = {TOPIC: "topic", BROKER: "broker", CLIENT_METRICS: "client-metrics", GROUP: "group"}
TYPES = {"boolean": 1, "string": 2, "int": 3, "short": 4, "long": 5, "double": 6, "list": 7, "class": 8, "password": 9}
SET_AT = {TOPIC: 1, BROKER: 2, CLIENT_METRICS: 7, GROUP: 8}  # config source of a value that was set
DYNAMIC_BROKER, DYNAMIC_DEFAULT, STATIC, DEFAULT = 2, 3, 4, 5
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


INHERITED = {  # a topic's configuration, and the broker's that holds where the topic has none of its own
    "cleanup.policy": "log.cleanup.policy", "compression.type": "compression.type",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "max.compaction.lag.ms": "log.cleaner.max.compaction.lag.ms", "max.message.bytes": "message.max.bytes",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "message.timestamp.type": "log.message.timestamp.type",
    "min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio",
    "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms", "min.insync.replicas": "min.insync.replicas",
    "retention.bytes": "log.retention.bytes", "retention.ms": "log.retention.ms", "segment.bytes": "log.segment.bytes",
    "segment.ms": "log.roll.ms", "unclean.leader.election.enable": "unclean.leader.election.enable",
}  # fmt: skip
SYNONYMS = INHERITED | {  # a topic's configuration, and the broker's whose default it has
    "compression.gzip.level": "compression.gzip.level", "compression.lz4.level": "compression.lz4.level",
    "compression.zstd.level": "compression.zstd.level", "file.delete.delay.ms": "log.segment.delete.delay.ms",
    "flush.messages": "log.flush.interval.messages", "index.interval.bytes": "log.index.interval.bytes",
    "local.retention.bytes": "log.local.retention.bytes", "local.retention.ms": "log.local.retention.ms",
    "preallocate": "log.preallocate", "segment.index.bytes": "log.index.size.max.bytes",
}  # fmt: skip
IN_HOURS = {"log.retention.ms": ("log.retention.hours", "168"), "log.roll.ms": ("log.roll.hours", "168")}
THROTTLES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
OF_ALL_GROUPS = ("group.share.assignment.interval.ms", "group.streams.assignment.interval.ms")
DYNAMIC = frozenset({  # while it runs
    *INHERITED.values(), *THROTTLES, *OF_ALL_GROUPS, "num.io.threads", "num.network.threads", "max.connections",
    "max.connections.per.ip", "metric.reporters", "log.cleaner.backoff.ms",
})  # fmt: skip


CHOICES = {  # the last part of a name: what it may be
    "cleanup.policy": {"compact", "delete"}, "timestamp.type": {"CreateTime", "LogAppendTime"},
    "compression.type": {"uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"},
    "remote.storage.enable": {"false"},
}  # fmt: skip
LEAST = {  # what a number is at least
    "local.retention.ms": -2, "local.retention.bytes": -2, "retention.ms": -1, "retention.bytes": -1,
    "max.message.bytes": 0, "message.max.bytes": 0, "segment.bytes": 14, "segment.ms": 1, "roll.ms": 1,
    "min.insync.replicas": 1, "delete.retention.ms": 0, "min.compaction.lag.ms": 0, "max.compaction.lag.ms": 1,
    "min.cleanable.dirty.ratio": 0, "num.partitions": 1, "default.replication.factor": 1, "interval.ms": 100,
    "message.timestamp.before.max.ms": 0, "message.timestamp.after.max.ms": 0, "offsets.retention.minutes": 1,
    "offsets.retention.check.interval.ms": 1, "segment.jitter.ms": 0, "segment.index.bytes": 4,
    "max.connections": 0, "max.connections.per.ip": 0, "assignment.interval.ms": 0,
    "index.interval.bytes": 0, "flush.messages": 1, "flush.ms": 0, "file.delete.delay.ms": 0,
}  # fmt: skip
LEVELS = {  # of compression
    "compression.gzip.level": ({-1, *range(1, 10)}, "-1 or 1 to 9"),
    "compression.lz4.level": (range(1, 18), "1 to 17"),
    "compression.zstd.level": (range(-131_072, 23), "-131072 to 22"),
}


class KnownConfig(NamedTuple):
    """A configuration that exists; type is the number of ConfigDef.Type on the wire."""

    name: str
    type: int
    default: str


class Synonym(NamedTuple):
    """One of the places that a value may come from."""

    name: str
    value: str
    source: int


class Value(NamedTuple):
    """What counts now, and why. synonyms: all the places that have a value, that which counts first."""

    known: KnownConfig
    value: str
    source: int
    synonyms: tuple[Synonym, ...]


class BatchRules(NamedTuple):
    """What a topic's configuration asks of a batch that is written to it; sizes in bytes, times in ms."""

    limit: int
    compacted: bool
    append_time: bool
    before: int
    after: int
    compression: str  # none, or producer: as it came
    level: int | None  # of the compression, None for the usual one
    least_in_sync: int
    retained: int  # of the log; below 0: no matter how many

    @classmethod
    def of(cls, configs: Configs, topic: str) -> BatchRules:
        value = partial(configs.topic, topic)
        policy, compression = value("cleanup.policy"), value("compression.type")
        named = f"compression.{compression}.level"
        usual = known("topic").get(named)
        level = value(named) if usual is not None and value(named) != usual.default else ""
        return cls(
            int(value("max.message.bytes")), "compact" in policy, value("message.timestamp.type") == "LogAppendTime",
            int(value("message.timestamp.before.max.ms")), int(value("message.timestamp.after.max.ms")),
            compression.replace("uncompressed", "none"), int(level) if level else None,
            int(value("min.insync.replicas")),
            int(value("retention.bytes")) if "delete" in policy else -1,
        )  # fmt: skip


@cache
def known(kind: str) -> dict[str, KnownConfig]:
    """All configurations of topics, of brokers or of groups, by name."""
    found: dict[str, KnownConfig] = {}
    for line in (folder_of("kwire.broker") / "configs.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith(f"{kind} "):
            _, name, word, default = line.split(" ", 3)
            found[name] = KnownConfig(name, TYPES[word], default.strip('"'))
    return found


class Configs:
    """What was set, by resource (type, name)."""

    def __init__(self) -> None:
        self.given: dict[tuple[int, str], dict[str, str]] = {}
        self.static: dict[str, str] = {}  # the broker's own settings; settle() sets them
        self.altered: dict[str, str] = {}  # of the brokers, while they run: a node's before that of all
        self._inherited: dict[str, tuple[str, int]] = {}  # what topics have from the broker, and its source
        self.changes = 0  # how often something was set, so that others can keep what they made of it
        self._rules: dict[str, BatchRules] = {}  # of topics that were written to since the last change

    def settle(self, static: dict[str, str]) -> None:
        """The broker's own settings, by name."""
        self.static = static
        self._inherit()

    def topic(self, topic: str, name: str) -> str:
        """A topic's value."""
        own = self.given.get((TOPIC, topic), {}).get(name)
        return own or self._inherited.get(name, (None,))[0] or known("topic")[name].default

    def rules(self, topic: str) -> BatchRules:
        """What holds for batches of a topic that is there."""
        found = self._rules.get(topic)
        if found is None:
            found = self._rules[topic] = BatchRules.of(self, topic)
        return found

    def roll_ms(self, topic: str) -> int:
        """How old the first batch of a segment gets: segment.ms, less something that is a topic's own."""
        most, jitter = int(self.topic(topic, "segment.ms")), int(self.topic(topic, "segment.jitter.ms"))
        return most - crc32(topic.encode()) % min(jitter, most) if jitter else most

    def broker(self, name: str) -> str:
        """What holds for the brokers: all nodes share it."""
        return self.altered.get(name, self.static.get(name)) or known("broker")[name].default

    def of_group(self, group: str) -> Mapping[str, str]:
        """What was set for a group, or for all of them while the brokers run."""
        own = self.given.get((GROUP, group), {})
        if self.altered.keys().isdisjoint(OF_ALL_GROUPS):
            return own
        return {name.removeprefix("group."): self.altered[name] for name in OF_ALL_GROUPS if name in self.altered} | own

    def forget_topic(self, topic: str) -> None:
        self.given.pop((TOPIC, topic), None)
        self._was_set()

    def describe(self, kind: int, resource: str, names: list[str] | None) -> list[Value]:
        """The resource's values, only those named when names are given."""
        out = []
        for entry in known(KINDS.get(kind, "none")).values():
            if names is not None and entry.name not in names:
                continue
            synonyms = self._synonyms(kind, resource, entry)
            if synonyms:
                out.append(Value(entry, synonyms[0].value, synonyms[0].source, synonyms))
            elif kind != BROKER or resource:
                out.append(Value(entry, entry.default, DEFAULT, ()))
        return out

    def _synonyms(self, kind: int, resource: str, entry: KnownConfig) -> tuple[Synonym, ...]:
        """Where a value may come from, the first one that counts in front."""
        own = self.given.get((kind, resource), {})
        name = SYNONYMS.get(entry.name) if kind == TOPIC else entry.name
        rows = [Synonym(entry.name, own[entry.name], SET_AT[kind])] if kind != BROKER and entry.name in own else []
        if kind not in (TOPIC, BROKER):
            return *rows, Synonym(entry.name, entry.default, DEFAULT)
        if name is None:
            return tuple(rows)
        if kind == TOPIC:  # all nodes share what was set at one of them
            each = [given for (kind, node), given in self.given.items() if kind == BROKER and node and name in given]
            own = each[0] if each else {}
        elif not resource:
            own = {}
        layers = [(own, DYNAMIC_BROKER), (self.given.get((BROKER, ""), {}), DYNAMIC_DEFAULT)]
        if kind == TOPIC or resource:
            layers.append((self.static, STATIC))
        below = [Synonym(name, values[name], source) for values, source in layers if name in values]
        if name not in IN_HOURS:
            default = [Synonym(name, entry.default, DEFAULT)] if kind == TOPIC or resource else []
        else:  # their own default is none
            default = [Synonym(*IN_HOURS[name], DEFAULT)] if below and (kind == TOPIC or resource) else []
        return *rows, *below, *default

    def replace(self, kind: int, resource: str, values: Mapping[str, str | None], dry: bool = False) -> None:
        """All settings of a resource at once (AlterConfigs, CreateTopics). Raises Refused."""
        made = {name: _changed(kind, name, value) for name, value in values.items() if value is not None}
        if not dry:
            self._keep(kind, resource, made)

    def change(self, kind: int, resource: str, changes: list[tuple[str, int, str | None]], dry: bool = False) -> None:
        """Single settings: (name, operation, value) each (IncrementalAlterConfigs, KIP-339). Raises Refused."""
        made = dict(self.given.get((kind, resource), {}))
        for name, operation, value in changes:
            if operation == DELETE:
                made.pop(name, None)
            elif operation == SET:
                made[name] = _changed(kind, name, value)
            elif operation in (APPEND, SUBTRACT):
                made[name] = self._listed(kind, name, operation, value, made.get(name))
            else:
                raise Refused(codes.INVALID_REQUEST, f"Unknown operation {operation} for {name}.")
        if not dry:
            self._keep(kind, resource, made)

    def _keep(self, kind: int, resource: str, made: dict[str, str]) -> None:
        if made:
            self.given[kind, resource] = made
        else:
            self.given.pop((kind, resource), None)
        self._was_set()
        if kind == BROKER:
            self._inherit()

    def _was_set(self) -> None:
        self.changes += 1
        self._rules.clear()

    def _inherit(self) -> None:
        nodes = sorted(node for kind, node in self.given if kind == BROKER)
        self.altered = {name: value for node in nodes for name, value in self.given[BROKER, node].items()}
        self._inherited = self._from_brokers()
        self._was_set()

    def _from_brokers(self) -> dict[str, tuple[str, int]]:
        """All nodes share one log: what is set for one of them counts, and else what is set for all."""
        found = {mine: (self.static[theirs], STATIC) for mine, theirs in INHERITED.items() if theirs in self.static}
        for (kind, resource), given in self.given.items():
            for mine, theirs in INHERITED.items():
                if kind == BROKER and theirs in given and (resource or found.get(mine, ("", STATIC))[1] == STATIC):
                    found[mine] = (given[theirs], DYNAMIC_BROKER if resource else DYNAMIC_DEFAULT)
        return found

    def _listed(self, kind: int, name: str, operation: int, value: str | None, old: str | None) -> str:
        entry = known(KINDS.get(kind, "none")).get(name)
        if entry is None or entry.type != TYPES["list"]:
            raise Refused(codes.INVALID_CONFIG, f"Config value append is not allowed for config key: {name}")
        before = [item for item in (entry.default if old is None else old).split(",") if item]
        items = [item for item in (value or "").split(",") if item]
        if operation == APPEND:
            return ",".join([*before, *(item for item in items if item not in before)])
        return ",".join(item for item in before if item not in items)


def _changed(kind: int, name: str, value: str | None) -> str:
    """The value, when it can be set while the broker runs. Raises Refused."""
    if kind == BROKER and name in known("broker") and name not in DYNAMIC:
        raise Refused(codes.INVALID_REQUEST, f"Cannot update these configs dynamically: [{name}]")
    try:
        return checked(kind, name, value)
    except Refused as refused:
        if kind == BROKER and name in DYNAMIC:
            raise Refused(codes.INVALID_REQUEST, refused.why) from None
        raise


def checked(kind: int, name: str, value: str | None) -> str:
    """The value, when it can be one. Raises Refused."""
    entry = known(KINDS.get(kind, "none")).get(name)
    if entry is None:
        raise Refused(codes.INVALID_CONFIG, f"Unknown {KINDS.get(kind, '')} config name: {name}")
    text = value or ""
    try:
        if entry.type in (3, 4, 5):
            int(text)
        elif entry.type == 6:
            float(text)
        elif entry.type == 1 and text not in ("true", "false"):
            raise ValueError
    except ValueError:
        words = {
            1: "Expected value to be either true or false",
            3: "Not a number of type INT",
            5: "Not a number of type LONG",
        }
        why = words.get(entry.type, "Not a number of type DOUBLE")
        raise Refused(codes.INVALID_CONFIG, f"Invalid value {text} for configuration {name}: {why}") from None
    if kind != TOPIC:
        group_configs.check(name, text)
    _check_range(name, text)
    return text


def _check_range(name: str, text: str) -> None:
    """Raises Refused."""
    choices = next((each for end, each in CHOICES.items() if name.endswith(end)), None)
    if choices is not None and not set(text.split(",")) <= choices:
        why = f"Invalid value {text} for configuration {name}: String must be one of: {', '.join(sorted(choices))}"
        raise Refused(codes.INVALID_CONFIG, why)
    least = LEAST.get(name.removeprefix("log.").removeprefix("cleaner."))
    if least is not None and float(text) < least:
        why = f"Invalid value {text} for configuration {name}: Value must be at least {least}"
        raise Refused(codes.INVALID_CONFIG, why)
    levels, words = LEVELS.get(name, (None, ""))
    if levels is not None and int(text) not in levels:
        why = f"Invalid value {text} for configuration {name}: Value must be {words}"
        raise Refused(codes.INVALID_CONFIG, why)
