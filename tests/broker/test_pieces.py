"""A large answer in steps is the same, byte for byte, and no step is large."""

# mypy: disable-error-code="func-returns-value"

from __future__ import annotations

from typing import Any

import pytest

from kwire.broker import pieces
from kwire.broker.context import BrokerSettings, Peer
from kwire.broker.pieces import AT_ONCE, in_steps, layout_of, weight
from kwire.codec.library import builtin_library


def rows(partitions: int) -> list[dict[str, Any]]:
    return [{"PartitionIndex": n, "ErrorCode": 0, "HighWatermark": 5, "Records": b"x"} for n in range(partitions)]


def written(version: int, body: dict[str, Any]) -> tuple[bytes, int]:
    layout = layout_of("Fetch", version)
    assert layout is not None
    work, steps = in_steps(layout, body), 1
    while True:
        try:
            next(work)
            steps += 1
        except StopIteration as end:
            return end.value, steps


@pytest.mark.parametrize("version", [0, 4, 11, 12, 13, 17])
@pytest.mark.parametrize("shape", [[3, 0, 2], [5_000], [5] * 1_000, [AT_ONCE, AT_ONCE + 1, 1]])
def test_the_bytes_are_those_of_the_codec(version: int, shape: list[int]) -> None:
    topics = [{"Topic": f"t{n}", "Partitions": rows(size)} for n, size in enumerate(shape)]
    body = {"ThrottleTimeMs": 7, "SessionId": 0, "Responses": topics}
    body["NodeEndpoints"] = [{"NodeId": 1, "Host": "h", "Port": 9}] if version >= 16 else []
    codec = builtin_library().codec("FetchResponse", version)
    whole = codec.encode_fitted(body)
    data, steps = written(version, body)
    assert data == whole
    assert steps >= weight(body) // (2 * AT_ONCE)


def test_a_null_array_stays_null() -> None:
    layout = layout_of("DescribeConfigs", 4)
    assert layout is not None
    assert layout.length(-1) == b"\0"
    old = layout_of("DescribeConfigs", 1)
    assert old is not None
    assert old.length(-1) == b"\xff\xff\xff\xff"


def test_a_fetch_that_waited_on_many_partitions_is_written_in_steps(
    make_socketless: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    socketless = make_socketless(BrokerSettings(topics=(("orders", 2_000),)))
    sizes: list[int] = []
    real = pieces._written
    monkeypatch.setattr(
        pieces, "_written", lambda codec, body: (sizes.append(len(real(codec, body))), real(codec, body))[1]
    )
    parts = [{"Partition": n, "FetchOffset": 0, "PartitionMaxBytes": 1 << 20} for n in range(2_000)]
    body = {
        "MaxWaitMs": 60_000,
        "MinBytes": 1,
        "MaxBytes": 1 << 20,
        "Topics": [{"Topic": "orders", "Partitions": parts}],
    }
    calls: list[Any] = []
    peer = Peer(2, "127.0.0.1", 4, 1)
    peer.soon = calls.append
    replies = socketless.raw(socketless.frame("Fetch", 12, body), peer)
    assert not replies
    socketless.produce("orders", b"one", partition=1_999)
    while calls:
        for _ in calls.pop(0)() or ():
            socketless.steps += 1
    assert len(socketless.body("Fetch", 12, replies[0])["Responses"][0]["Partitions"]) == 2_000
    assert len(sizes) > 2_000
    assert max(sizes) < 200  # bytes that are written in one go
