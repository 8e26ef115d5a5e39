"""Bodies as JSON: by the fast way and by spans the same, without secrets, and what could be read of broken ones."""

# mypy: disable-error-code="assignment"

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kwire.render.bodies import BodyRenderer, body_span, shown_span
from kwire.render.jsonform import to_jsonable
from kwire.schema.registry import builtin
from kwire.session.exchange import Message
from kwire.session.reading import Reading

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"
FILES = sorted(CAPTURES.glob("*.pcap*"))


def messages(path: Path) -> list[Message]:
    return [
        message
        for exchange in Reading([path]).exchanges()
        for message in (exchange.request, exchange.response)
        if message is not None
    ]


@pytest.mark.parametrize("path", FILES, ids=[path.name.split(".")[0] for path in FILES])
def test_both_ways_say_the_same(path: Path) -> None:
    quick, exact = BodyRenderer(), BodyRenderer()
    exact.plain = lambda _: False
    for message in messages(path)[:120]:
        if len(message.data) < 20_000:
            assert json.loads(quick.json(message)) == json.loads(exact.json(message)), message.name


def test_secrets_are_withheld_by_all_but_show_secrets() -> None:
    found: list[Any] = [
        message for message in messages(CAPTURES / "sasl.pcap.gz") if message.name.startswith("SaslAuthenticateRequest")
    ]
    assert found
    for message in found:
        hidden, shown = (
            json.loads(BodyRenderer().json(message)),
            json.loads(BodyRenderer(show_secrets=True).json(message)),
        )
        assert hidden["AuthBytes"].startswith("withheld (")
        assert shown == to_jsonable(message.body())


def test_bare_tokens() -> None:
    token = next(message for message in messages(CAPTURES / "sasl-v0.pcap") if message.token)
    assert json.loads(BodyRenderer().json(token)) == {"AuthBytes": "withheld (35 bytes; --show-secrets)"}
    assert json.loads(BodyRenderer(True).json(token))["AuthBytes"].startswith("AGZpeHR1cmU")


@pytest.mark.parametrize(
    ("name", "plain"), [("HeartbeatRequest", True), ("SaslAuthenticateRequest", False), ("AlterConfigsRequest", False)]
)
def test_what_may_be_written_from_the_bytes_alone(name: str, plain: bool) -> None:
    definition = builtin().message(name)
    assert BodyRenderer().plain(definition) is plain
    assert BodyRenderer(show_secrets=True).plain(definition) is True
    assert BodyRenderer(inner=True).plain(definition) is False
    assert BodyRenderer(True, True).plain(definition) is False


def test_inner_formats_are_opened() -> None:
    message = next(each for each in messages(CAPTURES / "classic.pcap.gz") if each.name == "ProduceRequest v10")
    records = json.loads(BodyRenderer(inner=True).json(message))["TopicData"][0]["PartitionData"][0]["Records"]
    assert records[0]["Records"][0]["Value"]


def test_of_a_broken_body_what_could_be_read() -> None:
    message = next(each for each in messages(CAPTURES / "classic.pcap.gz") if each.name == "JoinGroupRequest v5")
    message.data, message.quality = message.data[:45], "truncated"
    found = json.loads(BodyRenderer().json(message))
    assert found["GroupId"] == "classic-billing"
    span = body_span(message, False)
    assert span is not None
    assert span.broken() is not None
    assert shown_span(message, False).end == 45


def test_no_body_is_null() -> None:
    message = messages(CAPTURES / "notkafka.pcap")[0]
    message.api, message.token = None, False
    assert BodyRenderer().json(message) == "null"
