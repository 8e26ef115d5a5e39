"""Bodies read as columns, thousands at once, and one by one give the same rows of every table, over all captures and
what is rare, made by hand."""

# mypy: disable-error-code="misc"

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from kwire.capture.source import Source
from kwire.codec.example import BATCH
from kwire.codec.library import builtin_library
from kwire.codec.thresholds import NEVER, TOGETHER
from kwire.session.reader import Settings
from kwire.tables.build import Builder, read_into, tables_of

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"
FILES = sorted(CAPTURES.glob("*.pcap*"))
each = pytest.mark.parametrize("path", FILES, ids=[path.name.split(".")[0] for path in FILES])
Row = dict[str, Any]
IDENT = UUID(int=7 << 64 | 5)


@each
def test_captures(path: Path, ways: Any) -> None:
    ways.both(path)
    assert (ways.taken > 0) == (path.name not in ("notkafka.pcap", "tls.pcap", "sasl-v0.pcap"))


@each
def test_captures_that_are_read_piece_by_piece(path: Path, ways: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kwire.capture.files.Source", partial(Source, window=6000))
    ways.both(path)


@each
def test_captures_with_batches_that_are_walked(path: Path, ways: Any) -> None:
    ways.thresholds = replace(TOGETHER, chains=NEVER)
    ways.both(path, ["partitions", "batches"])


def test_a_connection_on_which_little_is_said(traffic: Any, ways: Any) -> None:
    """What is read at once lasts longer than a request waits: its answer is there all the same."""
    tcp = traffic.connection()
    for ident in range(40):
        tcp.send(traffic.request("Heartbeat", 4, {"GroupId": "g"}, ident))
        tcp.answer(traffic.response("Heartbeat", 4, {}, ident))
    found = ways.both(traffic.save(traffic.folder / "made.pcap", 30_000_000_000))
    assert {row["outcome"] for row in found["exchanges"]} == {"ok"}
    assert len(found["group_events"]) == 40


def whole(api: str, version: int, asked: Row, answer: Row) -> tuple[str, int, bytes, bytes]:
    codecs = [builtin_library().codec(f"{api}{side}", version) for side in ("Request", "Response")]
    return api, version, codecs[0].encode(asked), codecs[1].encode(answer)


NAMED: Row = {"Name": "t"}
PRODUCED = [{"Index": 0, "Records": BATCH * 2}, {"Index": 1, "Records": None}]
STORED = [{"Index": 0, "BaseOffset": 5}, {"Index": 1, "ErrorCode": 3}]
ASKED = {"Partitions": [{"Partition": 0, "FetchOffset": 5}, {"Partition": 1}]}
FETCHED = {"Partitions": [
    {"PartitionIndex": 1, "HighWatermark": 7, "Records": BATCH}, {"PartitionIndex": 0, "ErrorCode": 1, "Records": b""},
]}  # fmt: skip
KINDS = [
    whole("Produce", 9, {"Acks": -1, "TopicData": [NAMED | {"PartitionData": PRODUCED}]}, {
        "Responses": [NAMED | {"PartitionResponses": STORED}]}),
    *(whole("Fetch", version, {"Topics": [topic | ASKED]}, {"Responses": [topic | FETCHED]})
      for version, topic in ((11, {"Topic": "t"}), (16, {"TopicId": IDENT}))),
    whole("Metadata", 12, {"Topics": None}, {"Topics": [NAMED | {"TopicId": IDENT}, {"Name": None}]}),
    whole("OffsetFetch", 9, {"Groups": [{"GroupId": "g", "Topics": [NAMED | {"PartitionIndexes": [0, 1]}]}]}, {
        "Groups": [{"GroupId": "g", "Topics": [NAMED | {"Partitions": [{"PartitionIndex": 1}]}]}]}),
    whole("JoinGroup", 5, {"GroupId": "g"}, {"MemberId": "m", "Members": [{"MemberId": "m", "Metadata": b""}]}),
    whole("LeaveGroup", 4, {"GroupId": "g", "Members": [{"MemberId": "m"}]}, {"Members": [{"MemberId": "m"}]}),
    whole("ConsumerGroupHeartbeat", 0, {"GroupId": "g", "MemberId": "m"}, {"Assignment": {"TopicPartitions": []}}),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_bodies_with_bytes_changed_at_random(seed: int, traffic: Any, ways: Any) -> None:
    dice = random.Random(seed)

    def changed(body: bytes, api: str) -> bytes:
        data = bytearray(body)
        if api != "Metadata" and dice.random() < 0.1:  # an id of two names has the one that is read last
            data[dice.randrange(len(data))] = dice.choice((0, 1, 2, 127, 128, 255, dice.randrange(256)))
        return bytes(data)

    for port in range(60):
        tcp = traffic.connection(50000 + port)
        for ident in range(10):
            api, version, asked, answer = dice.choice(KINDS)
            tcp.send(traffic.request(api, version, changed(asked, api), ident))
            tcp.answer(traffic.response(api, version, changed(answer, api), ident))
    ways.both(traffic.save(traffic.folder / "made.pcap"))
    assert ways.taken > 100


@pytest.mark.slow
@pytest.mark.usefixtures("ways")
@pytest.mark.parametrize("table", ["partitions", "batches", "group_events", "clients"])
def test_each_column_is_made_alone(table: str) -> None:
    path = CAPTURES / "classic.pcap.gz"
    whole = tables_of([path], [table])[table]
    assert whole.num_rows > 3
    for name in whole.column_names:
        found: list[pa.RecordBatch] = []
        builder = Builder([table], lambda _, batch, found=found: found.append(batch), columns=[name])
        builder.finish(read_into(builder, [path], Settings()))
        only = pa.Table.from_batches(found)
        assert only.schema.names == [name]
        assert sorted(map(repr, only.to_pylist())) == sorted(map(repr, whole.select([name]).to_pylist())), name
