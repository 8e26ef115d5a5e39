"""Names beside topic ids: in fetches, heartbeats, lists of ids; wherever in the capture the name is told."""

# mypy: disable-error-code="index, union-attr"

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import kwire
from kwire.codec.span import Span
from kwire.render.topic_names import named
from kwire.session.reading import Reading
from kwire.wire import uuids

FOLDER = Path(__file__).parents[2] / "fixtures" / "captures"
ONE, TWO = UUID(int=7 << 64), UUID(int=9 << 64)
KNOWN = {ONE: "orders", TWO: "payments"}


def name(ident: UUID) -> str:
    return KNOWN.get(ident, uuids.to_text(ident))


def texts(span: Span) -> list[tuple[str, str | None]]:
    return [(path, part.text) for path, part in named(span, name).walk() if part.name.startswith(("TopicId", "["))
            and part.type == "uuid"]  # fmt: skip


@pytest.mark.parametrize(("ident", "said"), [(ONE, "orders"), (UUID(int=8 << 64), None), (UUID(int=0), None)])
def test_a_known_id_has_its_name(ident: UUID, said: str | None) -> None:
    body = {"Topics": [{"TopicId": ident, "Partitions": []}]}
    span = kwire.annotate("FetchRequest", 16, kwire.encode("FetchRequest", 16, body))
    assert texts(span) == [("Topics[0].TopicId", said)]


def test_where_the_struct_says_the_name_it_is_not_repeated() -> None:
    body = {"Topics": [{"Name": "orders", "TopicId": ONE, "ErrorCode": 0, "Partitions": []}]}
    span = kwire.annotate("MetadataResponse", 12, kwire.encode("MetadataResponse", 12, body))
    assert named(span, name) == span


@pytest.mark.parametrize("capture", ["consumer848.pcap", "share.pcap", "txn.pcap.gz"])
@pytest.mark.parametrize("command", ["read", "decode"])
def test_ids_have_their_names_in_diagrams(command: str, capture: str, kwire: Any) -> None:
    path = str(FOLDER / capture)
    with_ids = [
        exchange for exchange in Reading([path], tracking=True).exchanges()
        if exchange.api in ("Fetch", "ShareFetch") and exchange.about.topics and exchange.request.body()["Topics"]
    ]  # fmt: skip
    exchange = with_ids[0]
    if command == "read":
        text = kwire("read", path, "-x", "--id", str(exchange.correlation_id), columns=200).text
    else:
        text = kwire("decode", path, "--frame", str(exchange.request.packet), columns=200).text
    for topic in exchange.about.topics:
        assert re.search(rf"TopicId +uuid · 16B +\S{{22}} · {re.escape(topic)} ", text)
        assert f'Topics[0] · "{topic}"' in text
