"""What the doctor says of each fixture: the troubled ones their troubles, the healthy ones nothing above a note."""

from __future__ import annotations

from pathlib import Path

import pytest
from provoked import LABELS, TRUTH, capture_of
from scenes import diagnosed, packets_of

FIXTURES = Path(__file__).parents[2] / "fixtures"
TROUBLES = {  # severity and detector, as often as they come
    "classic": ["error evicted"],
    "evict-consumer-protocol": ["error evicted"],
    "evict-fenced": ["error static-clash"],
    "evict-max-poll": ["error poll-timeout"],
    "evict-max-poll-java": ["error poll-timeout"],
    "evict-refused-commits": ["error evicted", *["warning commit-refused"] * 3],
    "evict-slow-joiner": ["warning slow-joiner"],
    "evict-stopped": ["error evicted"],
    "old39": ["warning kafka4-blocked"],
    "oldjava": ["warning kafka4-blocked"],
    "notkafka": ["error tls-mismatch", *["warning wrong-protocol"] * 8, "warning broker-gone"],
    "sasl": ["error login-fails"] * 2,
    "sasl-v0": ["error login-fails"] * 3,
    "tls": ["error tls-mismatch"] * 3,
    "txn": ["error producer-fenced"],
}
FILES = sorted((FIXTURES / "captures").glob("*.pcap*"))
PAIRS = [capture_of(label) for label in LABELS]


def label(path: Path) -> str:
    return path.name.partition(".")[0]


@pytest.mark.parametrize("path", FILES, ids=label)
def test_findings_above_notes(path: Path) -> None:
    found = [f"{one.severity} {one.detector}" for one in diagnosed(packets_of(path)).findings if one.severity != "note"]
    assert sorted(found) == sorted(TROUBLES.get(label(path), []))


@pytest.mark.slow
@pytest.mark.parametrize("path", PAIRS, ids=label)
def test_a_provoked_capture_has_its_trouble_and_no_other(path: Path) -> None:
    truth = [one["detector"] for one in TRUTH[label(path)]["found"]]
    found = [one.detector for one in diagnosed(packets_of(path)).findings if one.severity != "note"]
    assert set(found) <= set(truth)
