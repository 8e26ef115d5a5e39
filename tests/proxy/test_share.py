"""ShareFetch and ShareAcknowledge of who does not lead, behind the proxy: the leader in answers has its port here."""

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

NOT_LEADER, UNKNOWN = 6, 3  # UNKNOWN_TOPIC_OR_PARTITION
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
    body = {"GroupId": "g", "MemberId": MEMBER, "ShareSessionEpoch": 0, "MaxWaitMs": 1000, "MinBytes": 1}
    return ask(sock, 78, 1, {**body, "MaxBytes": 1000, "MaxRecords": 10, "BatchSize": 10, "Topics": parts})


def acknowledge(sock: socket.socket, topic: UUID) -> dict[str, Any]:
    batches = [{"FirstOffset": 0, "LastOffset": 0, "AcknowledgeTypes": [1]}]
    parts = [{"TopicId": topic, "Partitions": [{"PartitionIndex": 0, "AcknowledgementBatches": batches}]}]
    return ask(sock, 79, 1, {"GroupId": "g", "MemberId": MEMBER, "ShareSessionEpoch": 1, "Topics": parts})


def told(sock: socket.socket, name: str) -> tuple[dict[int, tuple[str, int]], UUID, int]:
    """The brokers' addresses, and the topic's id and leader."""
    answer = ask(sock, 3, 12, {"Topics": [{"Name": name, "TopicId": UUID(int=0)}]})
    nodes = {each["NodeId"]: (each["Host"], each["Port"]) for each in answer["Brokers"]}
    (topic,) = answer["Topics"]
    return nodes, topic["TopicId"], topic["Partitions"][0]["LeaderId"]


def named(answer: dict[str, Any]) -> tuple[int, list[tuple[int, str, int]]]:
    """The error of the partition, and whom the answer names."""
    error = answer["Responses"][0]["Partitions"][0]["ErrorCode"]
    return error, [(each["NodeId"], each["Host"], each["Port"]) for each in answer["NodeEndpoints"]]


def test_answers_to_share_groups_name_local_addresses() -> None:
    with Broker(nodes=2, topics={"t": 1}) as broker, Proxy(broker.address) as proxy, ExitStack() as stack:

        def connect(host: str, port: int) -> socket.socket:
            return stack.enter_context(socket.create_connection((host, port), 60))

        host, _, port = proxy.address.rpartition(":")
        nodes, topic, leader = told(connect(host, int(port)), "t")
        (other,) = nodes.keys() - {leader}
        asks = connect(*nodes[other])
        assert named(fetch(asks, topic)) == (NOT_LEADER, [(leader, *nodes[leader])])

        # Brokers forget with the leadership what they handed out, and then name nobody: only in between they do.
        # That moment cannot be had on purpose: the embedded broker is made to say what a broker would say in it.
        assert named(acknowledge(asks, topic)) == (UNKNOWN, [])
        at, port = broker.node(leader).address.rpartition(":")[::2]
        part = {"PartitionIndex": 0, "ErrorCode": NOT_LEADER, "CurrentLeader": {"LeaderId": leader, "LeaderEpoch": 1}}
        moved = {
            "Responses": [{"TopicId": topic, "Partitions": [part]}],
            "NodeEndpoints": [{"NodeId": leader, "Host": at, "Port": int(port), "Rack": None}],
        }
        with broker.control("ShareAcknowledge", lambda _: moved):
            assert named(acknowledge(asks, topic)) == (NOT_LEADER, [(leader, *nodes[leader])])
