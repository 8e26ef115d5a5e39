"""A broker that goes away, with all who dial it, told once; one that only restarts."""

from __future__ import annotations

from scenes import Scene

VERSIONS = {"ErrorCode": 0, "ApiKeys": []}


def test_one_that_is_gone_is_one_finding() -> None:
    scene = Scene()
    for host in ("10.0.0.7", "10.0.0.8"):
        scene.connect(0, host=host).ask(1, "ApiVersions", 0, {}, VERSIONS).reset(5)
        for at in range(20):
            scene.dial(6 + at, host=host)
    (found,) = scene.findings("broker-gone")
    assert found.severity == "error"
    assert found.what == "broker 10.0.0.2:9092 is gone: 40 connections of 2 hosts refused from 6.000 to 25.000"
    assert (found.about, found.count) == ({"broker": "10.0.0.2:9092"}, 40)


def test_a_restart_is_a_note() -> None:
    scene = Scene()
    scene.connect(0).ask(1, "ApiVersions", 0, {}, VERSIONS).reset(5)
    for at in range(3):
        scene.dial(6 + at)
    scene.connect(9).ask(10, "ApiVersions", 0, {}, VERSIONS)
    (found,) = scene.findings("broker-gone")
    assert found.severity == "note"
    assert found.what.startswith("broker 10.0.0.2:9092 was away: 3 connections of 10.0.0.7 refused from 6.000 to 8.000")
    assert found.what.endswith("; reached again at 9.000, 3.0 s later")


def test_an_address_where_nobody_listens() -> None:
    scene = Scene()
    scene.connect(0).ask(1, "ApiVersions", 0, {}, VERSIONS)
    for at in range(3):
        scene.dial(6 + at, broker="10.0.0.2:9099")
    (found,) = scene.findings("broker-gone")
    assert found.what.startswith("nobody listens at 10.0.0.2:9099")
    assert found.advice.endswith("others in the capture are at port 9092.")


def test_silence_counts_only_where_answers_would_be_seen() -> None:
    scene = Scene()
    scene.dial(1, refused=False)
    assert scene.findings("broker-gone") == []
    scene.connect(0, broker="10.0.0.3:9092").ask(1, "ApiVersions", 0, {}, VERSIONS)
    assert [one.severity for one in scene.findings("broker-gone")] == ["warning"]


def test_what_was_advertised_and_never_reached_is_told_elsewhere() -> None:
    scene = Scene()
    nodes = [{"NodeId": 2, "Host": "10.0.0.3", "Port": 9092}]
    scene.connect(0).ask(1, "Metadata", 9, {"Topics": []}, {"Brokers": nodes, "Topics": []})
    scene.dial(2, broker="10.0.0.3:9092")
    assert scene.findings("broker-gone") == []


def test_connections_that_come_about_are_fine() -> None:
    scene = Scene()
    scene.connect(0).ask(1, "ApiVersions", 0, {}, VERSIONS).close(2)
    assert scene.findings("broker-gone") == []
