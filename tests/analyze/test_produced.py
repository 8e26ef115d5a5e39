"""Batches of Produce requests as columns: each element's partition, records, codec, magic, and whose transaction."""

from __future__ import annotations

import pytest
from session.conftest import Traffic, block, request, response

from kwire.analyze.produced import Produced, produced
from kwire.records.build import build
from kwire.schema.keys import PRODUCE
from kwire.session.decoded import Decoded
from kwire.session.reader import Reader

PAIRS = [(b"k", b"v" * 50)] * 3
NOT_SAID = -1  # how many records a message set has is not in its beginning


def made_of(version: int, *sets: bytes) -> Produced:
    """A request with these, a partition each."""
    traffic = Traffic()
    tcp = traffic.connection()
    parts = [{"Index": at, "Records": records} for at, records in enumerate(sets)]
    body = {"Acks": -1, "TimeoutMs": 1000, "TopicData": [{"Name": "orders", "PartitionData": parts}]}
    tcp.send(request("Produce", version, body, 1))
    tcp.answer(response("Produce", version, {"Responses": []}, 1))
    reader = Reader("made.pcap")
    (batch,) = [*reader.feed(block(traffic.packets, 1)), *reader.finish()]
    (number,) = (at for at, kind in enumerate(batch.kinds) if kind is not None and kind.key == PRODUCE)
    return produced(Decoded(batch), number)


@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("magic", [0, 1])
def test_a_message_set_does_not_say_how_many_records_it_has(magic: int, compression: str) -> None:
    records = build(PAIRS, magic=magic, compression=compression)
    made = made_of(2, records)
    assert (made.names, made.partition.tolist(), made.size.tolist()) == (["orders"], [0], [len(records)])
    assert made.records.tolist() == [NOT_SAID]
    assert (made.magic.tolist(), made.codec.tolist()) == ([magic], [int(compression == "gzip")])
    assert made.transactional.tolist() == [0]
    assert made.bytes_of(0) == records


def test_a_batch_does() -> None:
    plain, packed = build(PAIRS), build(PAIRS[:2], compression="gzip")
    made = made_of(9, plain, packed, b"")
    assert made.partition.tolist() == [0, 1, 2]
    assert made.records.tolist() == [3, 2, NOT_SAID]
    assert (made.magic.tolist(), made.codec.tolist()) == ([2, 2, -1], [0, 1, 0])
    assert [made.bytes_of(at) for at in range(3)] == [plain, packed, b""]


def test_a_transactional_batch() -> None:
    bits = bytearray(build(PAIRS))
    bits[22] |= 16
    made = made_of(9, build(PAIRS), bytes(bits))
    assert made.transactional.tolist() == [0, 1]
