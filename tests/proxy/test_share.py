"""ShareFetch of who does not lead, behind the proxy: the leader that the answer names has its port here."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from struct import pack
from typing import Any
from uuid import UUID

import kwire
from kwire.codec.library import builtin_library
from kwire.proxy.splice import body_start
from kwire.testing import Broker, Proxy

NOT_LEADER = 6
MEMBER = "AAAAAAAAAAAAAAAAAAAAAQ"


def exactly(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = sock.recv(size - len(data))
        assert more
        data += more
    return data


def ask(sock: socket.socket, key: int, version: int, body: dict[str, Any]) -> dict[str, Any]:
    registry = builtin_library().registry
    asked, answered = registry.api(key).messages
    frame = pack(">hhih", key, version, 7, -1) + b"\0" + kwire.encode(asked.name, version, body)
    sock.sendall(pack(">i", len(frame)) + frame)
    size = exactly(sock, 4)
    data = size + exactly(sock, int.from_bytes(size))
    return builtin_library().codec(answered.name, version).decode(data[body_start(data, key, version) :])


def fetch(sock: socket.socket, topic: UUID) -> dict[str, Any]:
    parts = [{"TopicId": topic, "Partitions": [{"PartitionIndex": 0}]}]
    body = {"GroupId": "g", "MemberId": MEMBER, "ShareSessionEpoch": 0, "MaxWaitMs": 0, "MinBytes": 0}
    return ask(sock, 78, 1, {**body, "MaxBytes": 1000, "MaxRecords": 10, "BatchSize": 10, "Topics": parts})


def test_answers_to_share_groups_name_local_addresses() -> None:
    with Broker(nodes=2, topics={"t": 1}) as broker, Proxy(broker.address) as proxy, ExitStack() as stack:

        def connect(host: str, port: int) -> socket.socket:
            return stack.enter_context(socket.create_connection((host, port), 60))

        def named(answer: dict[str, Any]) -> list[tuple[int, str, int]]:
            return [(each["NodeId"], each["Host"], each["Port"]) for each in answer["NodeEndpoints"]]

        host, _, port = proxy.address.rpartition(":")
        told = ask(connect(host, int(port)), 3, 12, {"Topics": [{"Name": "t", "TopicId": UUID(int=0)}]})
        nodes = {each["NodeId"]: (each["Host"], each["Port"]) for each in told["Brokers"]}
        topic, leader = told["Topics"][0]["TopicId"], told["Topics"][0]["Partitions"][0]["LeaderId"]
        (other,) = nodes.keys() - {leader}

        answer = fetch(connect(*nodes[other]), topic)
        assert answer["Responses"][0]["Partitions"][0]["ErrorCode"] == NOT_LEADER
        assert named(answer) == [(leader, *nodes[leader])]
