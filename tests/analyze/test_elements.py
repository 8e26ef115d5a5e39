"""Which elements of a request failed, and which went well."""

from __future__ import annotations

import pytest

from kwire.analyze.elements import ALL, ElementOutcomes


@pytest.mark.parametrize(
    ("failed", "asked", "fine", "went_well"),
    [
        ({}, {"a", "b"}, True, {"a": True, "c": False, ALL: True}),
        ({"a": 3}, {"a", "b"}, True, {"a": False, "b": True, "b-0": True}),
        ({ALL: 29}, {"a"}, False, {"a": True, ALL: False}),
        ({"a": 3, "b": 29}, {"a", "b"}, False, {"a": False, ALL: True}),
        ({"a": 3}, set(), True, {"a": False, "b": True}),
    ],
)
def test_elements(failed: dict[str, int], asked: set[str], fine: bool, went_well: dict[str, bool]) -> None:
    outcome = ElementOutcomes(failed, frozenset(asked))
    assert outcome.fine == fine
    assert {name: outcome.went_well(name) for name in went_well} == went_well
