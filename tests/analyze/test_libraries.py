"""Which library a client is made with, and what cures it."""

from __future__ import annotations

import pytest

from kwire.analyze.libraries import cure_of, library_of


@pytest.mark.parametrize(
    ("software", "client_id", "name"),
    [
        ("apache-kafka-java", "billing", "Java"),
        ("confluent-kafka-python", "billing", "librdkafka"),
        ("librdkafka", "billing", "librdkafka"),
        (None, "consumer-billing-1", "Java"),
        (None, "rdkafka", "librdkafka"),
        (None, "kafka-python-2.0.2", "kafka-python"),
        (None, "sarama", "Sarama"),
        ("kgo", "sarama", "franz-go"),
        (None, "billing", None),
    ],
)
def test_by_name_and_habit(software: str | None, client_id: str, name: str | None) -> None:
    found = library_of(software, client_id)
    assert (found.name if found else None) == name


def test_cures() -> None:
    java, librdkafka = library_of("apache-kafka-java", None), library_of(None, "rdkafka")
    assert cure_of(java, "2.0.1") == "kafka-clients 2.1 or newer"
    assert cure_of(librdkafka, None).startswith("librdkafka 1.8.2 or newer, without broker.version.fallback")
    assert cure_of(librdkafka, "2.3.0") == "without broker.version.fallback and api.version.request=false"
    assert "Kafka 2.1" in cure_of(None, None)
