"""A whole capture: order of time, bounds, what is skipped and said."""

from __future__ import annotations

import gc
import json
import random
import tracemalloc
from pathlib import Path
from struct import pack
from typing import Any

import pytest

from kwire.capture import connections
from kwire.codec.library import Library
from kwire.render.message_json import MessageLines
from kwire.schema import registry, text
from kwire.schema.registry import Registry
from kwire.session import reader as reading
from kwire.session.connection_info import ConnectionInfo
from kwire.session.conversation import Conversation
from kwire.session.exchange import Exchange
from kwire.session.reader import Reader, Settings
from kwire.session.reading import Reading
from kwire.session.record import records

STEP = 1_000_000


def beat(traffic: Any, tcp: Any, ident: int, error: int = 0) -> None:
    tcp.send(traffic.request("Heartbeat", 3, {"GroupId": "g"}, ident))
    tcp.answer(traffic.response("Heartbeat", 3, {"ErrorCode": error}, ident))


def long_poll(traffic: Any, beats: int) -> None:
    """A Fetch that is answered only after many heartbeats on another connection."""
    one, two = traffic.connection(), traffic.connection("10.0.0.8:4000")
    one.send(traffic.request("Fetch", 11, ident=1))
    for ident in range(beats):
        beat(traffic, two, ident)
    one.answer(traffic.response("Fetch", 11, ident=1))


@pytest.mark.parametrize("feed", [None, 1, 7])
def test_exchanges_come_in_the_order_of_time_not_of_their_answers(traffic: Any, feed: int | None) -> None:
    long_poll(traffic, 20)
    times = [each.time for each in traffic.read(feed=feed).exchanges]
    assert times == sorted(times)
    assert len(times) == 21


def test_unordered_they_come_as_they_are_complete(traffic: Any) -> None:
    long_poll(traffic, 20)
    assert [each.api for each in traffic.read(feed=1, ordered=False).exchanges] == ["Heartbeat"] * 20 + ["Fetch"]


def test_a_connection_is_over_once_and_told(traffic: Any) -> None:
    tcp = traffic.connection()
    beat(traffic, tcp, 1)
    tcp.close()
    again = traffic.connection(seq=(900_000, 800_000))
    beat(traffic, again, 1)
    assert [each.name[-2:] for each in traffic.read(feed=1).over] == ["#1", "#2"]


def test_lost_packets_are_said_with_connection_and_side(traffic: Any) -> None:
    tcp = traffic.connection()
    beat(traffic, tcp, 1)
    tcp.send(traffic.request("Heartbeat", 3, ident=2), lost=True)
    tcp.answer(traffic.response("Heartbeat", 3, ident=2))
    beat(traffic, tcp, 3)
    outcome = traffic.read()
    ((connection, side, skipped),) = outcome.skipped
    assert (connection.name, side) == ("10.0.0.7:51522>10.0.0.2:9092#1", "request")
    assert (skipped.length, connection.lost) == (25, 25)
    assert skipped.reason == "25 bytes are missing at position 26"
    assert [(i, a, b) for _, i, a, b in outcome.pairs] == [(1, True, True), (2, False, True), (3, True, True)]


def test_steady_loss_holds_back_only_what_missing_bytes_may_still_join(traffic: Any) -> None:
    """A hole is always open, as each waits two seconds: what came before it is read."""
    tcp, reader, given = traffic.connection(), Reader("it"), 0
    for ident in range(2500):
        tcp.send(traffic.request("Heartbeat", 3, {"GroupId": "g"}, ident), lost=ident % 40 == 20)
        tcp.answer(traffic.response("Heartbeat", 3, ident=ident), lost=ident % 40 == 33)
    for at in range(0, len(traffic.packets), 500):
        given += sum(map(len, reader.feed(traffic.block(traffic.packets[at : at + 500], at + 1))))
    assert 1300 < given < 1600
    assert reader.waiting_cost < 1 << 20
    assert given + sum(map(len, reader.finish())) == 2500


