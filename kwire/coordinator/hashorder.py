"""A dict that iterates as Java's or Scala's hash maps do with strings for keys.

Kafka's coordinator keeps members in a hash map, and who comes first there becomes the next leader and stands first in
the leader's list; of protocols with as many votes the first is taken. The order follows from the keys.
java.util.HashMap (4.0 and later): buckets by hash, within a bucket by arrival (one of eight or more, which Java would
make a tree, keeps that order here). scala.collection.mutable.HashMap (2.13): within a bucket by hash, and it grows one
key earlier. scala.collection.immutable.HashMap: a trie over five bits of the hash at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, MutableMapping
from functools import lru_cache
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")
FIRST = 16  # buckets of a new table
FULL = 0.75  # it doubles beyond that load


LONG = 256  # letters of a key that is not remembered: clients choose keys of 32 KB


def java_hash(text: str) -> int:
    """String.hashCode, over UTF-16 units, as 32 unsigned bits; then spread as HashMap does."""
    return _known_hash(text) if len(text) < LONG else _hash(text)


def hash_code(text: str) -> int:
    """String.hashCode, as 32 unsigned bits."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value


def _hash(text: str) -> int:
    value = hash_code(text)
    return value ^ (value >> 16)


_known_hash = lru_cache(maxsize=1 << 16)(_hash)


def _signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


def trie_order(keys: Iterable[str], shift: int = 0) -> list[str]:
    """The order of Scala's immutable HashMap: the keys that are alone in their place, then the crowded places."""
    places: dict[int, list[str]] = {}
    for key in keys:
        places.setdefault(java_hash(key) >> shift & 31, []).append(key)
    alone = [each[0] for _, each in sorted(places.items()) if len(each) == 1]
    crowded = [each for _, each in sorted(places.items()) if len(each) > 1]
    if shift >= 35:  # the same hash
        return alone + [key for each in crowded for key in each]
    return alone + [key for each in crowded for key in trie_order(each, shift + 5)]


def table_order(keys: Collection[K], spread: Callable[[K], int], expected: int | None = None) -> list[K]:
    """The keys in the order in which a java.util.HashMap holding them is walked. spread: a key's hash as HashMap
    spreads it; expected: how many keys the table was made for (AssignorHelpers.newHashMap), None: as many as usual."""
    table = FIRST if expected is None else 1 << int((expected + 1) / FULL).bit_length()
    while len(keys) > table * FULL:
        table *= 2
    return sorted(keys, key=lambda key: spread(key) & (table - 1))


class HashOrdered(MutableMapping[str, V], Generic[V]):
    """Look-ups are a dict's; the order is worked out when it is asked for and keys have come."""

    __slots__ = ("_items", "_order", "_scala", "_size")

    def __init__(self, scala: bool = False) -> None:
        self._scala = scala
        self._items: dict[str, V] = {}
        self._order: list[str] | None = []
        self._size = FIRST

    def __getitem__(self, key: str) -> V:
        return self._items[key]

    def __contains__(self, key: object) -> bool:
        return key in self._items

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[str]:
        order = self._order = self._sorted() if self._order is None else self._order
        while order and order[-1] not in self._items:
            order.pop()
        return (key for key in reversed(order) if key in self._items)

    def _sorted(self) -> list[str]:
        """The keys, last ones first, so that those that go from the front cost nothing."""
        mask = self._size - 1
        if self._scala:
            return sorted(self._items, key=lambda key: (java_hash(key) & mask, _signed(java_hash(key))))[::-1]
        return sorted(self._items, key=lambda key: java_hash(key) & mask)[::-1]

    def __setitem__(self, key: str, value: V) -> None:
        if key not in self._items:
            self._order = None
        self._items[key] = value
        while len(self._items) + self._scala > self._size * FULL:
            self._size *= 2

    def __delitem__(self, key: str) -> None:
        del self._items[key]
