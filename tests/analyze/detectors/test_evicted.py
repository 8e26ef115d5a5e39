"""Members that were thrown out."""

from __future__ import annotations

from pathlib import Path

from scenes import diagnosed, packets_of

CAPTURES = Path(__file__).parents[3] / "fixtures" / "captures"


def test_the_capture_of_one() -> None:
    diagnosis = diagnosed(packets_of(CAPTURES / "evict-stopped.pcap.gz"), ["evicted"])
    (found,) = diagnosis.findings
    assert found.severity == "error"
    assert "group billing: paused: UNKNOWN_MEMBER_ID at 17.234" in found.what
    assert found.about == {"client_id": "paused", "address": "127.0.0.1", "group": "billing"}
    assert abs((found.time - (diagnosis.case.start or 0)) / 1e9 - 12.85) < 0.3


def test_a_healthy_group_is_fine() -> None:
    assert diagnosed(packets_of(CAPTURES / "evict-slow-joiner.pcap.gz"), ["evicted"]).findings == []
