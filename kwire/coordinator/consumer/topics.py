"""What the members of a consumer group ask for, by name and by pattern, and which topics that comes to.

Members are counted by name and by pattern, so that a heartbeat that changes nothing costs nothing. A new pattern is
resolved after the heartbeat that brings it, and patterns are gone over again when topics have changed, at most every
10 seconds: GroupMetadataManager.maybeUpdateRegularExpressions. refresh takes a snapshot of the topics asked for; a
snapshot whose hash is not the last one's means a new group epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from typing import Final
from uuid import UUID

from kwire.coordinator.assignors import java_order
from kwire.coordinator.consumer.topic_patterns import BUDGET, TopicPattern
from kwire.coordinator.hashorder import java_hash
from kwire.coordinator.types import MS, KnownTopic

RESOLVE_INTERVAL_MS: Final = 10_000  # REGEX_BATCH_REFRESH_MIN_INTERVAL_MS


def hash_of(topics: Mapping[str, KnownTopic]) -> int:
    """Another one for other topics, 64 bits with a sign; 0 for none. Not the one that Kafka computes."""
    if not topics:
        return 0
    told = repr(sorted(topics.items())).encode("utf-8", "surrogateescape")
    return int.from_bytes(blake2b(told, digest_size=8).digest(), signed=True)


class ConsumerTopics:
    """topics: gives all topics there are, by name. hash: of those that are asked for, as they were when last looked at.
    resolved: what patterns come to; resolved_at: since when, ns."""

    def __init__(self, topics: Callable[[], Mapping[str, KnownTopic]]) -> None:
        self._all = topics
        self._askers: dict[str, int] = {}  # name → members
        self._pattern_askers: dict[str, int] = {}
        self._patterns: dict[str, TopicPattern] = {}
        self.resolved: dict[str, frozenset[str]] = {}
        self.resolved_at: int | None = None
        self.hash = 0
        self._patterns_stale = False
        self._known: dict[str, KnownTopic] = {}
        self._ids: dict[tuple[frozenset[str], str], frozenset[UUID]] = {}
        self.is_stale = False
        """Topics have changed since the last refresh."""

    @property
    def names(self) -> set[str]:
        """All that members ask for, whether it exists or not."""
        return set(self._askers).union(*self.resolved.values())

    def changed(self) -> None:
        self.is_stale = self._patterns_stale = True

    def refresh(self) -> bool:
        """Looks at the topics again; says whether those asked for are others than before."""
        self.is_stale = False
        self._ids.clear()
        there = self._all()
        known = {name: there[name] for name in self.names if name in there}
        before, self.hash = self.hash, hash_of(known)
        self._known = known
        return self.hash != before

    def restore(self, resolved: Mapping[str, frozenset[str]], at: int | None, found: int) -> None:
        """What was stored: patterns that members still have, as they were resolved at that time (ns), and the hash."""
        self.resolved = {regex: names for regex, names in resolved.items() if regex in self._patterns}
        self.resolved_at, self._patterns_stale = at, True
        self.refresh()
        self.is_stale = self.hash != found
        self.hash = found

    def ids(self, names: frozenset[str], regex: str) -> frozenset[UUID]:
        """The topics that a member's names and pattern come to."""
        found = self._ids.get((names, regex))
        if found is None:
            asked = names | self.resolved.get(regex, frozenset())
            found = frozenset(self._known[name].id for name in asked if name in self._known)
            self._ids[names, regex] = found
        return found

    def partitions(self) -> dict[UUID, int]:
        """The partition counts of the topics asked for, in the order of a java.util.HashSet of their names."""
        names = java_order(self._known, java_hash, sized=True)
        return {self._known[name].id: self._known[name].partitions for name in names}

    def names_by_id(self) -> dict[UUID, str]:
        """The names of all topics."""
        return {topic.id: topic.name for topic in self._all().values()}

    def rename(self, old: Iterable[str], new: Iterable[str]) -> None:
        """A member asks for new names instead of old ones."""
        for name in new:
            self._askers[name] = self._askers.get(name, 0) + 1
        for name in old:
            _less(self._askers, name)

    def has_pattern(self, regex: str) -> bool:
        return regex in self._pattern_askers

    def repattern(self, old: str, new: str, pattern: TopicPattern | None) -> bool:
        """A member asks by a new pattern instead of the old one ("": none); pattern: given when it is new to the group.
        Says whether that can be acted on at once, with nothing left to resolve."""
        self._ids.clear()
        if new:
            self._pattern_askers[new] = self._pattern_askers.get(new, 0) + 1
            if pattern is not None:
                self._patterns[new] = pattern
        if old and not _less(self._pattern_askers, old):
            del self._patterns[old]
            self.resolved.pop(old, None)
        return new in self.resolved if new else bool(old)

    def resolve(self, now: int) -> bool:
        """Matches the patterns with the topics there are, if it is time; says whether anything came of it. What
        the budget of steps does not suffice for counts as not matching."""
        if not self._patterns:
            return False
        if not self.resolved:
            self.resolved_at = None
        if self.resolved_at is not None and now <= self.resolved_at + RESOLVE_INTERVAL_MS * MS:
            return False
        if len(self.resolved) == len(self._patterns) and not self._patterns_stale:
            return False
        names = sorted(self._all())
        resolved, budget = {}, BUDGET
        for regex, pattern in self._patterns.items():
            resolved[regex], budget = pattern.matching(names, budget)
        different = any(self.resolved.get(regex, frozenset()) != found for regex, found in resolved.items())
        self.resolved, self.resolved_at, self._patterns_stale = resolved, now, False
        return self.refresh() or different


def _less(counts: dict[str, int], key: str) -> int:
    """One fewer; how many are left."""
    counts[key] -= 1
    return counts[key] or counts.pop(key)
