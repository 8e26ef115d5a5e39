"""HashOrdered iterates as java.util.HashMap does; orders here were worked out from String.hashCode by hand."""

import pytest

from kwire.coordinator.hashorder import HashOrdered, java_hash


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
