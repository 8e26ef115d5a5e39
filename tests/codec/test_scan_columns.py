"""Walking over thousands of like messages at once says what the scanner says of each, whole ones and damaged ones."""

from __future__ import annotations

import random
from functools import cache
from struct import error as StructError
from typing import Any

import numpy as np
import pytest
from vectors import damaged, names, vectors

import kwire
from kwire.codec import scan_columns as module
from kwire.codec.library import builtin_library
from kwire.codec.plan import Plan
from kwire.codec.scan_code import Scan, scanner
from kwire.codec.scan_columns import scan_columns
from kwire.wire.columns import Columns

Said = list[tuple[bool, int, int]]  # of each message: whether it ends where it should, its first error, how many


@cache
def _scan(name: str, version: int) -> tuple[Plan, Scan]:
    plan = builtin_library().plan(name, version)
    return plan, scanner(plan)


def one_by_one(name: str, version: int, messages: list[bytes]) -> Said:
    out = []
    for message in messages:
        errors: list[int] = []
        try:
            ok = _scan(name, version)[1](message, 0, errors) == len(message)
        except (IndexError, ValueError, StructError):
            ok = False
        out.append((ok, errors[0] if errors else 0, len(errors)))
    return out


def at_once(name: str, version: int, messages: list[bytes], few: int = 0) -> Said:
    """The messages lie behind one another, with bytes between them that belong to something else."""
    buffer, starts = b"\xff\x01", []
    for message in messages:
        starts.append(len(buffer))
        buffer += message + b"\x80\x00\xff"
    begin = np.array(starts, np.int64)
    ends = begin + np.array([len(message) for message in messages], np.int64)
    plan, scan = _scan(name, version)
    found = scan_columns(plan, scan, buffer, Columns(buffer), begin, ends, few)
    return list(zip(found.ok.tolist(), found.first.tolist(), found.errors.tolist(), strict=True))


def agreed(said: Said) -> Said:
    """What must agree: of a message that is not well-formed nobody reads the errors."""
    return [entry if entry[0] else (False, 0, 0) for entry in said]


@pytest.mark.parametrize("name", names())
def test_vectors_in_groups(name: str) -> None:
    for version, messages in vectors()[name].items():
        many = messages * 3
        expected = one_by_one(name, version, many)
        assert all(ok for ok, _, _ in expected)
        assert at_once(name, version, many) == expected, version


@pytest.mark.parametrize("name", names())
def test_damaged_vectors_among_whole_ones(name: str) -> None:
    rng = random.Random(name)
    for version, messages in vectors()[name].items():
        many = [damaged(message, rng) if rng.random() < 0.6 else message for message in messages * 4]
        assert agreed(at_once(name, version, many)) == agreed(one_by_one(name, version, many)), version


def test_most_vectors_are_walked_over_together() -> None:
    alone = total = 0

    def counted(name: str, version: int) -> Scan:
        def scan(data: bytes, pos: int, errors: list[int]) -> int:
            nonlocal alone
            alone += 1
            return _scan(name, version)[1](data, pos, errors)

        return scan

    for name, version in (("MetadataResponse", 12), ("FetchRequest", 12), ("HeartbeatResponse", 3)):
        messages = [message for message in vectors()[name][version] for _ in range(20)]
        buffer = b"".join(messages)
        sizes = np.array([len(message) for message in messages])
        ends = np.cumsum(sizes)
        total += len(messages)
        plan = _scan(name, version)[0]
        assert scan_columns(plan, counted(name, version), buffer, Columns(buffer), ends - sizes, ends, 0).ok.all()
    assert 0 < alone < total / 2


