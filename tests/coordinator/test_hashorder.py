"""HashOrdered iterates as java.util.HashMap does; orders here were worked out from String.hashCode by hand."""

import pytest

from kwire.coordinator.hashorder import HashOrdered, java_hash, trie_order


@pytest.mark.parametrize(
    ("text", "hashed"),
    [
        ("", 0),
        ("a", 97),
        ("range", 108280125),
        ("Aa", 2112),
        ("BB", 2112),
        ("hello", 99162322),
        ("\U0001f600", 0xD83D * 31 + 0xDE00),
    ],
)
def test_hash_is_javas_spread(text: str, hashed: int) -> None:
    assert java_hash(text) == hashed ^ (hashed >> 16)


@pytest.mark.parametrize(
    ("keys", "order"),
    [
        (["c", "b", "a"], ["a", "b", "c"]),
        (["q", "a", "p"], ["p", "q", "a"]),  # 113 and 97 share a bucket of 16, 112 comes before
        (["a", "q", "p"], ["p", "a", "q"]),
        (["BB", "Aa"], ["BB", "Aa"]),
        ([*"abcdefghijkl", "q"], [*"abcdefghijkl", "q"]),  # 13 keys: 32 buckets, no longer shared
    ],
)
def test_order(keys: list[str], order: list[str]) -> None:
    table: HashOrdered[int] = HashOrdered()
    for number, key in enumerate(keys):
        table[key] = number
    assert list(table) == order


def test_a_table_that_grew_stays_large() -> None:
    table: HashOrdered[int] = HashOrdered()
    for key in [*"qabcdefghijkl"]:
        table[key] = 0
    for key in "bcdefghijkl":
        del table[key]
    assert list(table) == ["a", "q"]


def test_a_key_that_comes_back_goes_behind_in_its_bucket() -> None:
    table: HashOrdered[int] = HashOrdered()
    table["a"], table["q"] = 1, 2
    del table["a"]
    table["a"] = 3
    table["q"] = 4
    assert list(table.items()) == [("q", 4), ("a", 3)]


@pytest.mark.parametrize(
    ("keys", "order"),
    [
        (["q", "a", "p"], ["p", "a", "q"]),  # within a bucket by hash, whoever came first
        ([*"abcdefghijkp"], [*"abcdefghijkp"]),  # 12 keys: 32 buckets already, so p no longer shares the first
        ([*"abcdefghijp"], ["p", *"abcdefghij"]),
    ],
)
def test_scalas_mutable_map(keys: list[str], order: list[str]) -> None:
    table: HashOrdered[int] = HashOrdered(scala=True)
    for key in keys:
        table[key] = 0
    assert list(table) == order


@pytest.mark.parametrize(
    ("keys", "order"),
    [
        (["sticky", "range"], ["range", "sticky"]),
        (
            ["sticky", "cooperative-sticky", "roundrobin", "range"],
            ["range", "roundrobin", "cooperative-sticky", "sticky"],
        ),
        (["a", "b", "A"], ["b", "A", "a"]),  # A and a share the first five bits, so b, alone in its place, comes first
        (["BB", "Aa"], ["BB", "Aa"]),
        ([], []),
    ],
)
def test_scalas_immutable_map(keys: list[str], order: list[str]) -> None:
    assert trie_order(keys) == order


def test_going_keeps_the_order_of_those_that_stay() -> None:
    table: HashOrdered[int] = HashOrdered()
    for key in "cabd":
        table[key] = 0
    for gone, left in (("a", "bcd"), ("c", "bd"), ("b", "d")):
        del table[gone]
        assert list(table) == [*left]
        assert next(iter(table)) == left[0]
