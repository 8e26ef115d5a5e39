"""kwire audit on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"
OLD, NEW = str(CAPTURES / "oldjava.pcap.gz"), str(CAPTURES / "franz.pcap.gz")


def test_blocked_is_exit_status_one(kwire: Callable[..., Any]) -> None:
    ran = kwire("audit", OLD)
    assert ran.status == 1
    assert ran.text.startswith("to 4.0  10 blocked")
    assert kwire("audit", NEW).status == 0
    assert kwire("audit", OLD, "--to", "3.9").status == 0


def test_json_is_a_client_a_line(kwire: Callable[..., Any]) -> None:
    rows = [json.loads(line) for line in kwire("audit", OLD, "--format", "json").text.splitlines()]
    row = next(one for one in rows if one["client_id"] == "java-0.10.2.2-consumer")
    assert row["verdict"] == "blocked"
    assert row["blocked_by"] == [{"api": "Fetch", "versions": [3], "takes": "takes v4 to v17", "packets": ["267"]}]
    assert row["cure"] == "kafka-clients 2.1 or newer"
    assert {"client_id", "addresses", "principal", "software", "verdict", "blocked_by", "cure"} <= row.keys()


def test_the_reverse(kwire: Callable[..., Any]) -> None:
    ran = kwire("audit", NEW, "--from", "4.3", "--brokers", "3.9")
    assert ran.status == 0
    assert ran.text.startswith("clients of 4.3 to brokers of 3.9  0 blocked")
    assert kwire("audit", NEW, "--from", "4.3", "--brokers", "0.9").status == 1


def test_wrong_usage(kwire: Callable[..., Any]) -> None:
    assert "no Kafka release" in kwire("audit", NEW, "--to", "9.9").err
    assert kwire("audit", NEW, "--brokers", "3.9").status == 2