@pytest.mark.parametrize("size", [-1, 101 << 20])
@pytest.mark.parametrize("feed", [None, 1])
def test_a_size_that_cannot_be_costs_only_what_stands_before_the_next_frame(
    traffic: Any, size: int, feed: int | None
) -> None:
    tcp = traffic.connection()
    beat(traffic, tcp, 1)
    tcp.send((size % (1 << 32)).to_bytes(4, "big") + b"junk" * 5)
    for ident in (2, 3, 4):
        beat(traffic, tcp, ident)
    outcome = traffic.read(feed=feed)
    assert [each.correlation_id for each in outcome.exchanges] == [1, 2, 3, 4]
    ((_, side, skipped),) = outcome.skipped
    assert (side, skipped.length, skipped.reason) == ("request", 24, f"a size of {size:,} bytes cannot be")


def test_a_size_is_believed_up_to_the_bound(traffic: Any) -> None:
    tcp = traffic.connection()
    beat(traffic, tcp, 1)
    tcp.send(traffic.request("SaslAuthenticate", 0, {"AuthBytes": bytes(2000)}, 2))
    beat(traffic, tcp, 3)
    assert len(traffic.read().exchanges) == 3
    outcome = traffic.read(settings=Settings(max_size=1000))
    assert [each.correlation_id for each in outcome.exchanges] == [1, 3]
    assert outcome.skipped[0][2].reason.startswith("a size of 2,0")


def test_a_hundred_connections_side_by_side(traffic: Any) -> None:
    open_ones = [traffic.connection(f"10.0.1.{n}:5000") for n in range(100)]
    rng = random.Random(1)
    for ident in range(400):
        beat(traffic, rng.choice(open_ones), ident)
    outcome = traffic.read(feed=50)
    assert [each.correlation_id for each in outcome.exchanges] == list(range(400))
    assert {message.quality for message in outcome.messages} == {"ok"}


def test_frames_that_are_never_whole_are_given_up_to_bound_memory(traffic: Any) -> None:
    for n in range(4):
        tcp = traffic.connection(f"10.0.1.{n}:5000")
        tcp.send(traffic.request("SaslAuthenticate", 0, {"AuthBytes": bytes(9000)})[:400])
    outcome = traffic.read(feed=1, settings=Settings(memory=1600))
    assert {skipped.reason for _, _, skipped in outcome.skipped} == {"given up to bound memory"}
    assert sum(skipped.length for _, _, skipped in outcome.skipped) == 800
    assert {message.quality for message in outcome.messages} == {"truncated"}


def test_what_waits_behind_holes_and_for_the_rest_of_frames_has_one_bound(traffic: Any) -> None:
    """Each alone has room, both together have not."""
    memory = 2 << 20
    frame = traffic.request("SaslAuthenticate", 0, {"AuthBytes": bytes(1 << 20)})
    parts = [traffic.connection(f"10.0.1.{n}:5000") for n in range(4)]
    holes = [traffic.connection(f"10.0.2.{n}:5000") for n in range(4)]
    for tcp in holes:
        tcp.send(bytes(10), lost=True)
    made, most, sent = Reader("it", Settings(memory=memory)), 0, 0
    for at in range(0, 400_000, 8000):
        for tcp in parts:
            tcp.send(frame[at : at + 8000])
        for tcp in holes[: 4 * (at < 96_000)]:
            tcp.send(frame[at : at + 8000])
        made.feed(traffic.block(traffic.packets[sent:], sent + 1))
        sent = len(traffic.packets)
        most = max(most, made.waiting_cost)
    assert memory // 2 < most <= memory


def test_a_connection_that_is_over_leaves_nothing_to_be_collected(traffic: Any) -> None:
    """Floods bring millions of them; what refers to itself stays until all of memory is looked at."""
    for n in range(20):
        traffic.connection(f"10.0.1.{n}:5000", syn=n % 2 == 0).send(b"nothing of Kafka at all")
        beat(traffic, traffic.connection(f"10.0.2.{n}:5000"), n)
        traffic.connection(f"10.0.3.{n}:5000")
    gc.collect()
    gc.disable()
    try:
        before = sum(isinstance(one, Conversation) for one in gc.get_objects())
        assert len(traffic.read().over) == 60
        assert sum(isinstance(one, Conversation) for one in gc.get_objects()) == before
    finally:
        gc.enable()


