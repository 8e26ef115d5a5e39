"""Filters: which exchanges of a batch are wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import numpy as np

from kwire.codec.quality import QUALITIES, Quality
from kwire.errors import UnknownName
from kwire.schema.errorcodes import errors
from kwire.schema.registry import builtin
from kwire.session.about_columns import abouts_of
from kwire.session.record import START_UP

if TYPE_CHECKING:
    from kwire.session.about import About
    from kwire.session.batch import ExchangeBatch, Mask
    from kwire.session.connection_info import ConnectionInfo

Names = str | int | Iterable[str | int]
WRONG_CODES = np.array([quality not in (Quality.OK, Quality.OPAQUE) for quality in QUALITIES])


@dataclass(frozen=True, slots=True)
class Selection:
    """All given conditions must hold; of several values of one field, one must. Names may contain * and ?.

    clients, brokers: addresses, with or without port. errors: only exchanges with an error. codes: only with one of
    these error codes. slower: least latency, ns. start, end: ns since the epoch. ids: correlation ids. connections:
    parts of names. unless: exchanges that match one of these are left out. settled: leave out responses with no errors
    but those of START_UP.
    """

    apis: frozenset[int] = frozenset()
    client_ids: tuple[str, ...] = ()
    clients: tuple[str, ...] = ()
    brokers: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    errors: bool = False
    codes: frozenset[int] = frozenset()
    slower: int | None = None
    start: int | None = None
    end: int | None = None
    ids: frozenset[int] = frozenset()
    connections: tuple[str, ...] = ()
    unless: tuple[Selection, ...] = ()
    settled: bool = False

    @classmethod
    def of(
        cls, *, api: Names = (), client_id: Names = (), client: Names = (), broker: Names = (), topic: Names = (),
        group: Names = (), errors: bool = False, error: Names = (), slower: int | None = None,
        start: int | None = None, end: int | None = None, id: Names = (), connection: Names = (),
        unless: Iterable[Mapping[str, Names]] = (), settled: bool = False,
    ) -> Selection:  # fmt: skip
        """From one value or several per field; APIs and errors by name or number; unless: as {"api": "Fetch"}. Raises
        UnknownName."""
        return cls(
            frozenset(key for name in _each(api) for key in keys_of(str(name))), _texts(client_id), _texts(client),
            _texts(broker), _texts(topic), _texts(group), errors,
            frozenset(code for name in _each(error) for code in codes_of(str(name))), slower, start, end,
            frozenset(int(one) for one in _each(id)), _texts(connection),
            tuple(cls.of(**one) for one in unless), settled,  # type: ignore[arg-type]
        )  # fmt: skip

    @property
    def needs_about(self) -> bool:
        """Whether bodies must be decoded to decide."""
        return bool(self.topics or self.groups) or any(one.needs_about for one in self.unless)

    @property
    def everything(self) -> bool:
        """Whether all exchanges are wanted."""
        return self == Selection()

    def wanted(
        self, batch: ExchangeBatch, tracking: bool = False, notice: Callable[[About], None] | None = None
    ) -> ExchangeBatch:
        """The wanted exchanges. tracking: their About is needed later, so all rows are read for it first: an
        incremental fetch builds on those before it (KIP-227). notice: called with every About when topics or groups are
        filtered."""
        if self.everything:
            return batch
        wanted = self.mask(batch)
        if not self.needs_about and not tracking:
            return batch if wanted.all() else batch.part(wanted)
        about = abouts_of(batch)
        if self.needs_about:
            if notice is not None:
                for value in about.values:
                    notice(value)
            wanted &= np.array([self.is_about(value) for value in about.values], bool)[about.which]
        return batch.part(wanted)

    def is_about(self, about: About) -> bool:
        """Whether it matches the wanted topics and groups, and none of unless."""
        return (
            (not self.topics or _any(self.topics, about.topics))
            and (not self.groups or _any(self.groups, about.groups))
            and not any(one.needs_about and one.is_about(about) for one in self.unless)
        )

    def mask(self, batch: ExchangeBatch) -> Mask:
        """Mask of the rows that match all conditions that need no body."""
        mask = np.ones(len(batch), bool)
        if self.apis:
            mask &= np.array([kind is not None and kind.key in self.apis for kind in batch.kinds], bool)[batch.kind]
        if self.ids:
            mask &= batch.identified & np.isin(batch.correlation_id, list(self.ids))
        if self.start is not None:
            mask &= batch.time >= self.start
        if self.end is not None:
            mask &= batch.time <= self.end
        if self.errors:
            mask &= went_wrong(batch)
        if self.codes:
            for row in np.flatnonzero(mask).tolist():
                mask[row] = not self.codes.isdisjoint(batch.error_codes(row))
        if self.slower is not None:
            mask &= batch.request.there & batch.response.there & (batch.latency >= self.slower)
        if self.clients or self.brokers or self.connections:
            mask &= np.array([self._connects(known) for known in batch.connections], bool)[batch.connection]
        if self.client_ids:
            names, which = batch.client_ids()
            mask &= np.array([_any(self.client_ids, [name or ""]) for name in names], bool)[which]
        for one in self.unless:
            if not one.needs_about:
                mask &= ~one.mask(batch)
        if self.settled:
            for row in np.flatnonzero(mask & (batch.errors > 0)).tolist():
                mask[row] = not set(START_UP).issuperset(batch.error_codes(row))
        return mask

    def _connects(self, connection: ConnectionInfo) -> bool:
        client, broker = connection.ends
        return (
            (not self.clients or any(is_at(client, wanted) for wanted in self.clients))
            and (not self.brokers or any(is_at(broker, wanted) for wanted in self.brokers))
            and (not self.connections or any(wanted in connection.name for wanted in self.connections))
        )


def went_wrong(batch: ExchangeBatch) -> Mask:
    """Mask of the rows with an error code or a message of bad quality (no response included)."""
    wrong: Mask = batch.errors > 0
    for side in (batch.request, batch.response):
        wrong = wrong | (side.there & WRONG_CODES[side.quality])
    return wrong


def _each(values: Names) -> Iterable[str | int]:
    return [values] if isinstance(values, str | int) else values


def _texts(values: Names) -> tuple[str, ...]:
    return tuple(str(value) for value in _each(values))


def keys_of(name: str) -> frozenset[int]:
    """The keys of the APIs with that name (may contain * and ?) or number. Raises UnknownName."""
    if "*" not in name and "?" not in name:
        return frozenset({_key(name)})
    found = frozenset(one.key for one in builtin().apis() if one.key is not None and fits(one.name, name, exact=False))
    if not found:
        raise UnknownName("API", name)
    return found


def codes_of(name: str) -> frozenset[int]:
    """The error codes with that name (may contain * and ?) or number. Raises UnknownName."""
    if name.lstrip("-").isdecimal():
        return frozenset({int(name)})
    found = frozenset(
        one.code for one in errors if any(fits(known, name, exact=False) for known in (one.name, *one.was))
    )
    if not found:
        from difflib import get_close_matches

        near = get_close_matches(name.upper(), [one.name for one in errors], 3, 0.6)
        raise UnknownName("error", name, tuple(near))
    return found


def _key(name: str) -> int:
    if name.isdecimal():
        return builtin().api(int(name)).key or 0
    found = builtin().find(name).definition.key
    if found is None:
        raise UnknownName("API", name)
    return found


def _any(patterns: tuple[str, ...], names: object) -> bool:
    assert isinstance(names, list | dict)
    return any(fits(name, pattern) for pattern in patterns for name in names)


def fits(name: str, pattern: str, exact: bool = True) -> bool:
    """Whether the name matches the pattern, in which * is any text and ? any character. exact: case-sensitive."""
    if not exact:
        name, pattern = name.lower(), pattern.lower()
    return fnmatchcase(name, pattern.replace("[", "[[]"))


def is_at(endpoint: str, wanted: str) -> bool:
    """Whether "10.0.0.7:9092" is at 10.0.0.7, at 10.0.0.7:9092, or at :9092."""
    address, _, port = endpoint.rpartition(":")
    return wanted in (endpoint, address, address.strip("[]"), f":{port}")
