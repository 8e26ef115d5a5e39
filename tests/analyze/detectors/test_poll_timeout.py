"""Members that did not poll."""

from __future__ import annotations

from pathlib import Path

from scenes import diagnosed, packets_of

CAPTURES = Path(__file__).parents[3] / "fixtures" / "captures"


def test_the_capture_of_one() -> None:
    diagnosis = diagnosed(packets_of(CAPTURES / "evict-max-poll.pcap.gz"), ["poll-timeout"])
    (found,) = diagnosis.findings
    assert found.severity == "error"
    assert "group billing: slow: left by itself at 11.062" in found.what
    assert found.about == {"client_id": "slow", "address": "127.0.0.1", "group": "billing"}
    assert abs((found.time - (diagnosis.case.start or 0)) / 1e9 - 11.06) < 0.3


def test_a_healthy_group_is_fine() -> None:
    assert diagnosed(packets_of(CAPTURES / "classic.pcap.gz"), ["poll-timeout"]).findings == []
