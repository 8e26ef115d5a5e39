"""Connections that are in a capture twice, before and after their addresses were translated."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from session.conftest import STEP, Packet, Traffic, request, response

from kwire.session.connection_info import ConnectionInfo
from kwire.session.reader import Settings
from kwire.session.reading import Reading
from kwire.tables.jobs import build_with_jobs


def translated(packets: list[Packet], client: str = "", broker: str = "") -> list[Packet]:
    """Each packet, and a little later the same with other addresses: the client's (and its port), the broker's."""
    names: dict[tuple[int, ...], str] = {(10, 0, 0, 7): client, (10, 0, 0, 2): broker}
    out = []
    for packet in packets:
        data = bytearray(packet.data)
        for at, port in ((12, 20), (16, 22)):
            to = names.get(tuple(data[at : at + 4]))
            if to:
                host, _, number = to.partition(":")
                data[at : at + 4] = bytes(map(int, host.split(".")))
                data[port : port + 2] = int(number).to_bytes(2, "big")
        out += [packet, packet._replace(time=packet.time + STEP // 20, data=bytes(data))]
    return out


def talked(traffic: Traffic, syn: bool = True) -> list[Packet]:
    tcp = traffic.connection(syn=syn, seq=(712_345_678, 998_765_432))
    for ident in range(1, 4):
        tcp.send(request("ApiVersions", 0, None, ident)).answer(response("ApiVersions", 0, None, ident))
    tcp.close()
    return traffic.packets


@pytest.mark.parametrize("syn", [True, False])
@pytest.mark.parametrize(
    ("client", "broker"),
    [("", "10.9.0.2:19092"), ("192.168.1.1:40001", ""), ("192.168.1.1:40001", "10.9.0.2:19092")],
)
@pytest.mark.parametrize("feed", [None, 3])
def test_each_is_read_once(traffic: Traffic, client: str, broker: str, syn: bool, feed: int | None) -> None:
    found = traffic.read(translated(talked(traffic, syn), client, broker), feed)
    assert [one.correlation_id for one in found.exchanges] == [1, 2, 3]
    assert sorted(one.twin_of for one in found.over) == ["", "10.0.0.7:51522>10.0.0.2:9092#1"]
    assert all(one.connection.name == "10.0.0.7:51522>10.0.0.2:9092#1" for one in found.exchanges)


@pytest.mark.parametrize("syn", [True, False])
@pytest.mark.parametrize("feed", [None, 1, 2, 3, 4, 5])
def test_a_recording_of_the_answers_alone_is_not_read(traffic: Traffic, syn: bool, feed: int | None) -> None:
    """Also where the answers come in a later block than the first request."""
    once = talked(traffic, syn)
    answers = [
        one for one in translated(once, "192.168.1.1:40001", "")[1::2] if one.data[12:16] == bytes((10, 0, 0, 2))
    ]
    found = traffic.read(sorted([*once, *answers]), feed)
    assert [one.correlation_id for one in found.exchanges] == [1, 2, 3]
    assert sorted(one.twin_of for one in found.over) == ["", "10.0.0.7:51522>10.0.0.2:9092#1"]


@pytest.mark.parametrize("feed", [None, 1, 4])
def test_a_recording_of_the_requests_alone_is_not_read(traffic: Traffic, feed: int | None) -> None:
    """Nor one whose first bytes come after an answer, as in a capture that began later."""
    tcp = traffic.connection(syn=False, seq=(712_345_678, 998_765_432))
    tcp.answer(response("ApiVersions", 0, None, 1))
    for ident in range(2, 5):
        tcp.send(request("ApiVersions", 0, None, ident)).answer(response("ApiVersions", 0, None, ident))
    once = traffic.packets
    asked = [one for one in translated(once, "192.168.1.1:40001", "")[1::2] if one.data[16:20] == bytes((10, 0, 0, 2))]
    found = traffic.read(sorted([*once, *asked]), feed)
    assert len([one for one in found.exchanges if one.request is not None]) == 3
    assert sorted(one.twin_of for one in found.over) == ["", "10.0.0.2:9092>10.0.0.7:51522#1"]


def test_who_asks_for_both_gets_both(traffic: Traffic) -> None:
    packets = translated(talked(traffic), "192.168.1.1:40001", "10.9.0.2:19092")
    found = traffic.read(packets, settings=Settings(twins=True))
    assert sorted({one.connection.name for one in found.exchanges}) == [
        "10.0.0.7:51522>10.0.0.2:9092#1", "192.168.1.1:40001>10.9.0.2:19092#1",
    ]  # fmt: skip
    assert len(found.exchanges) == 6


def test_the_same_words_at_other_numbers_are_not_the_same(traffic: Traffic) -> None:
    for port, first in ((51_000, 1000), (51_001, 2000)):
        tcp = traffic.connection(f"10.0.0.7:{port}", seq=(first, first + 77))
        tcp.send(request("ApiVersions", 0)).answer(response("ApiVersions", 0))
    found = traffic.read()
    assert (len(found.exchanges), [one.twin_of for one in found.over]) == (2, ["", ""])


def test_the_same_numbers_much_later_are_another_connection(traffic: Traffic) -> None:
    first = talked(traffic)
    other = translated(first, "", "10.9.0.2:19092")[1::2]
    found = traffic.read([*first, *(one._replace(time=one.time + 9_000 * STEP) for one in other)])
    assert len(found.exchanges) == 6


def test_numbers_that_tools_begin_with_say_nothing(traffic: Traffic) -> None:
    for port in (51_000, 51_001):
        tcp = traffic.connection(f"10.0.0.7:{port}", seq=(1, 1))
        tcp.send(request("ApiVersions", 0)).answer(response("ApiVersions", 0))
    assert len(traffic.read().exchanges) == 2


def test_only_one_side_alike_is_no_twin(traffic: Traffic) -> None:
    for port, answered in ((51_000, 800_000_000), (51_001, 900_000_000)):
        tcp = traffic.connection(f"10.0.0.7:{port}", seq=(700_000_000, answered))
        tcp.send(request("ApiVersions", 0)).answer(response("ApiVersions", 0))
    assert len(traffic.read().exchanges) == 2


def test_two_captures_of_two_points_are_read_once(traffic: Traffic, tmp_path: Path) -> None:
    """With and without translation between the points; a copy, which has the very times, is what it was given for."""
    once = talked(traffic)
    for name, other, exchanges in (
        ("translated", translated(once, "192.168.1.1:40001", "10.9.0.2:19092")[1::2], 3),
        ("elsewhere", [one._replace(time=one.time + STEP // 20) for one in once], 3),
        ("copy", once, 6),
    ):
        paths = [traffic.save(tmp_path / f"{name}-{at}.pcap", packets) for at, packets in enumerate((once, other))]
        over: list[ConnectionInfo] = []
        reading = Reading(list(paths), ended=over.append)
        assert len(list(reading.exchanges())) == exchanges, name
        twins = [one.twin_of for one in over if one.twin_of]
        assert reading.notes == ["1 connection seen a second time, at another point: counted once"] * (exchanges == 3)
        assert twins == ["10.0.0.7:51522>10.0.0.2:9092#1"] * (exchanges == 3), name


def test_rows_of_two_points_stay_apart_however_many_work(traffic: Traffic, tmp_path: Path) -> None:
    once = talked(traffic)
    later = [one._replace(time=one.time + STEP // 20) for one in once]
    paths = [traffic.save(tmp_path / f"{at}.pcap", packets) for at, packets in enumerate((once, later))]
    for jobs in (1, 2):
        batches: list[pa.RecordBatch] = []
        build_with_jobs(paths, ["exchanges"], lambda _, batch: batches.append(batch), Settings(), jobs)  # noqa: B023
        assert sum(batch.num_rows for batch in batches) == 6, jobs
