"""Which exchanges are wanted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from kwire.errors import UnknownName
from kwire.schema.errorcodes import errors
from kwire.schema.registry import builtin

if TYPE_CHECKING:
    from kwire.session.exchange import Exchange

Names = str | int | Iterable[str | int]
FETCH = 1
WRONG = ("trailing", "truncated", "gap", "orphan", "malformed", "unsupported", "inferred")


@dataclass(frozen=True, slots=True)
class Selection:
    """All that is given must hold; of several values of one kind, one must. Names may have * and ? in them.

    clients and brokers are addresses, with or without port. errors: only exchanges that went wrong. codes: with one of
    these error codes. slower: ns.
    start and end: ns since the epoch. connection: any part of its name.
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

    @classmethod
    def of(
        cls, *, api: Names = (), client_id: Names = (), client: Names = (), broker: Names = (), topic: Names = (),
        group: Names = (), errors: bool = False, error: Names = (), slower: int | None = None,
        start: int | None = None,
        end: int | None = None, id: Names = (), connection: Names = (),
    ) -> Selection:  # fmt: skip
        """From single values or several of a kind; APIs by name or key. Raises UnknownName."""
        return cls(
            frozenset(key for name in _each(api) for key in keys_of(str(name))), _texts(client_id), _texts(client),
            _texts(broker), _texts(topic), _texts(group), errors,
            frozenset(code for name in _each(error) for code in codes_of(str(name))), slower, start, end,
            frozenset(int(one) for one in _each(id)), _texts(connection),
        )  # fmt: skip

    @property
    def needs_about(self) -> bool:
        """Whether bodies must be read to decide."""
        return bool(self.topics or self.groups)

    def of_all(self, exchanges: Iterable[Exchange]) -> Iterator[Exchange]:
        """The ones that are wanted."""
        for exchange in exchanges:
            remember(exchange)
            if self.holds(exchange):
                yield exchange

    def holds(self, exchange: Exchange) -> bool:
        """Whether the exchange is wanted."""
        return all(self._checks(exchange))

    def _checks(self, exchange: Exchange) -> Iterator[bool]:
        first = exchange.first
        if self.apis:
            yield first.api is not None and first.api.key in self.apis
        if self.ids:
            yield first.correlation_id in self.ids
        if self.start is not None:
            yield exchange.time >= self.start
        if self.end is not None:
            yield exchange.time <= self.end
        if self.client_ids:
            yield _any(self.client_ids, [first.client_id or ""])
        if self.errors:
            yield went_wrong(exchange)
        if self.codes:
            yield exchange.response is not None and not self.codes.isdisjoint(exchange.response.errors)
        if self.slower is not None:
            latency = exchange.latency
            yield latency is not None and latency >= self.slower
        if self.clients or self.brokers or self.connections:
            client, broker = exchange.conversation.ends
            yield not self.clients or any(is_at(client, wanted) for wanted in self.clients)
            yield not self.brokers or any(is_at(broker, wanted) for wanted in self.brokers)
            yield not self.connections or any(wanted in exchange.conversation.name for wanted in self.connections)
        if self.topics:
            yield _any(self.topics, exchange.about.topics)
        if self.groups:
            yield _any(self.groups, exchange.about.groups)


def _each(values: Names) -> Iterable[str | int]:
    return [values] if isinstance(values, str | int) else values


def _texts(values: Names) -> tuple[str, ...]:
    return tuple(str(value) for value in _each(values))


def remember(exchange: Exchange) -> None:
    """Takes notice of an exchange that may not be wanted: an incremental fetch builds on all before it."""
    first = exchange.first
    if first.api is not None and first.api.key == FETCH:
        _ = exchange.about


def keys_of(name: str) -> frozenset[int]:
    """The keys of the API of that name or number, or of all whose names fit it, with * and ?. Raises UnknownName."""
    if "*" not in name and "?" not in name:
        return frozenset({_key(name)})
    found = frozenset(one.key for one in builtin().apis() if one.key is not None and fits(one.name, name, exact=False))
    if not found:
        raise UnknownName("API", name)
    return found


def codes_of(name: str) -> frozenset[int]:
    """The error code of that name or number, or of all whose names fit it, with * and ?. Raises UnknownName."""
    if name.lstrip("-").isdecimal():
        return frozenset({int(name)})
    found = frozenset(
        one.code for one in errors if any(fits(known, name, exact=False) for known in (one.name, *one.was))
    )
    if not found:
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


def went_wrong(exchange: Exchange) -> bool:
    """An error in the answer, no answer, or a frame that is not as it should be."""
    messages = [message for message in (exchange.request, exchange.response) if message is not None]
    return exchange.error is not None or any(message.quality in WRONG for message in messages)


def _any(patterns: tuple[str, ...], names: object) -> bool:
    assert isinstance(names, list | dict)
    return any(fits(name, pattern) for pattern in patterns for name in names)


def fits(name: str, pattern: str, exact: bool = True) -> bool:
    """Whether the name is the pattern, in which * is any text and ? any character. exact: in the same case."""
    if not exact:
        name, pattern = name.lower(), pattern.lower()
    return fnmatchcase(name, pattern.replace("[", "[[]"))


def is_at(endpoint: str, wanted: str) -> bool:
    """Whether "10.0.0.7:9092" is at 10.0.0.7, at 10.0.0.7:9092, or at :9092."""
    address, _, port = endpoint.rpartition(":")
    return wanted in (endpoint, address, address.strip("[]"), f":{port}")
