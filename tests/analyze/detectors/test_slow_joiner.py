"""A member that all wait for."""

from __future__ import annotations

from pathlib import Path

from scenes import diagnosed, packets_of

CAPTURES = Path(__file__).parents[3] / "fixtures" / "captures"


def test_the_capture_of_one() -> None:
    diagnosis = diagnosed(packets_of(CAPTURES / "evict-slow-joiner.pcap.gz"), ["slow-joiner"])
    (found,) = diagnosis.findings
    assert found.severity == "warning"
    assert "late joined 3.0 s after it began, though told to at 6.503" in found.what
    assert found.about == {"client_id": "late", "address": "127.0.0.1", "group": "billing"}
    assert abs((found.time - (diagnosis.case.start or 0)) / 1e9 - 6.48) < 0.3


def test_a_healthy_group_is_fine() -> None:
    assert diagnosed(packets_of(CAPTURES / "evict-fenced.pcap.gz"), ["slow-joiner"]).findings == []
