"""All provoked captures: each gives what its truth says, and no other error or warning; the healthy ones give none."""

from __future__ import annotations

import pytest
from provoked import GRAVE, LABELS, capture_of, expected, found_in, matches, told
from scenes import diagnosed, packets_of
from session.conftest import Packet

from kwire.analyze.consequences import families
from kwire.analyze.findings import SECOND, Reference


@pytest.mark.parametrize("label", [label for label in LABELS if label.endswith("-healthy") or label == "libraries"])
def test_the_healthy_are_silent(label: str) -> None:
    assert told(label) == []


@pytest.mark.parametrize("label", [label for label in LABELS if not label.endswith("-healthy")])
def test_the_troubled_give_their_trouble_and_no_other(label: str) -> None:
    truths = expected(label)
    found = found_in(label)
    assert [truth for truth in truths if not any(matches(one, truth) for one in found)] == []
    named = {truth["detector"] for truth in truths}
    assert [f"{one.detector}: {one.what}" for one in found if one.severity in GRAVE and one.detector not in named] == []


@pytest.mark.parametrize("label", LABELS)
def test_what_follows_from_an_event_is_told_with_it_and_nothing_else_is(label: str) -> None:
    told = {
        (head.detector, tuple(sorted({one.detector for one in others})))
        for head, others in families(found_in(label)) if others
    }  # fmt: skip
    truths = {(truth["detector"], tuple(truth["consequences"])) for truth in expected(label) if "consequences" in truth}
    assert told - {("leader-moved", ("coordinator-moved",))} == truths


@pytest.mark.parametrize("label", ["head-of-line", "throttle-ignored", "slow-broker", "evicted"])
def test_it_does_not_matter_in_what_blocks_a_capture_is_read(label: str) -> None:
    packets = packets_of(capture_of(label))
    assert in_blocks(packets, 7) == in_blocks(packets, len(packets))


@pytest.mark.parametrize("label", ["slow-client", "throttle-ignored", "open-transaction", "leader-moved"])
def test_nor_where_the_clock_is_set_back(label: str) -> None:
    packets = packets_of(capture_of(label))
    middle = len(packets) // 2
    stepped = [*packets[:middle], *(one._replace(time=one.time - 30 * SECOND) for one in packets[middle:])]
    assert in_blocks(stepped, 7) == in_blocks(stepped, len(stepped))


def in_blocks(packets: list[Packet], size: int) -> list[tuple[str, str, int, tuple[Reference, ...]]]:
    return [(one.detector, one.what, one.count, one.evidence) for one in diagnosed(packets, size=size).findings]
