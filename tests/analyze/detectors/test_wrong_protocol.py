"""Other protocols on a broker's port, and other servers in a broker's place."""

from __future__ import annotations

from scenes import Scene

VERSIONS = {"ErrorCode": 0, "ApiKeys": []}


def test_a_health_check_over_http_is_one_finding() -> None:
    scene = Scene()
    scene.connect(0).ask(1, "ApiVersions", 0, {}, VERSIONS)
    for at in range(5):
        line = scene.connect(2 + at, host="10.0.0.9")
        line.tcp.send(b"GET /health HTTP/1.1\r\nHost: kafka\r\n\r\n")
        line.close(2.5 + at)
    (found,) = scene.findings("wrong-protocol")
    assert (found.severity, found.count) == ("warning", 5)
    assert found.what.startswith(
        "10.0.0.9 sent the broker at 10.0.0.2:9092 what is not Kafka: HTTP request (GET /health) 5 times"
    )
    assert "Invalid receive (size = 1195725856 larger than 104857600)" in found.what


def test_a_web_server_in_a_brokers_place() -> None:
    scene = Scene()
    line = scene.connect(0, broker="10.0.0.2:80").ask(1, "ApiVersions", 0, {})
    scene.at(1.1)
    line.tcp.answer(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    line.close(2)
    (found,) = scene.findings("wrong-protocol")
    assert found.severity == "error"
    assert "answers Kafka clients at 10.0.0.7 with HTTP response (HTTP/1.1 400 Bad Request)" in found.what


def test_other_traffic_beside_kafka_is_none_of_its_business() -> None:
    scene = Scene()
    scene.connect(0, broker="10.0.0.2:80").tcp.send(b"GET / HTTP/1.1\r\n\r\n")
    scene.connect(1).ask(1, "ApiVersions", 0, {}, VERSIONS)
    assert scene.findings("wrong-protocol") == []
