"""A Streams application's topology: subtopologies, the internal topics that they need, how many tasks that makes.

Repartition topics get as many partitions as what flows into them, topics that are joined must have as many as each
other, changelogs as many as their subtopology has tasks. Rules: InternalTopicManager and what it uses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from kwire.coordinator.hashorder import java_hash, table_order
from kwire.coordinator.types import Check, KnownTopic, NewTopic
from kwire.schema.codes import STREAMS_INVALID_TOPOLOGY, UNKNOWN_SERVER_ERROR

STALE, MISSING_SOURCES, BADLY_PARTITIONED, MISSING_INTERNALS, SHUTDOWN, DELAYED = range(6)
SHOWN: Final = 3  # names of missing topics in a status


class InternalTopic(NamedTuple):
    """partitions: 0 where the coordinator decides; replication: 0 for the broker's default."""

    name: str
    partitions: int
    replication: int
    configs: tuple[tuple[str, str], ...]

    @classmethod
    def read(cls, row: Mapping[str, Any]) -> InternalTopic:
        configs = tuple((each["Key"], each["Value"]) for each in row["TopicConfigs"])
        return cls(row["Name"], row["Partitions"], row["ReplicationFactor"], configs)

    def described(self) -> dict[str, Any]:
        configs = [{"Key": key, "Value": value} for key, value in self.configs]
        return {
            "Name": self.name, "Partitions": self.partitions, "ReplicationFactor": self.replication,
            "TopicConfigs": configs,
        }  # fmt: skip


class Subtopology(NamedTuple):
    """joined: groups of topics that must have as many partitions as each other."""

    id: str
    sources: tuple[str, ...]
    repartitions: tuple[InternalTopic, ...]
    sinks: tuple[str, ...]
    changelogs: tuple[InternalTopic, ...]
    joined: tuple[frozenset[str], ...]

    @property
    def inputs(self) -> list[str]:
        return [*self.sources, *(topic.name for topic in self.repartitions)]

    def described(self) -> dict[str, Any]:
        return {
            "SubtopologyId": self.id,
            "SourceTopics": sorted(self.sources),
            "RepartitionSinkTopics": sorted(self.sinks),
            "StateChangelogTopics": [topic.described() for topic in sorted(self.changelogs)],
            "RepartitionSourceTopics": [topic.described() for topic in sorted(self.repartitions)],
        }

    def recorded(self) -> dict[str, Any]:
        """A Subtopology of StreamsGroupTopologyValue; joined topics by their places."""
        internal = [topic.name for topic in self.repartitions]
        return {
            "SubtopologyId": self.id,
            "SourceTopics": list(self.sources),
            "SourceTopicRegex": [],
            "StateChangelogTopics": [topic.described() for topic in self.changelogs],
            "RepartitionSinkTopics": list(self.sinks),
            "RepartitionSourceTopics": [topic.described() for topic in self.repartitions],
            "CopartitionGroups": [
                {
                    "SourceTopics": [at for at, name in enumerate(self.sources) if name in names],
                    "SourceTopicRegex": [],
                    "RepartitionSourceTopics": [at for at, name in enumerate(internal) if name in names],
                }
                for names in self.joined
            ],
        }


class StreamsTopology(NamedTuple):
    epoch: int
    subtopologies: tuple[Subtopology, ...]

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> StreamsTopology | Check:
        """From a heartbeat; or the check that refuses it."""
        found = []
        for row in body["Subtopologies"]:
            sources = tuple(row["SourceTopics"])
            repartitions = tuple(InternalTopic.read(each) for each in row["RepartitionSourceTopics"])
            changelogs = tuple(InternalTopic.read(each) for each in row["StateChangelogTopics"])
            fixed = next((topic for topic in changelogs if topic.partitions), None)
            if fixed is not None:
                why = f"changelog topic {fixed.name} has a partition count, {fixed.partitions}"
                return Check(1, "topology", STREAMS_INVALID_TOPOLOGY, why)
            joined = []
            for group in row["CopartitionGroups"]:
                places = [*group["SourceTopics"]], [*group["RepartitionSourceTopics"]]
                if any(not 0 <= at < len(sources) for at in places[0]) or any(
                    not 0 <= at < len(repartitions) for at in places[1]
                ):
                    why = f"a copartition group of subtopology {row['SubtopologyId']} names topics that it has not"
                    return Check(1, "topology", UNKNOWN_SERVER_ERROR, why)  # as Kafka, which does not look for this
                names = [sources[at] for at in places[0]] + [repartitions[at].name for at in places[1]]
                joined.append(frozenset(names))
            sinks = tuple(row["RepartitionSinkTopics"])
            found.append(Subtopology(row["SubtopologyId"], sources, repartitions, sinks, changelogs, tuple(joined)))
        return cls(body["Epoch"], tuple(sorted(found)))

    @property
    def required(self) -> set[str]:
        """All topics that it reads or keeps its state in."""
        names = {name for each in self.subtopologies for name in each.inputs}
        return names | {topic.name for each in self.subtopologies for topic in each.changelogs}

    def described(self) -> dict[str, Any]:
        return {"Epoch": self.epoch, "Subtopologies": [each.described() for each in self.subtopologies]}

    def recorded(self) -> dict[str, Any]:
        """A StreamsGroupTopologyValue; read() takes it back."""
        return {"Epoch": self.epoch, "Subtopologies": [each.recorded() for each in self.subtopologies]}


