"""Rows of what the fast path read are those that exchanges give, row by row, over real captures and made ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kwire.codec import scan_columns
from kwire.session import bulk, conversation
from kwire.tables import fast
from kwire.tables.build import FAST, tables_of

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"
FILES = sorted(CAPTURES.glob("*.pcap*"))
each = pytest.mark.parametrize("path", FILES, ids=[path.name.split(".")[0] for path in FILES])
EXACT = [*sorted(FAST), "group_events"]  # with a table that needs bodies, all goes exchange by exchange


class Taken:
    """How many exchanges the fast path took."""

    pairs = 0


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Taken:
    """The fast path runs on all that it can, however little there is."""
    counted, made = Taken(), fast.exchange_batch

    def counting(batch: bulk.Batch) -> Any:
        counted.pairs += len(batch)
        return made(batch)

    monkeypatch.setattr(fast, "exchange_batch", counting)
    monkeypatch.setattr(bulk, "LEAST", 1)
    monkeypatch.setattr(conversation, "BULK_LEAST", 20)
    monkeypatch.setattr(scan_columns, "FEW", 1)
    return counted


def same(path: Path, taken: Taken) -> int:
    """Both ways give the same rows; how many exchanges the fast path took."""
    exact = tables_of([path], EXACT)
    assert taken.pairs == 0
    quick = tables_of([path], sorted(FAST))
    for name, table in quick.items():
        table.validate(full=True)
        assert sorted(map(json.dumps, table.to_pylist())) == sorted(map(json.dumps, exact[name].to_pylist())), name
    return taken.pairs


@each
def test_both_ways_give_the_same_rows(path: Path, taken: Taken) -> None:
    pairs = same(path, taken)
    assert (pairs > 0) == (path.name not in ("notkafka.pcap", "tls.pcap", "sasl-v0.pcap"))


def test_a_capture_of_many_pairs_is_nearly_all_fast(traffic: Any, taken: Taken) -> None:
    tcp = traffic.connection()
    for ident in range(200):
        tcp.send(traffic.request("Heartbeat", 4, {"GroupId": "g"}, ident))
        tcp.answer(traffic.response("Heartbeat", 4, {"ErrorCode": 27 if ident % 50 == 49 else 0}, ident))
    tcp.close()
    assert same(traffic.save(traffic.folder / "made.pcap"), taken) > 150


RESPONSES: dict[str, list[dict[str, Any]]] = {
    "no error": [{}],
    "one error": [{"ErrorCode": 27}],
    "several errors": [{"ErrorCode": 25}, {}, {"ErrorCode": 27}],
    "an error that nobody knows": [{"ErrorCode": -7}, {"ErrorCode": 32767}],
}


@pytest.mark.parametrize("what", RESPONSES)
def test_errors_have_their_names(what: str, traffic: Any, taken: Taken) -> None:
    tcp, answers = traffic.connection(), RESPONSES[what]
    for ident in range(60):
        tcp.send(traffic.request("Heartbeat", 4, {}, ident))
        tcp.answer(traffic.response("Heartbeat", 4, answers[ident % len(answers)], ident))
    tcp.close()
    path = traffic.save(traffic.folder / "made.pcap")
    assert same(path, taken) > 30
    found = tables_of([path], ["exchanges"])["exchanges"]
    codes = {body.get("ErrorCode") for body in answers}
    assert set(found["error_code"].to_pylist()) == codes
    assert set(found["outcome"].to_pylist()) == {"error" if code else "ok" for code in codes}


@pytest.mark.parametrize("client", [b"", b"\xff\xfe", "grüße".encode(), b"\x1b[31m"])
def test_client_ids_are_texts(client: bytes, traffic: Any, taken: Taken) -> None:
    tcp = traffic.connection()
    for ident in range(60):
        tcp.send(traffic.request("Heartbeat", 4, {}, ident, client if ident > 3 else b"c"))
        tcp.answer(traffic.response("Heartbeat", 4, {}, ident))
    tcp.close()
    path = traffic.save(traffic.folder / "made.pcap")
    assert same(path, taken) > 30
    found = tables_of([path], ["messages"])["messages"]["client_id"].to_pylist()
    assert set(found) == {"c", client.decode("utf-8", "replace")}


@pytest.mark.parametrize("ident", [0, -1, -(1 << 31), (1 << 31) - 40])
def test_correlation_ids_have_their_sign(ident: int, traffic: Any, taken: Taken) -> None:
    tcp = traffic.connection()
    for number in range(ident, ident + 30):
        tcp.send(traffic.request("Heartbeat", 4, {}, number)).answer(traffic.response("Heartbeat", 4, {}, number))
    tcp.close()
    path = traffic.save(traffic.folder / "made.pcap")
    assert same(path, taken) > 10
    found = tables_of([path], ["exchanges"])["exchanges"]["correlation_id"].to_pylist()
    assert sorted(found) == list(range(ident, ident + 30))