def test_a_connection_without_a_byte_makes_no_conversation(traffic: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "Conversation", None)
    for n in range(5):
        traffic.connection(f"10.0.1.{n}:5000")
    assert [info.full_name for info in traffic.read().over] == [f"10.0.1.{n}:5000>10.0.0.2:9092#1" for n in range(5)]


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("ends", ["capture", "idle"])
def test_frames_that_are_never_whole_are_not_held_twice_when_all_of_them_end(
    traffic: Any, monkeypatch: pytest.MonkeyPatch, ordered: bool, ends: str
) -> None:
    """Each becomes a message, and messages become a batch: each step is a copy."""
    monkeypatch.setattr(reading, "AT_ONCE", 1 << 20)
    frame = traffic.request("SaslAuthenticate", 0, {"AuthBytes": bytes(400_000)})
    talks = [traffic.connection(f"10.0.1.{n}:5000") for n in range(60)]
    for at in range(0, 300_000, 10_000):
        for tcp in talks:
            tcp.send(frame[at : at + 10_000])
    made = Reader("it", ordered=ordered)
    for first in range(0, len(traffic.packets), 300):  # of each frame in some blocks, so that it has parts
        made.feed(traffic.block(traffic.packets[first : first + 300], first + 1))
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    found = made.tick(made.last_time + 3_600_000_000_000) if ends == "idle" else []
    found += made.finish()
    peak = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    assert [len(message.data) for batch in found for each in batch for message in (each.request,) if message] == [
        300_000
    ] * 60
    assert peak < 60 * 300_000 + (6 << 20)


