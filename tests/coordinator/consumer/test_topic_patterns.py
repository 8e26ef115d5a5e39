"""SubscribedTopicRegex: what matches, what is refused, what hostile patterns cost."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kwire.coordinator.consumer.topic_patterns import BUDGET, MOST_STATES, BadPattern, TopicPattern


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("orders", ["orders"], ["order", "orders2", "Orders"]),
        ("orders.*", ["orders", "orders-eu", "orders.v2"], ["my-orders"]),
        ("orders|payments", ["orders", "payments"], ["orderspayments"]),
        ("(orders|payments)-(eu|us)", ["orders-eu", "payments-us"], ["orders"]),
        ("a{2}", ["aa"], ["a", "aaa"]),
        ("a{2,}", ["aa", "aaaa"], ["a"]),
        ("a{1,3}b?", ["a", "aab", "aaa"], ["b", "aaaa"]),
        ("a{,3}", ["a{,3}"], ["a"]),
        ("[a-c_]+?", ["abc", "_"], ["abd", ""]),
        ("[^a-c]", ["d"], ["a", "dd"]),
        ("[]a]", ["]", "a"], ["b"]),
        (r"[\d.-]+", ["1.2-3"], ["a"]),
        ("[[:alpha:]]+", ["abc"], ["ab1"]),
        ("[[:^digit:]]+", ["abc"], ["ab1"]),
        (r"\w+\.\d\D\S", ["ab.1x_"], ["ab11x_"]),
        (r"\Qa.b\E.", ["a.bc"], ["axbc"]),
        ("^orders$", ["orders"], []),
        (r"\Aorders\z", ["orders"], []),
        ("a^b", [], ["ab"]),
        ("(?i)orders", ["ORDERS", "orders"], []),
        ("((?i)a)b", ["Ab", "ab"], ["AB"]),
        ("(?i:a)b", ["Ab"], ["AB"]),
        ("(?P<name>x)+", ["xx"], [""]),
        (r"\x61", ["a"], ["x61"]),
        ("", [""], ["a"]),
        ("(a|)*", ["", "aaa"], ["b"]),
    ],
)
def test_patterns_match_whole_names(pattern: str, matching: list[str], others: list[str]) -> None:
    assert TopicPattern(pattern).matching([*matching, *others])[0] == frozenset(matching)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(", "a ( without its ) at letter 1"),
        (")", "a ) without its ( at letter 0"),
        ("*a", "nothing to repeat at letter 0"),
        ("a**", "a repeat of a repeat at letter 2"),
        ("a++", "a repeat of a repeat at letter 2"),
        ("[a", "the pattern ends too early at letter 2"),
        ("[b-a]", "a range from b down to a at letter 4"),
        ("[[:no:]]", "a class of that name at letter 3"),
        ("a\\", "the pattern ends too early at letter 2"),
        (r"(a)\1", "\\1, which is not known at letter 5"),
        ("(?=a)", "a group that RE2 does not know at letter 3"),
        ("(?<!a)b", "a group that RE2 does not know at letter 3"),
        ("(?<1>a)", "a group's name at letter 2"),
        ("a{2,1}", "a repeat of {2,1} at letter 1"),
        ("a{2000}", "a repeat of {2000} at letter 1"),
        ("(a{40}){40}", "a pattern of more than 1,000 states"),
        ("((((){99}){99}){99})", "a pattern of more than 20,000 pieces"),
        ("(" * 60, "more than 50 groups in groups at letter 50"),
        ("a" * 3000, "a pattern of 3,000 letters, 2,048 may be"),
    ],
)
def test_what_is_refused_and_why(pattern: str, message: str) -> None:
    with pytest.raises(BadPattern, match=f"^{re.escape(message)}$"):
        TopicPattern(pattern)


@pytest.mark.parametrize("pattern", ["(a|a)*b", "(a*)*b", "(a+)+b", "a?" * 30 + "a" * 30 + "b", ".*.*.*.*.*b"])
def test_patterns_that_hang_backtracking_end_here(pattern: str) -> None:
    found, left = TopicPattern(pattern).matching(["a" * 249])
    assert found == frozenset()
    assert left > BUDGET - 250 * MOST_STATES


def test_a_resolution_ends_when_its_budget_is_spent() -> None:
    names = ["b", "aa", "a"]
    found, left = TopicPattern("a").matching(names)
    assert found == {"a"}
    assert TopicPattern("a").matching(names, BUDGET - left) == (frozenset({"a"}), 0)
    assert TopicPattern("a").matching(names, BUDGET - left - 1) == (frozenset(), -1)


def test_names_that_are_alike_take_a_step_a_letter() -> None:
    names = [f"orders-{number}" for number in range(1000, 9999)]
    pattern = TopicPattern("(" + "|".join(f"o{letter}.*.*.*.*9" for letter in "abcdefghijklr") + ")")
    found, left = pattern.matching(names)
    assert len(found) == 899
    assert BUDGET - left < 3 * sum(map(len, names))


def test_copies_of_a_wide_class_ask_it_once_a_letter() -> None:
    letters = "".join(chr(0x4E00 + number) for number in range(900))
    pattern = TopicPattern(f"([{letters}a-z0-9]?){{400}}")
    names = ["topic" + str(number) * 60 for number in range(1000, 1005)]
    found, left = pattern.matching(names)
    assert found == set(names)
    assert left > BUDGET / 2


atoms = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "(a|b)", "(?:ab|)", "^", "$", r"\w", "-"])
pieces = st.builds(str.__add__, atoms, st.sampled_from(["", "*", "+", "?", "{2}", "{0,2}"]))


@settings(max_examples=200, deadline=None)
@given(st.lists(pieces, max_size=5).map("".join), st.text("ab-", max_size=6))
def test_it_agrees_with_re_where_both_speak(pattern: str, name: str) -> None:
    try:
        compiled = re.compile(pattern)
    except re.error:
        return
    assert (name in TopicPattern(pattern).matching([name])[0]) is (compiled.fullmatch(name) is not None)
