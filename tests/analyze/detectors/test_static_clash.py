"""Two processes with one instance id."""

from __future__ import annotations

from pathlib import Path

from scenes import diagnosed, packets_of

CAPTURES = Path(__file__).parents[3] / "fixtures" / "captures"


def test_the_capture_of_one() -> None:
    diagnosis = diagnosed(packets_of(CAPTURES / "evict-fenced.pcap.gz"), ["static-clash"])
    (found,) = diagnosis.findings
    assert found.severity == "error"
    assert "client usurper from 127.0.0.1 took over its instance id billing-1" in found.what
    assert found.about == {"client_id": "first", "address": "127.0.0.1", "group": "billing"}
    assert abs((found.time - (diagnosis.case.start or 0)) / 1e9 - 6.81) < 0.3


def test_a_healthy_group_is_fine() -> None:
    assert diagnosed(packets_of(CAPTURES / "evict-stopped.pcap.gz"), ["static-clash"]).findings == []
