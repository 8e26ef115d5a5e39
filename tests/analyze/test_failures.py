"""Errors in answers, one by one: which, on what, in whose words; and how often each met whom."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

import kwire
from kwire.analyze import failures as module
from kwire.analyze.failures import AnsweredError, Failures, failures_of
from kwire.analyze.measures import PENDING
from kwire.session.about import About
from kwire.session.api_versions import Kinds
from kwire.session.exchange import Message
from kwire.session.pairing import LOST
from kwire.session.reading import Reading

FOLDER = Path(__file__).parents[2] / "fixtures" / "captures"
ORDERS = UUID(int=7 << 64)
KINDS = Kinds()
NAMES = {ORDERS: "orders"}


def exchange(api: str, version: int, body: dict[str, Any], key: int, capture: str = "a.pcap", time: int = 0) -> Any:
    """An answered request, of which only the answer is there."""
    places = SimpleNamespace(of=lambda number: (capture, number), several=False)
    topics = SimpleNamespace(name=lambda ident: NAMES.get(ident, str(ident)))
    connection = SimpleNamespace(places=places, topics=topics, capture=capture, name="c>b#1")
    data = kwire.encode(f"{api}Response", version, body)
    response = Message(
        connection, "response", 0, 0, data, len(data), time, time, 9, 9, "ok", None, (),  # type: ignore[arg-type]
        KINDS.of(key, version), 1, "cart-1", 0, (1,),
    )  # fmt: skip
    about = About(topics={"asked": [0]})
    return SimpleNamespace(response=response, connection=connection, about=about, api=api, client_id="cart-1",
                           silent=False, ending=None, first=response)  # fmt: skip


PRODUCE = {"Responses": [
    {"Name": "orders", "PartitionResponses": [
        {"Index": 0, "ErrorCode": 0},
        {"Index": 3, "ErrorCode": 87, "ErrorMessage": "One or more records have been rejected", "RecordErrors": [
            {"BatchIndex": 2, "BatchIndexErrorMessage": "no key"}, {"BatchIndex": 5, "BatchIndexErrorMessage": None},
        ]},
    ]},
    {"Name": "payments", "PartitionResponses": [{"Index": 1, "ErrorCode": 6}]},
]}  # fmt: skip
CASES = [
    ("Produce", 9, 0, PRODUCE, [
        AnsweredError(87, "orders-3", "One or more records have been rejected", ((2, "no key"), (5, ""))),
        AnsweredError(6, "payments-1"),
    ]),
    ("CreateTopics", 7, 19, {"Topics": [{"Name": "orders", "ErrorCode": 36, "ErrorMessage": "Topic 'orders' exists."}]},
     [AnsweredError(36, "orders", "Topic 'orders' exists.")]),
    ("Fetch", 16, 1, {"Responses": [{"TopicId": ORDERS, "Partitions": [{"PartitionIndex": 4, "ErrorCode": 1}]}]},
     [AnsweredError(1, "orders-4")]),
    ("FindCoordinator", 6, 10, {"Coordinators": [
        {"Key": "billing", "NodeId": -1, "ErrorCode": 15, "ErrorMessage": "not yet"}]},
     [AnsweredError(15, "billing", "not yet")]),
    ("IncrementalAlterConfigs", 1, 44, {"Responses": [
        {"ErrorCode": 40, "ErrorMessage": "bad", "ResourceType": 4, "ResourceName": "1"},
        {"ErrorCode": 40, "ErrorMessage": "", "ResourceType": 2, "ResourceName": "orders"}]},
     [AnsweredError(40, "broker 1", "bad"), AnsweredError(40, "orders")]),
    ("ShareAcknowledge", 1, 79, {"ErrorCode": 122, "ErrorMessage": "epoch", "Responses": []},
     [AnsweredError(122, "", "epoch")]),
    ("JoinGroup", 9, 11, {"ErrorCode": 79, "MemberId": "m-1", "ProtocolName": None}, [AnsweredError(79, "")]),
    ("LeaveGroup", 4, 13, {"Members": [{"MemberId": "m-1", "ErrorCode": 25}]}, [AnsweredError(25, "m-1")]),
]  # fmt: skip


@pytest.mark.parametrize(("api", "version", "key", "body", "found"), CASES, ids=[case[0] for case in CASES])
def test_an_error_belongs_to_the_element_that_carries_it(
    api: str, version: int, key: int, body: dict[str, Any], found: list[AnsweredError]
) -> None:
    assert [one[:4] for one in failures_of(exchange(api, version, body, key))] == [one[:4] for one in found]


ABOUTS = [
    ("Produce", 9, 0, PRODUCE, [{"topic": "orders", "partition": 3}, {"topic": "payments", "partition": 1}]),
    ("LeaveGroup", 4, 13, {"Members": [{"MemberId": "m-1", "ErrorCode": 25}]}, [{"member": "m-1"}]),
    ("IncrementalAlterConfigs", 1, 44, {"Responses": [
        {"ErrorCode": 40, "ErrorMessage": "", "ResourceType": 4, "ResourceName": "1"},
        {"ErrorCode": 40, "ErrorMessage": "", "ResourceType": 2, "ResourceName": "orders"}]},
     [{"broker": "1"}, {"topic": "orders"}]),
    ("DescribeGroups", 5, 15, {"Groups": [{"GroupId": "a", "ErrorCode": 0}, {"GroupId": "b", "ErrorCode": 30}]},
     [{"group": "b"}]),
    ("JoinGroup", 9, 11, {"ErrorCode": 79, "MemberId": "m-1", "ProtocolName": None}, [{}]),
]  # fmt: skip


@pytest.mark.parametrize(("api", "version", "key", "body", "abouts"), ABOUTS, ids=[case[0] for case in ABOUTS])
def test_the_element_is_told_by_names(
    api: str, version: int, key: int, body: dict[str, Any], abouts: list[dict[str, str | int]]
) -> None:
    assert [dict(one.about) for one in failures_of(exchange(api, version, body, key))] == abouts


def test_an_answer_without_errors_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    one = exchange("Produce", 9, PRODUCE, 0)
    one.response.errors = ()
    monkeypatch.setattr(Message, "body", None)
    assert list(failures_of(one)) == []


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.pcap*")), ids=lambda path: path.name.split(".")[0])
def test_of_every_answer_they_are_as_many_as_its_error_codes(path: Path) -> None:
    for one in Reading([path]).exchanges():
        errors = one.response.errors if one.response is not None and one.response.quality == "ok" else ()
        assert tuple(each.code for each in failures_of(one)) == errors


def test_they_are_counted_by_whom_and_on_what() -> None:
    failures = Failures()
    for time, packet in ((30, 1), (10, 2), (20, 3)):
        one = exchange("Produce", 9, PRODUCE, 0, time=time)
        one.response.packet = packet
        failures.add(one)
    other = exchange("JoinGroup", 9, {"ErrorCode": 79, "MemberId": "m", "ProtocolName": None}, 11)
    failures.add(other)
    rows = failures.rows()
    assert [(row["count"], row["error"], row["client_id"], row["subject"], row["words"]) for row in rows] == [
        (3, "INVALID_RECORD", "cart-1", "orders-3", "One or more records have been rejected; record 2: no key"),
        (3, "NOT_LEADER_OR_FOLLOWER", "cart-1", "payments-1", None),
        (1, "MEMBER_ID_REQUIRED", "cart-1", "asked", None),
    ]  # fmt: skip
    assert (rows[0]["first"]["frame"], rows[0]["last"]["frame"]) == (2, 1)


@pytest.mark.parametrize(("partitions", "told"), [(3, 3), (4, 1), (60, 1)])
def test_many_partitions_of_a_topic_are_one_row(partitions: int, told: int) -> None:
    failures = Failures()
    element = {"BaseOffset": -1, "LogAppendTimeMs": -1, "LogStartOffset": 0, "RecordErrors": [], "ErrorMessage": "big"}
    parts = [element | {"Index": index, "ErrorCode": 10} for index in range(partitions)]
    answer = {"Responses": [{"Name": "orders", "PartitionResponses": parts}], "ThrottleTimeMs": 0}
    failures.add(exchange("Produce", 9, answer, 0))
    assert len(failures.most()) == partitions
    found = failures.most_by_topic()
    assert len(found) == told
    if told == 1:
        ((*_, subject), kind) = found[0]
        assert (subject, kind.count, kind.words, kind.others) == (
            f"orders, {partitions} partitions",
            partitions,
            "big",
            0,
        )


def test_groups_that_are_named_like_partitions_stay_apart() -> None:
    failures = Failures()
    for number in range(9):
        about = {"GroupId": f"shop-{number}", "ErrorCode": 24}
        failures.add(exchange("DeleteGroups", 2, {"ThrottleTimeMs": 0, "Results": [about]}, 42))
    assert len(failures.most_by_topic()) == 9


@pytest.mark.parametrize("ending", ["the capture ended", LOST])
def test_what_is_open_when_the_capture_ends_or_was_lost_by_it_is_none(ending: str) -> None:
    failures = Failures()
    one = exchange("Produce", 9, PRODUCE, 0)
    one.response, one.ending = None, ending
    failures.add(one)
    assert (failures.rows(), ending in PENDING) == ([], True)


def test_what_got_no_answer_is_one_too_and_what_wants_none_is_not() -> None:
    failures = Failures()
    for silent in (True, False):
        one = exchange("Produce", 9, PRODUCE, 0)
        one.response, one.silent, one.ending = None, silent, "the connection closed"
        failures.add(one)
    assert [(row["error"], row["subject"]) for row in failures.rows()] == [
        ("no answer: the connection closed", "asked")
    ]


def test_of_too_many_the_rest_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 1)
    failures = Failures()
    failures.add(exchange("Produce", 9, PRODUCE, 0))
    assert (len(failures.kinds), failures.unkept) == (1, 1)
