"""TLS where there is none, and the reverse; a handshake that nobody trusts."""

from __future__ import annotations

from pathlib import Path

from provoked import assert_proven, found_in
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


def test_tls_to_a_plain_listener_is_told_once() -> None:
    """The client's alert, when the listener hangs up, is no finding of its own."""
    (found,) = diagnosed(packets_of(CAPTURES / "notkafka.pcap"), ["tls-mismatch"]).findings
    assert "TLS is spoken to a listener without TLS" in found.what


def test_hellos_of_several_sizes_are_one_finding() -> None:
    found = assert_proven("tls-mismatch", "tls-mismatch", "error")
    assert found.count > 10
    assert [one.detector for one in found_in("tls-mismatch")] == ["tls-mismatch"]


def test_plain_kafka_to_a_listener_with_tls_and_an_authority_that_is_not_known() -> None:
    assert_proven("plain-to-tls", "tls-mismatch", "error")
    plain, distrust = [one for one in found_in("plain-to-tls") if one.detector == "tls-mismatch"]
    assert "plain Kafka is spoken to a listener with TLS" in plain.what
    assert "unknown_ca" in distrust.what


def test_plain_kafka_among_itself_is_fine() -> None:
    scene = Scene()
    scene.connect(0).ask(1, "ApiVersions", 0, {}, {"ErrorCode": 0, "ApiKeys": []})
    assert scene.findings("tls-mismatch") == []
