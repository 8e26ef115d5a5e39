"""TLS where there is none, and the reverse; a handshake that nobody trusts."""

from __future__ import annotations

from pathlib import Path

from scenes import Scene, diagnosed, packets_of

CAPTURES = Path(__file__).parents[3] / "fixtures" / "captures"


def test_the_capture_of_handshakes() -> None:
    found = diagnosed(packets_of(CAPTURES / "tls.pcap"), ["tls-mismatch"]).findings
    assert [(one.severity, one.count) for one in found] == [("error", 2), ("error", 1), ("error", 1)]
    assert "unknown_ca" in found[0].what
    assert "plain Kafka is spoken to a listener with TLS" in found[1].what
    assert "handshake_failure" in found[2].what
    assert all(one.about["broker"] == "127.0.0.1:9094" for one in found)
    assert "ssl.truststore.location" in found[0].advice
    assert all(one.advice for one in found)


def test_tls_to_a_plain_listener() -> None:
    found = diagnosed(packets_of(CAPTURES / "notkafka.pcap"), ["tls-mismatch"]).findings
    assert any("TLS is spoken to a listener without TLS" in one.what for one in found)


def test_plain_kafka_among_itself_is_fine() -> None:
    scene = Scene()
    scene.connect(0).ask(1, "ApiVersions", 0, {}, {"ErrorCode": 0, "ApiKeys": []})
    assert scene.findings("tls-mismatch") == []
