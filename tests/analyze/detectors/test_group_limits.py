"""Thresholds of the detectors that judge histories of groups."""

from __future__ import annotations

import pytest
from provoked import capture_of
from scenes import diagnosed, packets_of

FIXTURES = capture_of("rebalance-storm").parent.parent


@pytest.mark.parametrize(
    ("capture", "detector", "limits"),
    [
        ("doctor/rebalance-storm.pcap.gz", "rebalance-storm", {"generations": 100}),
        ("doctor/rebalance-storm.pcap.gz", "rebalance-storm", {"seconds": 1}),
        ("captures/evict-slow-joiner.pcap.gz", "slow-joiner", {"seconds": 60}),
    ],
)
def test_a_threshold_above_all_there_is_silences(capture: str, detector: str, limits: dict[str, float]) -> None:
    packets = packets_of(FIXTURES / capture)
    assert [one.detector for one in diagnosed(packets, [detector]).findings] == [detector]
    assert diagnosed(packets, [detector], {detector: limits}).findings == []
