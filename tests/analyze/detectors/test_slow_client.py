"""A consumer that works long on each record."""

from __future__ import annotations

from pathlib import Path

from provoked import GRAVE, assert_proven
from scenes import diagnosed, packets_of

WINDOWS = Path(__file__).parents[3] / "fixtures" / "windows"


def test_provoked() -> None:
    found = assert_proven("slow-client", "slow-client")
    assert "takes 1.5 s (the median of" in found.what


def test_answers_that_a_client_does_not_read_fill_its_window() -> None:
    sick, healthy = (
        [one for one in diagnosed(packets_of(WINDOWS / name)).findings if one.severity in GRAVE]
        for name in ("unread.pcap.gz", "unread-healthy.pcap.gz")
    )
    assert healthy == []
    assert [(one.detector, one.about["client_id"], [ref.packet for ref in one.evidence]) for one in sick] == [
        ("slow-client", "reader", [47])
    ]
    assert "TCP window was full 1 time, for 1.5 s or longer" in sick[0].what
