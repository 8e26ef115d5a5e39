"""kwire doctor on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scenes import Scene

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"
BEAT = {"GroupId": "billing", "MemberId": "m", "GenerationId": 1}


@pytest.fixture
def denied(tmp_path: Path) -> str:
    scene = Scene()
    scene.connect(0).ask(1, "Heartbeat", 3, BEAT, {"ErrorCode": 30})
    return str(scene.traffic.save(tmp_path / "denied.pcap", scene.packets))


def test_an_error_is_exit_status_one(kwire: Callable[..., Any], denied: str) -> None:
    ran = kwire("doctor", denied, "--only", "acl-denied")
    assert ran.status == 1
    assert "acl-denied" in ran.text
    assert kwire("doctor", denied, "--skip", "acl-denied").status == 0


def test_it_is_one_too_where_nothing_is_kafka_as_tls_is_spoken_to_a_plain_listener(kwire: Callable[..., Any]) -> None:
    assert kwire("doctor", "fixtures/doctor/tls-mismatch.pcap", "--only", "tls-mismatch").status == 1
    assert kwire("doctor", "fixtures/doctor/tls-mismatch.pcap", "--only", "wrong-protocol").status == 3


def test_json_and_html(kwire: Callable[..., Any], denied: str) -> None:
    (line,) = kwire("doctor", denied, "--format", "json", "--only", "acl-denied").text.splitlines()
    assert json.loads(line)["about"] == {
        "client_id": "c1", "address": "10.0.0.7", "group": "billing", "api": "Heartbeat",
    }  # fmt: skip
    assert kwire("doctor", denied, "--format", "html").text.startswith("<!DOCTYPE html>")


def test_the_list_needs_no_capture(kwire: Callable[..., Any]) -> None:
    assert "acl-denied" in kwire("doctor", "--list").text
    rows = [json.loads(line) for line in kwire("doctor", "--list", "--format", "json").text.splitlines()]
    assert {"detector", "looks_for", "thresholds", "source"} <= set(rows[0])


@pytest.mark.parametrize("given", [("--only", "nobody"), ("--set", "acl-denied.x=1")])
def test_wrong_names_are_wrong_usage(kwire: Callable[..., Any], denied: str, given: tuple[str, str]) -> None:
    assert kwire("doctor", denied, *given).status == 2


def test_explain_knows_detectors(kwire: Callable[..., Any]) -> None:
    assert "What proves it" in kwire("explain", "acl-denied").text


def test_a_healthy_capture(kwire: Callable[..., Any]) -> None:
    ran = kwire("doctor", str(CAPTURES / "ipv6.pcap"))
    assert ran.status == 0
    assert "capture-quality" in ran.text.partition("looked for and not found")[2]
    assert not [line for line in ran.text.splitlines() if line.startswith(("error", "warning"))]
