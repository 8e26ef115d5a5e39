"""kwire demo: the story happens, and what is shown of it is what happened."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kwire as api

TURNS = [
    "a broker listens on 127.0.0.1:",
    "billing-1 joins group billing; it is alone and gets 4 partitions",
    "the broker refuses the first batch (a fault on purpose), and the producer retries",
    "billing-2 joins: the group rebalances; now 2 partitions and 2 partitions",
    "billing-2 is stopped",
    "its session timeout of 2,000 ms is over: it is evicted, billing-1 gets 4 partitions",
    "billing-2 is back and sends a heartbeat: UNKNOWN_MEMBER_ID",
    "it joins anew",
    "both leave",
    "$ kwire read kept.pcapng --errors",
    "$ kwire decode kept.pcapng --frame ",
    "25 UNKNOWN_MEMBER_ID",
    "$ kwire groups kept.pcapng",
]


def test_the_demo_shows_what_happened(kwire: Callable[..., Any], tmp_path: Path) -> None:
    kept = tmp_path / "kept.pcapng"
    ran = kwire("demo", "-w", str(kept))
    assert (ran.status, "Traceback" in ran.err) == (0, False)
    at = 0
    for turn in TURNS:
        at = ran.text.index(turn, at)
    assert re.search(r"error +billing-2: UNKNOWN_MEMBER_ID at [\d.]+ \(Heartbeat, check 7: member\): evicted", ran.text)
    refused = [each.error for each in api.read(kept, api="Produce")]
    assert refused == [6, None, None, None, None]
