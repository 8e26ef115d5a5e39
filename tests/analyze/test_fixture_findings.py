"""What the doctor says of each fixture: the troubled ones their troubles, the healthy ones nothing above a note."""

from __future__ import annotations

from pathlib import Path

import pytest
from scenes import diagnosed, packets_of

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"
TROUBLES = {  # severity and detector, as often as they come
    "classic": ["error evicted"],
    "evict-consumer-protocol": ["error evicted"],
    "evict-fenced": ["error static-clash"],
    "evict-max-poll": ["error poll-timeout"],
    "evict-max-poll-java": ["error poll-timeout"],
    "evict-refused-commits": ["error evicted"],
    "evict-slow-joiner": ["warning slow-joiner"],
    "evict-stopped": ["error evicted"],
    "notkafka": ["error tls-mismatch", "error tls-mismatch", *["warning wrong-protocol"] * 8, "warning broker-gone"],
    "sasl": ["error login-fails"] * 2,
    "sasl-v0": ["error login-fails"] * 3,
    "tls": ["error tls-mismatch"] * 3,
}
FILES = sorted(CAPTURES.glob("*.pcap*"))


@pytest.mark.parametrize("path", FILES, ids=[path.name.partition(".")[0] for path in FILES])
def test_findings_above_notes(path: Path) -> None:
    found = [f"{one.severity} {one.detector}" for one in diagnosed(packets_of(path)).findings if one.severity != "note"]
    assert sorted(found) == sorted(TROUBLES.get(path.name.partition(".")[0], []))