@pytest.mark.parametrize(
    ("name", "version", "message", "said"),
    [
        ("HeartbeatResponse", 4, {}, (True, 0, 0)),
        ("HeartbeatResponse", 4, {"ErrorCode": 25}, (True, 25, 1)),
        ("HeartbeatResponse", 4, {"ErrorCode": -1}, (True, -1, 1)),
        ("HeartbeatResponse", 4, {"ErrorCode": 25, "_tagged": {7: b"x"}}, (True, 25, 1)),
        ("MetadataResponse", 12, {"Topics": [{"Name": "a", "ErrorCode": 3, "Partitions": [{"ErrorCode": 5}]}]},
         (True, 3, 2)),
        ("MetadataResponse", 12, {"Topics": [{"Name": "t" * 200, "ErrorCode": 3}] * 20}, (True, 3, 20)),
        ("MetadataResponse", 12, {"ClusterId": "c" * 20_000}, (True, 0, 0)),
        ("MetadataResponse", 1, {"Topics": [{"Name": "a", "ErrorCode": 3}] * 2}, (True, 3, 2)),
        ("ConsumerGroupHeartbeatResponse", 1, {"ErrorCode": 110, "Assignment": None}, (True, 110, 1)),
        ("ConsumerGroupHeartbeatResponse", 1, {"Assignment": {"TopicPartitions": []}}, (True, 0, 0)),
    ],
)  # fmt: skip
def test_each_kind_of_message_among_others(name: str, version: int, message: dict[str, Any], said: Any) -> None:
    plain = kwire.encode(name, version, {})
    data = kwire.encode(name, version, message)
    assert (
        at_once(name, version, [plain] * 9 + [data] + [plain] * 9) == [(True, 0, 0)] * 9 + [said] + [(True, 0, 0)] * 9
    )


@pytest.mark.parametrize(
    "data",
    ["", "00", "0000", "000300000001", "0001610000000100016d00", "ffff0000000100016d", "0001610000000180006d"],
    ids=["nothing", "one byte", "two", "cut", "a byte too many", "null that must not be", "a length below null"],
)  # fmt: skip
def test_broken_messages_among_whole_ones(data: str) -> None:
    plain = kwire.encode("HeartbeatRequest", 0, {"GroupId": "a", "GenerationId": 1, "MemberId": "m"})
    messages = [plain, bytes.fromhex(data), plain]
    expected = [(True, 0, 0), (False, 0, 0), (True, 0, 0)]
    assert agreed(at_once("HeartbeatRequest", 0, messages)) == expected == one_by_one("HeartbeatRequest", 0, messages)


def test_lengths_that_lie_do_not_loop() -> None:
    plain = kwire.encode("DescribeGroupsRequest", 0, {"Groups": ["a", "b"]})
    huge = bytes.fromhex("7fffffff") + bytes(40)
    assert at_once("DescribeGroupsRequest", 0, [plain, huge] * 20) == [(True, 0, 0), (False, 0, 0)] * 20


def test_no_messages_at_all() -> None:
    assert at_once("HeartbeatRequest", 4, []) == []


def test_a_few_are_left_to_the_scanner(monkeypatch: pytest.MonkeyPatch) -> None:
    messages = [kwire.encode("HeartbeatResponse", 4, {"ErrorCode": 25})] * 47
    monkeypatch.setattr(module, "ColumnWalk", None)
    assert at_once("HeartbeatResponse", 4, messages, 47) == [(True, 25, 1)] * 47


def test_what_is_said_alike_is_scanned_once() -> None:
    plan, scan = _scan("HeartbeatResponse", 4)
    message, calls = kwire.encode("HeartbeatResponse", 4, {"ErrorCode": 27}), list[bytes]()

    def counting(data: bytes, at: int, errors: list[int]) -> int:
        calls.append(data)
        return scan(data, at, errors)

    starts = np.arange(3) * len(message)
    buffer = 3 * message
    found = scan_columns(plan, counting, buffer, Columns(buffer), starts, starts + len(message), few=10)
    assert found.ok.tolist() == [True] * 3
    assert (found.first.tolist(), len(calls)) == ([27, 27, 27], 1)
