"""Commits after each record."""

from __future__ import annotations

import pytest
from provoked import assert_proven
from scenes import Scene


def test_provoked() -> None:
    found = assert_proven("commit-storm", "commit-storm")
    assert found.about["api"] == "OffsetCommit"


@pytest.mark.parametrize(("per_second", "severities"), [(4, []), (7, ["note"]), (15, ["warning"])])
def test_a_commit_for_each_poll_is_good_to_know_and_many_more_are_too_many(
    per_second: int, severities: list[str]
) -> None:
    scene = Scene()
    line = scene.connect(0)
    for number in range(per_second * 8):
        line.ask(1 + number / per_second, "OffsetCommit", 2, {"GroupId": "g", "Topics": []}, {"Topics": []})
    assert [one.severity for one in scene.findings("commit-storm")] == severities
