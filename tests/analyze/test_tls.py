"""What TLS connections tell without their keys, and what is found wrong with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kwire.analyze.tls import facts_of, findings_of, row_of, session_of
from kwire.capture.tls.certificates import Certificate
from kwire.session.connection_info import ConnectionInfo
from kwire.session.reading import Reading

CAPTURES = Path(__file__).parents[2] / "fixtures/captures"
DAY = 86_400_000_000_000


def connections(name: str) -> list[ConnectionInfo]:
    over: list[ConnectionInfo] = []
    for _ in Reading([CAPTURES / name], ended=over.append).exchanges():
        pass
    return sorted(over, key=lambda one: one.tcp.first_time)


@pytest.fixture(scope="module")
def seen() -> list[ConnectionInfo]:
    return connections("tls-openssl/capture.pcap.gz")


def test_facts_of_every_version(seen: list[ConnectionInfo]) -> None:
    rows = [row for row in map(row_of, seen) if row and row["version"]]
    assert {row["version"] for row in rows} == {"TLS 1.1", "TLS 1.2", "TLS 1.3"}
    assert sum(row["certificate"] is not None for row in rows) > 20
    subjects = {row["client_certificate"]["subject"] for row in rows if row["client_certificate"]}
    assert subjects == {"CN=client.kafka.example,O=Example"}
    assert sum(row["resumed"] for row in rows) == 5
    assert any(row["hello_retry"] for row in rows)
    assert {row["server_name"] for row in rows} == {"kafka.example"}
    assert all(row["handshake_ns"] > 0 for row in rows if not row["early_data"])
    assert {row["closed_by"] for row in rows} <= {"client", "server"}
    assert all(facts_of(one) for one in seen if (row_of(one) or {}).get("version"))


def test_a_healthy_connection_has_no_findings(seen: list[ConnectionInfo]) -> None:
    assert not any(findings_of(one) for one in seen if one.verdict and not (row_of(one) or {"alerts": 1})["alerts"])


@pytest.mark.parametrize(
    ("change", "asked", "said"),
    [
        ({"not_after": -DAY}, "kafka.example", "was expired"),
        ({"not_after": 3 * DAY}, "kafka.example", "ends in 3 days"),
        ({"not_before": DAY}, "kafka.example", "was not yet valid"),
        ({}, "other.example.org", "and not for other.example.org, which was asked"),
    ],
)
def test_certificates(seen: list[ConnectionInfo], change: dict[str, int], asked: str, said: str) -> None:
    one = next(found for found in seen if (row_of(found) or {}).get("certificate"))
    session, time = session_of(one), one.tcp.first_time
    assert session is not None
    before = session.facts.certificate, session.facts.server_name
    assert isinstance(before[0], Certificate)
    changed: dict[str, Any] = {name: time + shift for name, shift in change.items()}
    session.facts.certificate = before[0]._replace(**changed)
    session.facts.server_name = asked
    try:
        (found,) = findings_of(one)
    finally:
        session.facts.certificate, session.facts.server_name = before
    assert said in found.what
    assert found.evidence[0].packet == one.tcp.opening[0]


def test_plain_and_tls_spoken_to_the_wrong_listener() -> None:
    found: dict[str, Any] = {}
    for name in ("tls.pcap", "notkafka.pcap"):
        for one in connections(name):
            for finding in findings_of(one):
                found[finding.what.partition(";")[0]] = finding
    assert "plain Kafka is spoken to a listener with TLS" in found
    assert "TLS is spoken to a listener without TLS" in found
    assert "Invalid receive (size = 3692956" in found["TLS is spoken to a listener without TLS"].what
    assert any("unknown_ca" in what for what in found)
