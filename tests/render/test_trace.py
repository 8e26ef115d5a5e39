"""Traced consumers as text of every width."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "fixtures" / "captures").glob("*.pcap*"))


@pytest.mark.parametrize("path", FILES, ids=[path.name.split(".")[0] for path in FILES])
def test_no_line_is_wider_than_the_terminal(path: Path, kwire: Any) -> None:
    for width in (60, 80, 120):
        ran = kwire("trace", str(path), "--all", columns=width)
        assert [line for line in ran.text.splitlines() if len(line) > width] == []


def test_the_seven_steps(kwire: Any) -> None:
    ran = kwire("trace", "fixtures/captures/evict-fenced.pcap.gz", "--client-id", "first", columns=120)
    assert ran.text.splitlines()[:3] == [
        "first  127.0.0.1  confluent-kafka-python 2.16.1-rdkafka-2.16.0  group billing",
        "  failed in step 5, heartbeat: FENCED_INSTANCE_ID at 6.811 (frame 360)",
        "  → kwire explain FENCED_INSTANCE_ID says what it means.",
    ]
    steps = [line.split()[:2] for line in ran.text.splitlines()[5:] if line[2:3].isdigit()]
    assert steps == [
        ["1", "metadata"],
        ["2", "coordinator"],
        ["3", "join"],
        ["4", "assignment"],
        ["5", "heartbeat"],
        ["6", "offsets"],
        ["7", "fetch"],
    ]
