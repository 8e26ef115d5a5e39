"""Leaders, epochs and votes of KRaft's quorum: on the lines of a real election, and as a timeline."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scenes import packets_of
from session.conftest import block

from kwire.analyze import quorum as module
from kwire.analyze.findings import TimeFormat
from kwire.analyze.quorum import Quorum, Quorums, quorums_of
from kwire.render.lines import plain
from kwire.render.quorum import quorum_lines
from kwire.session.reader import Reader

CHANGE = Path(__file__).parents[2] / "fixtures" / "doctor" / "controller-change.pcap.gz"
START = 1795344376_778_000_000


def collected() -> Quorum:
    quorums, reader = Quorums(), Reader("made.pcap", tracking=True)
    for batch in (*reader.feed(block(packets_of(CHANGE), 1)), *reader.finish()):
        quorums.add(batch)
    (found,) = quorums_of(quorums.known.values())
    return found


def test_an_election() -> None:
    found = collected()
    assert (found.epoch, found.leader, found.voters) == (2, 1, (1, 2, 3))
    assert [(one.what, one.epoch, one.node) for one in found.moments] == [
        ("leader", 1, 2), ("ends", 1, 2), ("pre-vote", 1, 1), ("vote", 2, 1), ("leader", 2, 1),
    ]  # fmt: skip
    first, ends, before, vote, second = found.moments
    assert (ends.preferred, before.granted, before.refused) == ((1, 3), [2], [3])
    assert (sorted(vote.granted), vote.refused, vote.asked) == ([2, 3], [], [])
    assert first.without is None
    assert second.without is not None
    assert 300_000_000 < second.without < 400_000_000
    assert str(second.proof) == "369"
    assert {node: at for node, (at, _) in found.replicas.items()} == {1: 40, 3: 55}


@pytest.mark.parametrize("width", [60, 80, 200])
def test_the_timeline_fits(width: int) -> None:
    lines = [plain(line) for line in quorum_lines(collected(), TimeFormat(START), width)]
    assert [line for line in lines if len(line) > width] == []
    assert lines[0].startswith("quorum of cluster a3dpcmUtdHJvdWJsZS1sYQ")
    assert any(line.endswith("vote for 1: granted by 3 2") for line in lines)


def test_only_so_many_changes_are_kept_and_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_MOMENTS", 3)
    found = collected()
    assert (len(found.moments), found.unkept) == (3, 3)
    assert plain(quorum_lines(found, TimeFormat(START), 80)[-1]) == "… 3 more changes that could not be kept"


def test_lines_name_leader_epoch_and_votes(kwire: Callable[..., Any]) -> None:
    text = kwire("read", str(CHANGE), columns=300).text
    for words in (
        "leader 2 epoch 1, replica 3 at 38", "leader 2 epoch 1, voters 1 2 3", "leader 2 ends epoch 1, prefers 1 3",
        "pre-vote for 1 epoch 1: refused by 3, leader 2", "vote for 1 epoch 2: granted by 2",
        "no leader in epoch 2, replica 3 at 40", "leader 1 epoch 2, told to 3",
    ):  # fmt: skip
        assert words in text, words
    topic = kwire("read", str(CHANGE), "--topic", "__cluster_metadata", "--api", "Vote", "--format", "json").text
    assert len(topic.splitlines()) == 8


def test_stats_shows_it(kwire: Callable[..., Any]) -> None:
    assert "leader 1, " in kwire("stats", str(CHANGE), "--quorum").text
    (row,) = map(json.loads, kwire("stats", str(CHANGE), "--quorum", "--format", "json").text.splitlines())
    assert (row["leader"], row["epoch"], len(row["moments"])) == (1, 2, 5)
    assert kwire("stats", str(CHANGE), "--quorum", "--api", "Produce").text == "no messages of a KRaft quorum\n"
