"""Topic names by id, also those that are told later, and what fetch sessions hold."""

# mypy: disable-error-code="func-returns-value"

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kwire.session.reading import Reading
from kwire.session.topics import Topics
from kwire.wire import uuids

ORDERS, PAYMENTS = UUID(int=77 << 64 | 5), UUID(int=78 << 64 | 6)


def metadata(traffic: Any, tcp: Any, ident: int = 50, version: int = 12) -> None:
    topics = [{"Name": "orders", "TopicId": ORDERS}, {"Name": "payments", "TopicId": PAYMENTS}]
    tcp.send(traffic.request("Metadata", version, ident=ident))
    tcp.answer(traffic.response("Metadata", version, {"Topics": topics}, ident))


def fetch(
    traffic: Any, tcp: Any, ident: int, topics: dict[UUID, list[int]], session: int = 0, epoch: int = 0,
    opened: int = 0, forgotten: dict[UUID, list[int]] | None = None,
) -> None:  # fmt: skip
    body = {
        "SessionId": session, "SessionEpoch": epoch,
        "Topics": [
            {"TopicId": topic, "Partitions": [{"Partition": n} for n in parts]} for topic, parts in topics.items()
        ],
        "ForgottenTopicsData": [{"TopicId": each, "Partitions": parts} for each, parts in (forgotten or {}).items()],
    }  # fmt: skip
    tcp.send(traffic.request("Fetch", 13, body, ident))
    tcp.answer(traffic.response("Fetch", 13, {"SessionId": opened or session}, ident))


def about(traffic: Any, **given: Any) -> list[dict[str, list[int]]]:
    outcome = traffic.read(tracking=True, **given)
    return [each.about.topics for each in outcome.exchanges if each.api == "Fetch"]


def test_ids_are_resolved_by_what_was_told_before(traffic: Any) -> None:
    tcp = traffic.connection()
    metadata(traffic, tcp)
    fetch(traffic, tcp, 1, {ORDERS: [0, 2]}, epoch=-1)
    assert about(traffic) == [{"orders": [0, 2]}]


def test_an_id_that_nobody_tells_is_printed_as_kafka_does(traffic: Any) -> None:
    fetch(traffic, traffic.connection(), 1, {ORDERS: [0], UUID(int=1): [0]}, epoch=-1)
    assert about(traffic) == [{uuids.to_text(ORDERS): [0], "__cluster_metadata": [0]}]


def test_ids_are_resolved_also_when_the_answer_that_tells_comes_later_in_the_file(traffic: Any, tmp_path: Path) -> None:
    tcp = traffic.connection()
    fetch(traffic, tcp, 1, {ORDERS: [0]}, epoch=-1)
    metadata(traffic, tcp)
    found = [each.about.topics for each in Reading([traffic.save(tmp_path / "c.pcap")], tracking=True).exchanges()]
    assert found[0] == {"orders": [0]}


def test_or_in_another_file(traffic: Any, tmp_path: Path) -> None:
    fetch(traffic, traffic.connection(), 1, {PAYMENTS: [3]}, epoch=-1)
    first = traffic.save(tmp_path / "first.pcap")
    traffic.packets.clear()
    metadata(traffic, traffic.connection("10.0.0.9:5000"))
    second = traffic.save(tmp_path / "second.pcap.gz")
    found = [each.about.topics for each in Reading([first, second], tracking=True).exchanges() if each.api == "Fetch"]
    assert found == [{"payments": [3]}]


def test_elsewhere_is_asked_once_for_each_id() -> None:
    asked = []
    topics = Topics(lambda made, ident: (asked.append(ident), made.names.update({ORDERS: "orders"}))[0])
    assert [topics.name(each) for each in (ORDERS, PAYMENTS, UUID(int=1)) * 2] == [
        "orders", uuids.to_text(PAYMENTS), "__cluster_metadata",
    ] * 2  # fmt: skip
    assert asked == [ORDERS, PAYMENTS]


def test_an_incremental_fetch_asks_for_all_that_its_session_holds(traffic: Any) -> None:
    tcp = traffic.connection()
    metadata(traffic, tcp)
    fetch(traffic, tcp, 1, {ORDERS: [0, 1]}, opened=900)
    fetch(traffic, tcp, 2, {}, 900, 1)
    fetch(traffic, tcp, 3, {PAYMENTS: [4]}, 900, 2)
    fetch(traffic, tcp, 4, {}, 900, 3, forgotten={ORDERS: [0]})
    fetch(traffic, tcp, 5, {}, 900, 4, forgotten={ORDERS: [1]})
    assert about(traffic) == [
        {"orders": [0, 1]}, {"orders": [0, 1]}, {"orders": [0, 1], "payments": [4]},
        {"orders": [1], "payments": [4]}, {"payments": [4]},
    ]  # fmt: skip


def test_a_session_that_began_before_the_capture_says_what_it_lists(traffic: Any) -> None:
    tcp = traffic.connection()
    metadata(traffic, tcp)
    fetch(traffic, tcp, 1, {ORDERS: [1]}, 901, 7)
    assert about(traffic) == [{"orders": [1]}]


def test_sessions_belong_to_their_broker(traffic: Any) -> None:
    one, two = traffic.connection(), traffic.connection("10.0.0.7:51523", "10.0.0.3:9092")
    metadata(traffic, one)
    fetch(traffic, one, 1, {ORDERS: [0]}, opened=900)
    fetch(traffic, two, 1, {PAYMENTS: [0]}, opened=900)
    fetch(traffic, one, 2, {}, 900, 1)
    fetch(traffic, two, 2, {}, 900, 1)
    assert about(traffic)[2:] == [{"orders": [0]}, {"payments": [0]}]


@pytest.mark.parametrize("version", [9, 10, 12, 13])
def test_only_versions_with_ids_tell_names(traffic: Any, version: int) -> None:
    topics = [{"Name": "orders", **({"TopicId": ORDERS} if version >= 10 else {})}]
    traffic.connection().send(traffic.request("Metadata", version)).answer(
        traffic.response("Metadata", version, {"Topics": topics})
    )
    learned = Topics()
    traffic.read(tracking=True, topics=learned)
    assert learned.names == ({ORDERS: "orders"} if version >= 10 else {})
