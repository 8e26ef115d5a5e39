"""Clients that columns and exchanges one by one must count alike."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.codec.example import BATCH
from kwire.records.build import build as batch_of

Row = dict[str, Any]
PAIR = (b"k", b"value")


def produced(*partitions: tuple[int, bytes | None], name: str = "t") -> Row:
    data = [{"Index": number, "Records": records} for number, records in partitions]
    return {"Acks": -1, "TopicData": [{"Name": name, "PartitionData": data}]}


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_clients_say_what_they_produce_with(compression: str, made: Any) -> None:
    records = batch_of([PAIR], compression=compression)
    old = batch_of([PAIR], magic=1, compression="snappy")
    found = made(
        "Produce", 9, (produced((0, records), (1, None)), {}), (produced((0, BATCH), (2, old)), {}),
        (produced((0, records), (1, BATCH[:20])), {}),
    )  # fmt: skip
    (row,) = found["clients"]
    assert row["compressions"] == [compression, "none", "snappy"]


def test_clients_are_counted_by_connection_and_name(traffic: Any, ways: Any) -> None:
    for port, count in ((51522, 30), (51600, 20)):
        tcp = traffic.connection(port)
        software = {"ClientSoftwareName": f"lib-{port}", "ClientSoftwareVersion": "1"}
        tcp.send(traffic.request("ApiVersions", 3, software)).answer(traffic.response("ApiVersions", 3, {}))
        for ident in range(count):
            name = (b"c", b"d\xff", b"")[ident % 3]
            tcp.send(traffic.request("Heartbeat", ident % 2, {"GroupId": "g"}, ident, name))
            tcp.answer(traffic.response("Heartbeat", ident % 2, {"ErrorCode": 27 * (ident % 7 == 0)}, ident))
        tcp.close()
    found = ways.both(traffic.save(traffic.folder / "made.pcap"))["clients"]
    assert ways.taken > 40
    assert [(row["client_id"], row["software"], row["exchanges"], row["errors"]) for row in found] == [
        ("", "lib-51522", 10, 1), ("", "lib-51600", 6, 1), ("c", "lib-51522", 11, 2), ("c", "lib-51600", 8, 1),
        ("d\ufffd", "lib-51522", 10, 2), ("d\ufffd", "lib-51600", 7, 1),
    ]  # fmt: skip
