from __future__ import annotations

from dataclasses import replace

from kwire.analyze.alike import gathered
from kwire.analyze.findings import Finding, Reference, RootEvent, about, named

ADVICE = "max.message.bytes of orders counts the batch as sent"


def refused(client: str, partition: int, **other: object) -> Finding:
    packet = 100 * int(client.rpartition("-")[2]) + partition
    one = Finding(
        "error",
        f"{client} was refused a batch for orders-{partition}",
        (Reference("", packet, packet, "c", "Produce"),),
        ADVICE,
        time=packet,
        detector="message-too-large",
        about=about(client_id=client, topic="orders", partition=partition, api="Produce"),
        count=2,
    )
    return replace(one, **other)  # type: ignore[arg-type]


def test_partitions_of_clients_are_one_finding() -> None:
    found = [refused(f"shop-{client}", partition) for client in range(5) for partition in range(20)]
    (one,) = gathered(found)
    assert (one.count, one.stands_for, one.time, one.last) == (200, 100, 0, 419)
    assert one.about == {"topic": "orders", "api": "Produce"}
    assert one.among == {
        "client_id": tuple(f"shop-{client}" for client in range(5)),
        "partition": tuple(range(20)),
    }
    assert one.text == (
        "shop-0 was refused a batch for orders-0; and 99 more like it: 20 partitions (0 to 19), "
        "5 clients (shop-0, shop-1, shop-2, shop-3, shop-4)"
    )
    assert [reference.packet for reference in one.evidence] == [0, 100, 200, 300, 400]
    record = one.record()
    assert record["text"] == one.text
    assert record["among"]["partition"] == list(range(20))


def test_the_worst_speaks_for_all() -> None:
    found = [refused("shop-1", partition, count=partition % 3) for partition in range(8)]
    (one,) = gathered(found)
    assert one.what == "shop-1 was refused a batch for orders-2"
    assert one.about["client_id"] == "shop-1"


def test_a_partition_of_each_client() -> None:
    (one,) = gathered([refused(f"shop-{number}", number) for number in range(6)])
    assert sorted(one.among) == ["client_id", "partition"]


def test_three_are_told_apart() -> None:
    found = [refused("shop-1", partition) for partition in range(3)]
    assert gathered(found) == found


def test_other_advice_other_causes_and_events_stay_apart() -> None:
    advised = [refused("shop-1", number, advice=f"do {'this' if number % 2 else 'that'}") for number in range(6)]
    assert len(gathered(advised)) == 6
    caused = [refused("shop-1", number, cause=RootEvent("broker-gone", number, "b")) for number in range(6)]
    assert len(gathered(caused)) == 6
    events = [refused("shop-1", number, detector="leader-moved") for number in range(6)]
    assert len(gathered(events)) == 6


def test_names_and_numbers_in_the_advice_are_no_difference() -> None:
    found = [
        refused("shop-1", number, advice=f"raise t{number}.bytes above {number}", about=about(topic=f"t{number}"))
        for number in range(12)
    ]
    (one,) = gathered(found)
    assert one.among["topic"] == tuple(f"t{number}" for number in range(12))


def test_gathering_again_changes_nothing() -> None:
    once = gathered(refused(f"shop-{client}", partition) for client in range(5) for partition in range(20))
    assert gathered(once) == once


def test_names_in_few_words() -> None:
    assert named([3, 1, 2, 9, 11, 12]) == "1 to 3, 9, 11, 12"
    assert named(["shop-10", "shop-2"]) == "shop-2, shop-10"
    assert named(f"c{number}" for number in range(9)) == "c0, c1, c2, c3, c4, …"
