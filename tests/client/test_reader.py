"""Reading: positions, records from the middle of a batch, answers that lack or add partitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kwire.client.address import Address
from kwire.client.bodies import FetchAnswer
from kwire.client.bootstrap import PartitionView, View
from kwire.client.cluster import ClusterClient
from kwire.client.failure import Refusal
from kwire.client.reader import PartitionReader
from kwire.client.topology import GroupPlace
from kwire.errors import Failure, KwireError
from kwire.records.build import build
from kwire.schema.model import Versions

APIS = ((1, 4, 12), (2, 1, 5))
ROW = {"PartitionIndex": 0, "ErrorCode": 0, "HighWatermark": 9, "Records": b"", "AbortedTransactions": None}


def _reader(address: Address, leader: int = 1) -> PartitionReader:
    place = GroupPlace([address], "g", "t", ClusterClient())
    row = PartitionView(0, 0, leader, (1,), (1,), ())
    place.view = View(None, None, {1: address}, 0, place.ids()["t"], (row,))
    place.coordinator = place.entry = address
    reader = PartitionReader(place, earliest=True)
    reader.assign([("t", 0)])
    return reader


def test_records_before_the_position_are_left_out() -> None:
    reader = _reader(Address("b", 1))
    reader.positions = {("t", 0): 6}
    data = build([(None, b"%d" % n) for n in range(4)], base_offset=4)
    polled = reader.read(("t", 0), FetchAnswer(0, 8, data))
    assert [(one.topic, one.partition, one.record.offset, one.record.value) for one in polled] == [
        ("t", 0, 6, b"2"),
        ("t", 0, 7, b"3"),
    ]
    assert reader.positions == {("t", 0): 8}


def test_control_batches_are_passed_over() -> None:
    reader = _reader(Address("b", 1))
    reader.positions = {("t", 0): 0}
    data = build([(b"\0\0\0\0", b"\0\0\0\0\0\0")], is_control=True, is_transactional=True, producer_id=1)
    assert reader.read(("t", 0), FetchAnswer(0, 1, data)) == []
    assert reader.positions == {("t", 0): 1}


def test_an_assignment_keeps_the_positions_that_stay() -> None:
    reader = _reader(Address("b", 1))
    reader.positions = {("t", 0): 5, ("t", 1): 6}
    reader.assign([("t", 1), ("t", 2)])
    assert reader.positions == {("t", 1): 6}


def test_partitions_that_were_not_asked_for_are_left_out(fake: Callable[..., Any], replies: Any) -> None:
    topics = [{"Topic": "t", "Partitions": [ROW, ROW | {"PartitionIndex": 7}]}, {"Topic": "u", "Partitions": [ROW]}]
    server = fake([replies.versions(*APIS), replies.answer({"Responses": topics})])
    reader = _reader(server.address)
    reader.positions = {("t", 0): 5}
    assert reader.fetch(server.address, [("t", 0)], 0) == {("t", 0): FetchAnswer(0, 9, b"")}
    reader.place.cluster.close()


def test_an_answer_without_the_partition(fake: Callable[..., Any], replies: Any) -> None:
    server = fake([replies.versions(*APIS), replies.answer({"Topics": []})])
    reader = _reader(server.address)
    with pytest.raises(KwireError, match=r"^the answer to ListOffsets v5 lacks t-0$"):
        reader.ends([("t", 0)], earliest=True)
    reader.place.cluster.close()


def test_an_error_of_one_partition(fake: Callable[..., Any], replies: Any) -> None:
    topics = [{"Topic": "t", "Partitions": [ROW | {"ErrorCode": 1}]}]
    server = fake([replies.versions(*APIS), replies.answer({"Responses": topics})])
    reader = _reader(server.address)
    reader.positions = {("t", 0): 5}
    with pytest.raises(Refusal, match=r"^Fetch v12: 1 OFFSET_OUT_OF_RANGE"):
        reader.fetch(server.address, [("t", 0)], 0)
    reader.place.cluster.close()


def test_a_partition_without_a_leader() -> None:
    reader = _reader(Address("b", 1), leader=-1)
    with pytest.raises(Failure, match=r"^t-0: no leader in metadata \(node -1\)$"):
        reader.ends([("t", 0)], earliest=False)


def test_versions_that_go_by_ids_are_not_spoken_without_them(fake: Callable[..., Any], replies: Any) -> None:
    body = {"Brokers": [], "Topics": [{"Name": "t", "Partitions": []}]}
    server = fake([replies.versions((3, 0, 9), (1, 0, 18)), replies.answer(body)])
    place = GroupPlace([server.address], "g", "t", ClusterClient())
    place.refresh(server.address)
    assert place.cluster.connect(server.address).offered == {3: Versions(0, 9), 1: Versions(0, 18)}
    assert place.cluster.version(server.address, "Fetch") == 12
    place.cluster.close()
