"""Epochs of groups that only send heartbeats, as real captures show them."""

from __future__ import annotations

from pathlib import Path

from kwire.analyze.groups import GroupHistories
from kwire.analyze.history import History
from kwire.session.reading import Reading

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"


def history(name: str) -> History:
    groups = GroupHistories()
    for exchange in Reading([next(CAPTURES.glob(f"{name}.pcap*"))], tracking=True).exchanges():
        groups.add(exchange)
    groups.finish()
    (found,) = groups.histories.values()
    return found


def test_what_is_given_up_with_the_epoch_before_belongs_to_the_next() -> None:
    """The newcomer joins with nothing, at epoch 2, until the other has given up its part, at epoch 2 as well."""
    assert [(one.number, one.given, one.moved) for one in history("evict-consumer-protocol").generations] == [
        (2, {"steady": 4}, 0),
        (3, {"steady": 2, "paused": 2}, 2),
        (4, {"steady": 4}, 2),
        (5, {"steady": 2, "paused": 2}, 2),
        (6, {"steady": 4}, 2),
    ]


def test_a_part_that_goes_to_a_newcomer_moves_once() -> None:
    generations = history("consumer848").generations
    assert [(one.number, [(move.partition, move.source, move.target) for move in one.moves if move.source])
            for one in generations] == [
        (2, []),
        (3, [(2, "consumer848-c1", "consumer848-c2")]),
        (4, [(0, "consumer848-c1", "consumer848-c2"), (1, "consumer848-c1", "consumer848-c2")]),
    ]  # fmt: skip
