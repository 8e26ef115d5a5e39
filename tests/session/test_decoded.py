"""Bodies of a batch, a kind at a time: which exchanges are columns, and which are left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kwire.session import decoded
from kwire.session.batch import ExchangeBatch
from kwire.session.decoded import Decoded
from kwire.session.reading import Reading

TAGGED = {"Responses": [{"Name": "t", "PartitionResponses": [{"Index": 0, "CurrentLeader": {"LeaderId": 3}}]}]}
PLAIN = {"Responses": [{"Name": "t", "PartitionResponses": [{"Index": 0, "BaseOffset": 5}]}]}


def batch_of(traffic: Any, folder: Path, answers: list[Any], count: int = 60) -> ExchangeBatch:
    tcp = traffic.connection()
    asked = {"Acks": 1, "TopicData": [{"Name": "t", "PartitionData": [{"Index": 0, "Records": b""}]}]}
    for ident in range(count):
        tcp.send(traffic.request("Produce", 10, asked, ident))
        tcp.answer(traffic.response("Produce", 10, answers[ident % len(answers)], ident))
    (batch,) = Reading([traffic.save(folder / "made.pcap")]).batches()
    return batch


def test_bodies_stand_row_by_row_beside_their_exchanges(traffic: Any, tmp_path: Path) -> None:
    batch = batch_of(traffic, tmp_path, [PLAIN])
    bodies = Decoded(batch).of(0)
    assert bodies.rows.tolist() == list(range(len(batch)))
    assert len(bodies.asked) == len(bodies.answered) == len(batch) > 40
    assert bodies.asked.fields["Acks"].to_list(batch.buffer) == [1] * len(batch)
    assert bodies.left.tolist() == []


def test_tagged_fields_are_left(traffic: Any, tmp_path: Path) -> None:
    batch = batch_of(traffic, tmp_path, [PLAIN, TAGGED, PLAIN])
    bodies = Decoded(batch).of(0)
    tagged = [row for row, ident in enumerate(batch.correlation_id.tolist()) if ident % 3 == 1]
    assert bodies.left.tolist() == tagged
    assert sorted([*bodies.rows.tolist(), *tagged]) == list(range(len(batch)))
    assert len(bodies.asked) == len(bodies.answered) == len(bodies.rows)


def test_each_kind_is_decoded_once(traffic: Any, tmp_path: Path) -> None:
    found = Decoded(batch_of(traffic, tmp_path, [PLAIN]))
    assert found.of(0) is found.of(0)


def test_few_are_left(traffic: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoded, "FEW", 100)
    batch = batch_of(traffic, tmp_path, [PLAIN])
    bodies = Decoded(batch).of(0)
    assert (len(bodies.rows), len(bodies.asked)) == (0, 0)
    assert bodies.left.tolist() == list(range(len(batch)))
