"""Client libraries: by what name they go, how they are known where they tell none, and from which version on they speak
what Kafka 4 takes (KIP-896 names the releases that its baseline was made from; for Java, clients of Kafka 2.1)."""

from __future__ import annotations

import re
from typing import NamedTuple


class ClientLibrary(NamedTuple):
    """told: how it names itself in ApiVersions; habit: client ids that it makes up, or that are made of its name; fit:
    the first version that speaks what brokers of 4.0 take, as it is written in release; pin: what holds newer ones to
    older versions."""

    name: str
    told: str
    habit: str
    fit: tuple[int, ...]
    release: str
    pin: str = ""


LIBRARIES = (
    ClientLibrary("Java", r"apache-kafka-java", r"(producer|consumer|adminclient)(-.+)?-\d+|java.*", (2, 1),
                  "kafka-clients 2.1"),
    ClientLibrary("librdkafka", r"(.*-)?(lib)?rdkafka.*|confluent-kafka-.*", r"(lib)?rdkafka.*", (1, 8, 2),
                  "librdkafka 1.8.2", "broker.version.fallback and api.version.request=false"),
    ClientLibrary("kafka-python", r"kafka-python", r"kafka-python.*", (2, 0, 2), "kafka-python 2.0.2", "api_version"),
    ClientLibrary("aiokafka", r"aiokafka", r"aiokafka.*", (0, 8), "aiokafka 0.8", "api_version"),
    ClientLibrary("KafkaJS", r"kafkajs", r"kafkajs.*", (1, 15), "KafkaJS 1.15"),
    ClientLibrary("Sarama", r"sarama", r"sarama.*", (1, 30, 1), "Sarama 1.30.1", "a Config.Version below 2.1"),
    ClientLibrary("franz-go", r"kgo|franz-go", r"kgo", (1,), "franz-go 1.0", "kgo.MaxVersions"),
)  # fmt: skip


def library_of(software: str | None, client_id: str | None) -> ClientLibrary | None:
    """The library of a client, as it tells or as its client id shows."""
    for library in LIBRARIES:
        if software and re.fullmatch(library.told, software, re.IGNORECASE):
            return library
    for library in LIBRARIES if not software else ():
        if client_id and re.fullmatch(library.habit, client_id):
            return library
    return None


def release_of(library: ClientLibrary | None, version: str | None) -> tuple[int, int] | None:
    """The release of Kafka whose protocol a client speaks, where its library's own version tells: Java's."""
    numbers = [int(part) for part in re.findall(r"\d+", version or "")[:2]]
    return (numbers[0], numbers[1]) if library is LIBRARIES[0] and len(numbers) == 2 else None


def cure_of(library: ClientLibrary | None, version: str | None) -> str:
    """What makes a client work that asks for versions which are gone."""
    if library is None:
        return "a release of its library that speaks Kafka 2.1's protocol, and nothing that pins it to older versions"
    numbers = tuple(int(part) for part in re.findall(r"\d+", version or "")[:3])
    if numbers >= library.fit and library.pin:
        return f"without {library.pin}"
    return f"{library.release} or newer" + (f", without {library.pin}" if library.pin else "")
