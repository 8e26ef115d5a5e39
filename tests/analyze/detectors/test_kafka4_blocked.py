"""Clients that the next major release refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from scenes import Scene, diagnosed, packets_of

CAPTURES = Path(__file__).parents[3] / "fixtures" / "captures"


def test_old_clients_at_the_last_release_before() -> None:
    (found,) = diagnosed(packets_of(CAPTURES / "oldjava.pcap.gz"), ["kafka4-blocked"]).findings
    assert found.severity == "warning"
    assert "10 clients speak versions that Kafka 4 refuses" in found.what
    assert found.what.endswith("the brokers offer what 3.9 does")


def test_a_note_where_the_brokers_release_is_not_seen(scene: Scene) -> None:
    scene.connect(0).ask(1, "Fetch", 2, {"Topics": []}, {"Responses": []})
    (found,) = scene.findings("kafka4-blocked")
    assert found.severity == "note"
    assert found.about == {"client_id": "c1", "address": "10.0.0.7", "api": "Fetch"}


def test_a_cure_is_named_where_it_is_that_of_all() -> None:
    (java,) = diagnosed(packets_of(CAPTURES / "oldjava.pcap.gz"), ["kafka4-blocked"]).findings
    (mixed,) = diagnosed(packets_of(CAPTURES / "old39.pcap.gz"), ["kafka4-blocked"]).findings
    assert java.advice == "kwire audit names each with what cures it; here kafka-clients 2.1 or newer."
    assert mixed.advice == "kwire audit names each with what cures it."


@pytest.mark.parametrize("name", ["franz.pcap.gz", "share.pcap", "streams.pcap", "pyclients.pcap", "kafkajs.pcap"])
def test_new_clients(name: str) -> None:
    assert diagnosed(packets_of(CAPTURES / name), ["kafka4-blocked"]).findings == []