def test_connections_of_one_block_are_not_all_kept(traffic: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flood of them comes in blocks of a hundred thousand."""
    monkeypatch.setattr(connections, "MOST_UNKNOWN", 10)
    monkeypatch.setattr(reading, "MOST_OVER", 3)
    for n in range(200):
        traffic.connection(f"10.0.1.{n}:5000", syn=False).send(b"nothing of Kafka")
    made: list[int] = []
    ended: list[int] = []
    conversation, end = Conversation, reading.Reader.end

    def make(*given: Any) -> Any:
        made.append(len(ended))
        return conversation(*given)

    def count(self: reading.Reader, *given: Any) -> None:
        ended.append(len(made))
        end(self, *given)

    monkeypatch.setattr(reading, "Conversation", make)
    monkeypatch.setattr(reading.Reader, "end", count)
    assert len(traffic.read().over) == len(ended) == 200
    assert max(number - before for number, before in enumerate(made)) < 20


# ---------------------------------------------------------------- files


def test_several_captures_are_read_side_by_side(traffic: Any, tmp_path: Path) -> None:
    one, two = traffic.connection(), traffic.connection("10.0.0.8:4000")
    for ident in range(20):
        beat(traffic, one if ident % 2 else two, ident)
    first = [packet for packet in traffic.packets if bytes([10, 0, 0, 7]) in packet.data[12:20]]
    second = [packet for packet in traffic.packets if packet not in first]
    paths = [traffic.save(tmp_path / "a.pcap", first), traffic.save(tmp_path / "b.pcap.gz", second)]
    reading = Reading(paths)
    found = list(reading.exchanges())
    assert [each.correlation_id for each in found] == list(range(20))
    assert [each.connection.capture for each in found[:2]] == ["b.pcap.gz", "a.pcap"]
    assert (reading.notes, reading.damaged) == ([], False)


def test_a_capture_that_is_cut_is_damaged_and_said(traffic: Any, tmp_path: Path) -> None:
    beat(traffic, traffic.connection(), 1)
    beat(traffic, traffic.connection("10.0.0.8:4000"), 2)
    path = traffic.save(tmp_path / "a.pcap")
    path.write_bytes(path.read_bytes()[:-7])
    reading = Reading([path])
    found = list(reading.exchanges())
    assert [(each.correlation_id, each.response.quality) for each in found if each.response] == [
        (1, "ok"), (2, "truncated"),
    ]  # fmt: skip
    assert reading.damaged
    assert reading.notes[0].startswith("a.pcap: ")


def test_skipped_bytes_are_taken_once_and_up_to_a_time(traffic: Any, tmp_path: Path) -> None:
    tcp = traffic.connection()
    for ident in (1, 2, 3, 4, 5):
        beat(traffic, tcp, ident)
        if ident in (2, 4):
            tcp.send(traffic.request("Heartbeat", 3, ident=90), lost=True)
    reading = Reading([traffic.save(tmp_path / "a.pcap")])
    assert len(list(reading.exchanges())) == 5
    first, second = [skipped.time for _, _, skipped in reading.readers[0].skipped]
    assert [skipped.time for _, _, skipped in reading.take_skipped(first)] == [first]
    assert [skipped.time for _, _, skipped in reading.take_skipped(None)] == [second]
    assert reading.take_skipped(None) == []


@pytest.mark.parametrize("seed", range(8))
def test_lines_are_those_of_the_rows(traffic: Any, tmp_path: Path, seed: int) -> None:
    """What is regular takes a fast path, which must say the same."""
    rng = random.Random(seed)
    open_ones = [traffic.connection(f"10.0.1.{n}:5000") for n in range(4)]
    for ident in range(300):
        tcp, version = rng.choice(open_ones), rng.choice((9, 12))
        body = {"Topics": [{"Name": "t" * rng.randrange(90), "ErrorCode": rng.choice((0, 0, 3))}]}
        if rng.random() < 0.3:
            tcp.send(traffic.request("Metadata", version, ident=ident, client=rng.choice((None, "", "é"))), 70)
            tcp.answer(traffic.response("Metadata", version, body, ident), 70)
        elif rng.random() < 0.05:
            tcp.send(traffic.request("Produce", 9, {"Acks": 0}, ident))
        elif rng.random() < 0.03:
            tcp.send(traffic.request(200, 1, b"x", ident))
        elif rng.random() < 0.03:
            tcp.answer(traffic.response("Heartbeat", 3, ident=-ident))
        else:
            beat(traffic, tcp, ident, rng.choice((0, 0, 27)))
    path, lines = traffic.save(tmp_path / "a.pcap"), MessageLines()
    rows = [row for each in Reading([path]).exchanges() for _, row in records(each)]
    found = [line for batch in Reading([path]).batches() for line in "".join(lines.of(batch)).splitlines()]
    told = [json.dumps({key: row[key] for key in rows[0]}) for row in map(json.loads, found)]
    assert sorted(told) == sorted(map(json.dumps, rows))
    times = [json.loads(line)["time"] for line in found if json.loads(line)["kind"] == "request"]
    assert times == sorted(times)


def newer_heartbeat() -> Library:
    """Definitions in which Heartbeat has a version 5, as --schema brings them."""
    own = Path(registry.__file__).parent / "apis" / "12_heartbeat.txt"
    definition = text.parse(own.read_text().replace("0-4", "0-5"), own.name)
    return Library(Registry(overlay=[definition]))


@pytest.mark.parametrize("library", [None, newer_heartbeat()], ids=["own", "given"])
def test_a_session_is_stopped_and_taken_up(traffic: Any, library: Library | None) -> None:
    """Between any two packets, in the midst of a frame too; what is not Kafka's own definition comes along."""
    version = 4 if library is None else 5
    tcp = traffic.connection()
    for ident in range(3):
        data = pack(">hhihc", 12, version, ident, 1, b"c") + b"\0" + bytes([2, 103, 0, 0, 0, 1, 2, 109, 0, 0])
        tcp.send(traffic.size_prefixed(data), 7).answer(traffic.response("Heartbeat", 4, {"ErrorCode": 27}, ident), 5)
    settings = Settings(library=library)
    whole = traffic.read(settings=settings, tracking=True).rows
    assert [row["quality"] for row in whole] == ["ok"] * 6
    reader = Reader("made.pcap", settings, tracking=True)
    over: list[ConnectionInfo] = []
    found: list[Exchange] = []
    for number, packet in enumerate(traffic.packets, 1):
        reader = Reader.resume(reader.snapshot(), ended=over.append)
        for batch in reader.feed(traffic.block([packet], number)):
            found += list(batch)
    for batch in Reader.resume(reader.snapshot(), ended=over.append).finish():
        found += list(batch)
    assert [row for exchange in found for _, row in records(exchange)] == whole
    assert [one.exchanges for one in over] == [3]
