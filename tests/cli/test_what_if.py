"""kwire what-if: what it computes is what a real producer makes of the same records."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from kwire.errors import Exit
from kwire.testing import Broker

BASE, LINGER = "fixtures/diff/base.pcapng.gz", "fixtures/diff/linger.pcapng.gz"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def _document(kwire: Any, *arguments: str) -> dict[str, Any]:
    ran = kwire("what-if", "--format", "json", *arguments)
    assert ran.status == Exit.OK, ran.err
    document = json.loads(ran.text)
    assert isinstance(document, dict)
    return document


def _topic(document: dict[str, Any], name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    [topic] = [one for one in document["topics"] if one["topic"] == name]
    return topic["now"], {row["setting"]: row for row in topic["what_if"]}


def _produced(broker: Broker, codec: str) -> None:
    """The same 2,000 records, in batches of 200, to the topic that is named after the codec."""
    confluent_kafka = pytest.importorskip("confluent_kafka")
    made = random.Random(5)
    words = ["order", "paid", "shipped", "returned", "Zürich", "Lyon", "Porto", "express", "standard"]
    producer = confluent_kafka.Producer({
        "bootstrap.servers": broker.address, "compression.type": codec, "linger.ms": 60_000, "batch.num.messages": 200,
        "message.timeout.ms": 120_000,
    })  # fmt: skip
    for number in range(2000):
        value = {"id": number, "what": made.choice(words), "where": made.choice(words), "cents": made.randrange(10**6)}
        producer.produce(codec, json.dumps(value).encode(), key=str(made.randrange(100)).encode(), partition=0)
    assert producer.flush(60) == 0


@pytest.fixture(scope="module")
def produced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("what-if") / "c.pcapng"
    with Broker(topics=dict.fromkeys(CODECS, 1), capture=path) as broker:
        for codec in CODECS:
            _produced(broker, codec)
    return path


@pytest.mark.parametrize("codec", CODECS)
def test_codecs_are_what_a_real_producer_makes(codec: str, produced: Path, kwire: Any) -> None:
    document = _document(kwire, str(produced))
    now, _ = _topic(document, codec)
    _, computed = _topic(document, "none")
    [found] = [row for setting, row in computed.items() if setting.partition(":")[0] == codec]
    assert now["records"] == 2000
    assert now["codecs"] == {codec: now["batches"]}
    assert found["bytes"] == pytest.approx(now["bytes"], rel=0.05)
    assert found["batches"] == pytest.approx(now["batches"], abs=1)


@pytest.mark.parametrize("codec", CODECS)
def test_it_is_computed_from_compressed_records_too(codec: str, produced: Path, kwire: Any) -> None:
    _, computed = _topic(_document(kwire, str(produced), "--topic", codec), codec)
    _, plain = _topic(_document(kwire, str(produced), "--topic", "none"), "none")
    for setting in ("none", "gzip:6", "zstd:3"):
        assert computed[setting]["bytes"] == pytest.approx(plain[setting]["bytes"], rel=0.02)


def test_levels_cost_and_save(produced: Path, kwire: Any) -> None:
    options = ("--codec", "zstd:1", "--codec", "zstd:19")
    _, found = _topic(_document(kwire, str(produced), "--topic", "none", *options), "none")
    assert found["zstd:19"]["bytes"] < found["zstd:1"]["bytes"]


def test_batching_is_what_a_real_producer_makes(kwire: Any) -> None:
    """The recording with linger.ms 400 is what is computed from that with 100; and the reverse."""
    for one, other, linger in ((BASE, LINGER, "400"), (LINGER, BASE, "100")):
        now, _ = _topic(_document(kwire, other), "orders")
        _, found = _topic(_document(kwire, one, "--linger", linger), "orders")
        row = found[f"linger.ms {linger}, none"]
        assert row["batches"] == pytest.approx(now["batches"], abs=1)
        assert row["bytes"] == pytest.approx(now["bytes"], rel=0.05)


def test_batches_do_not_outgrow_their_size(kwire: Any) -> None:
    _, found = _topic(_document(kwire, BASE, "--linger", "60000", "--batch-size", "1k"), "orders")
    row = found["linger.ms 60000, none"]
    assert row["bytes"] / row["batches"] <= 1024 + 61


def test_fetches_that_wait_are_fewer(kwire: Any) -> None:
    [client] = _document(kwire, BASE, "--fetch-min-bytes", "1", "--fetch-min-bytes", "4k")["fetches"]
    few, none = (row for row in reversed(client["what_if"]))
    assert few["responses"] < none["responses"] <= client["now"]["responses"]
    assert none["delay_ms"] == 0 < few["delay_ms"] <= 500


def test_zones(kwire: Any) -> None:
    zones = _document(kwire, BASE, "--zone", "127.0.0.0/8=home")["zones"]
    assert {(row["client_zone"], row["broker_zone"]) for row in zones["traffic"]} == {("home", "home")}
    text = kwire("what-if", BASE, "--zone", "10.0.0.0/8=a").text
    assert "fetched by unknown from unknown" in text


def test_racks_of_brokers_are_zones_and_replicas_nearby_are_told(tmp_path: Path, kwire: Any) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    from kwire.broker.nodes import NodeSetup

    path = tmp_path / "c.pcapng"
    setups = [NodeSetup(number, rack=rack) for number, rack in ((1, "a"), (2, "b"))]
    with Broker(nodes=setups, capture=path, topics={"t": 1}, config={"default.replication.factor": 2}) as broker:
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.address})
        producer.produce("t", b"x" * 1000)
        assert producer.flush(60) == 0
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": broker.address, "group.id": "g", "auto.offset.reset": "earliest"}
        )
        consumer.subscribe(["t"])
        assert consumer.poll(60) is not None
        consumer.close()
        leader = broker.partition("t").leader
    far = _document(kwire, str(path))
    assert "zones" not in far
    told = _document(kwire, str(path), "--zone", "1.0.0.0/8=x")["zones"]
    assert {row["broker_zone"] for row in told["traffic"]} == {"a" if leader == 1 else "b"}
    assert told["client_rack_would_keep_bytes"] == 0


@pytest.mark.parametrize(
    "options", [("--codec", "rar"), ("--codec", "zstd:99"), ("--codec", "lz4:9"), ("--zone", "a"), ("--zone", "x=y")]
)
def test_what_cannot_be_is_refused(options: tuple[str, str], kwire: Any) -> None:
    assert kwire("what-if", BASE, *options).status == Exit.USAGE


@pytest.mark.parametrize("width", [80, 160])
def test_it_fits_the_terminal(width: int, kwire: Any) -> None:
    text = kwire("what-if", BASE, "--zone", "127.0.0.0/8=home", columns=width).text
    assert [line for line in text.splitlines() if len(line) > width] == []