class ConfiguredTopology(NamedTuple):
    """tasks: how many each subtopology has; topology: with partition counts filled in. status: what is missing, as
    (code, detail). to_create: internal topics that are not there."""

    topology: StreamsTopology
    tasks: dict[str, int] | None
    status: tuple[int, str] | None = None
    to_create: tuple[NewTopic, ...] = ()

    @property
    def ready(self) -> bool:
        return self.tasks is not None and self.status is None


class _Wrong(Exception):
    """The topics do not fit the topology. status: its code."""

    def __init__(self, status: int, why: str) -> None:
        self.status = status
        super().__init__(why)


def configure(topology: StreamsTopology, there: Mapping[str, KnownTopic]) -> ConfiguredTopology:
    """What the topology comes to with the topics there are."""
    try:
        missing = sorted({name for each in topology.subtopologies for name in each.sources} - there.keys())
        if missing:
            raise _Wrong(MISSING_SOURCES, f"Source topics {_summary(missing)} are missing.")
        counts = _decided(topology, there)
        made = tuple(_filled(each, counts, there) for each in topology.subtopologies)
        tasks = {each.id: max(_count(name, counts, there) for name in each.inputs) for each in made if each.inputs}
        if len(tasks) < len(made):
            raise _Wrong(BADLY_PARTITIONED, "A subtopology has no source topics.")
        internal = {topic.name: topic for each in made for topic in (*each.repartitions, *each.changelogs)}
        for name, topic in internal.items():
            if name in there and there[name].partitions != topic.partitions:
                counted = f"expected {topic.partitions}, found {there[name].partitions}"
                why = f"Existing topic {name} has different number of partitions: {counted}"
                raise _Wrong(BADLY_PARTITIONED, why)
    except _Wrong as wrong:
        return ConfiguredTopology(topology, None, (wrong.status, str(wrong)))
    new = tuple(
        NewTopic(topic.name, topic.partitions, topic.replication, topic.configs)
        for name, topic in internal.items()
        if name not in there
    )
    filled = StreamsTopology(topology.epoch, made)
    if not new:
        return ConfiguredTopology(filled, tasks)
    names = _summary(table_order([topic.name for topic in new], java_hash))
    return ConfiguredTopology(filled, tasks, (MISSING_INTERNALS, f"Internal topics are missing: {names}"), new)


def _summary(names: Sequence[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} additional topics" if more > 0 else "")


def _count(name: str, counts: Mapping[str, int], there: Mapping[str, KnownTopic]) -> int:
    if name in there:
        return there[name].partitions
    if name not in counts:
        raise _Wrong(BADLY_PARTITIONED, f"The number of partitions of topic {name} cannot be told.")
    return counts[name]


def _filled(sub: Subtopology, counts: Mapping[str, int], there: Mapping[str, KnownTopic]) -> Subtopology:
    def with_count(topic: InternalTopic) -> InternalTopic:
        if topic.partitions:
            return topic
        return topic._replace(partitions=counts.get(topic.name, 0) or _count(topic.name, counts, there))

    return sub._replace(
        repartitions=tuple(map(with_count, sub.repartitions)), changelogs=tuple(map(with_count, sub.changelogs))
    )


def _decided(topology: StreamsTopology, there: Mapping[str, KnownTopic]) -> dict[str, int]:
    """The partition counts of internal topics."""
    subs = topology.subtopologies
    counts = {topic.name: topic.partitions for each in subs for topic in each.repartitions if topic.partitions}
    fixed = set(counts)
    waiting = True
    while waiting:
        waiting, progress = False, False
        for each in subs:
            found = [counts[t.name] for t in each.repartitions if t.name in counts]
            found += [there[name].partitions for name in each.sources if name in there]
            for sink in each.sinks:
                if sink not in counts and found:
                    counts[sink], progress = max(found), True
                waiting |= sink not in counts
        if waiting and not progress:
            raise _Wrong(BADLY_PARTITIONED, "The partitions of repartition topics depend on each other in a circle.")
    for each in subs:
        for group in each.joined:
            counts |= _joined(group, fixed, {t.name for sub in subs for t in sub.repartitions}, counts, there)
    for each in subs:
        tasks = max((_count(name, counts, there) for name in each.inputs), default=0)
        counts |= {topic.name: tasks for topic in each.changelogs}
    return counts


def _joined(
    group: frozenset[str],
    fixed: set[str],
    repartitions: set[str],
    counts: Mapping[str, int],
    there: Mapping[str, KnownTopic],
) -> dict[str, int]:
    """CopartitionedTopicsEnforcer: what the repartition topics of a group get."""
    inner = {name: _count(name, counts, there) for name in sorted(group & repartitions)}
    outer = {name: _count(name, counts, there) for name in sorted(group - repartitions)}
    if outer:
        if len(set(outer.values())) > 1:
            raise _Wrong(
                BADLY_PARTITIONED, f"Following topics do not have the same number of partitions: [{_pairs(outer)}]"
            )
        number = next(iter(outer.values()))
    elif fixed:
        number = _count(min(fixed), counts, there)
        if any(_count(name, counts, there) != number for name in fixed):
            raise _Wrong(
                BADLY_PARTITIONED, f"Following topics do not have the same number of partitions: [{_pairs(inner)}]"
            )
    else:
        number = max(inner.values(), default=0)
    for name in inner.keys() & fixed:
        if inner[name] != number:
            why = f"Number of partitions [{inner[name]}] of repartition topic [{name}] doesn't match [{number}]."
            raise _Wrong(BADLY_PARTITIONED, why)
    return dict.fromkeys(inner, number)


def _pairs(counts: Mapping[str, int]) -> str:
    return "{" + ", ".join(f"{name}={count}" for name, count in sorted(counts.items())) + "}"
