"""Captures of real clients and brokers: every frame as the official classes read it, and what is left of them when
packets are out of order, repeated, lost or cut."""

from __future__ import annotations

import hashlib
import json
import random
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from vectors import jsonl

from kwire.capture.files import open_capture
from kwire.render.bodies import BodyRenderer
from kwire.render.message_json import MessageLines
from kwire.session.exchange import Exchange
from kwire.session.reading import Reading
from kwire.session.record import records

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"
NAMES = sorted(path.name.removesuffix(".truth.jsonl.gz") for path in CAPTURES.glob("*.truth.jsonl.gz"))
COLUMNS = {
    "position": "position", "time": "time", "last_time": "last_time", "size": "size", "api_key": "apiKey",
    "api_version": "apiVersion", "correlation_id": "correlationId", "client_id": "clientId",
}  # fmt: skip
DEFAULTS: tuple[Any, ...] = (None, False, 0, -1, 2**63 - 1, "", "A" * 22, [])
TIMES = ("capture", "time", "last_time", "packet", "last_packet", "latency_ns")
Row = dict[str, Any]
Key = tuple[str, str, int]

each = pytest.mark.parametrize("name", NAMES)


def capture_of(name: str) -> Path:
    return next(path for path in CAPTURES.glob(f"{name}.pcap*") if path.name in (f"{name}.pcap", f"{name}.pcap.gz"))


@cache
def exchanges(name: str) -> list[Exchange]:
    return list(Reading([capture_of(name)]).exchanges())


def epochs(names: list[str]) -> dict[str, str]:
    """Connections under names in which epochs count without holes: the capture's first one may begin in midstream."""
    found = defaultdict(set)
    for name in names:
        ends, _, epoch = name.partition("#")
        found[ends].add(int(epoch))
    return {
        f"{ends}#{epoch}": f"{ends}#{n}" for ends, numbers in found.items() for n, epoch in enumerate(sorted(numbers))
    }


def differences(ours: Any, official: Any, path: str) -> list[str]:
    """Where a value is not the official one. Fields that only we have must be tagged ones at their default."""
    if isinstance(ours, dict) and isinstance(official, dict):
        mine = {name[0].lower() + name[1:]: value for name, value in ours.items() if name != "_tagged"}
        found = [f"{path}.{name}: {mine[name]}, not official" for name in mine.keys() - official.keys()
                 if not default(mine[name])]  # fmt: skip
        for name, value in official.items():
            missing = [f"{path}.{name}: missing, official {value}"]
            found += differences(mine[name], value, f"{path}.{name}") if name in mine else missing
        return found
    if isinstance(ours, list) and isinstance(official, list) and len(ours) == len(official):
        return [
            line
            for n, pair in enumerate(zip(ours, official, strict=True))
            for line in differences(*pair, f"{path}[{n}]")
        ]
    if isinstance(ours, str) and isinstance(official, str):
        ours, official = ours.rstrip("="), official.rstrip("=")  # base64
    return [] if type(ours) is type(official) and ours == official else [f"{path}: {ours}, official {official}"]


def default(value: Any) -> bool:
    return all(map(default, value.values())) if isinstance(value, dict) else value in DEFAULTS


# ---------------------------------------------------------------- as the official classes read it


def test_there_are_captures() -> None:
    assert len(NAMES) >= 10


@each
def test_every_frame_is_as_the_official_classes_read_it(name: str) -> None:
    bodies, ours = BodyRenderer(show_secrets=True), {}
    rows = jsonl(f"captures/{name}.truth")
    known = {row["connection"].partition("#")[0] for row in rows}
    messages = [
        (message, exchange, row)
        for exchange in exchanges(name)
        for message, row in records(exchange)
        if message.connection.name.partition("#")[0] in known
    ]
    renamed = epochs([message.connection.name for message, _, _ in messages])
    for message, exchange, row in messages:
        key = renamed[message.connection.name], message.kind, message.index
        assert key not in ours
        ours[key] = message, exchange, row | {"body": json.loads(bodies.json(message))}
    official = epochs([row["connection"] for row in rows])
    refused = {  # there no token follows
        official[row["connection"]] for row in rows
        if row["kind"] == "response" and row.get("apiKey") == 17 and row["json"]["body"]["errorCode"]
    }  # fmt: skip
    for row in rows:
        way = "request" if row["connection"].startswith(row["stream"] + "#") else "response"
        message, exchange, mine = ours.pop((official[row["connection"]], way, row["n"]))
        where = f"{row['connection']} {way} {row['n']}"
        assert hashlib.sha1(message.data).hexdigest() == row["sha1"], where
        assert {ours: mine[ours] for ours, theirs in COLUMNS.items() if theirs in row} == {
            ours: row[theirs] for ours, theirs in COLUMNS.items() if theirs in row
        }, where
        token = (
            row["kind"] == "sasl-token" and official[row["connection"]] not in refused
        )  # the truth takes them for such
        assert message.token == token, where
        partner = exchange.response if way == "request" else exchange.request
        if row["kind"] != "sasl-token":
            assert (partner.index if partner else None) == row.get("response_n" if way == "request" else "request_n"), (
                where
            )
        body = row.get("json", {}).get("body")
        if body is not None:
            left = row["json"]["remaining"]
            assert mine["quality"] in (("trailing",) if left else ("ok", "orphan")), (where, mine["note"])
            assert mine["header_version"] == row["json"]["headerVersion"], where
            assert differences(mine["body"], body, where) == []
    assert list(ours) == []


@each
def test_lines_without_bodies_say_the_same(name: str, kwire: Any) -> None:
    expected = [row for each in exchanges(name) for _, row in records(each)]
    ran = kwire("read", "--format", "json", str(capture_of(name)))
    found = [json.loads(line) for line in ran.text.splitlines()]
    order = lambda row: (row["connection"], row["kind"], row["index"])  # noqa: E731
    known = [{key: row[key] for key in expected[0]} for row in found]  # the lines say what the exchange is about too
    assert sorted(known, key=order) == sorted(expected, key=order)


@each
def test_exchanges_come_in_the_order_of_time(name: str) -> None:
    times = [exchange.time for exchange in exchanges(name)]
    assert times == sorted(times)


@each
def test_every_line_is_the_row_as_json_dumps_writes_it(name: str) -> None:
    for batch in Reading([capture_of(name)]).batches():
        lines = "".join(MessageLines().of(batch)).splitlines()
        rows = [row for exchange in batch for _, row in records(exchange)]
        told = [json.loads(line) for line in lines]
        assert lines == [json.dumps(row) for row in told]
        assert [{key: row[key] for key in rows[0]} for row in told] == rows


# ---------------------------------------------------------------- out of order, repeated, lost, cut


@cache
def packets(name: str) -> tuple[tuple[int, bytes, int, int], ...]:
    found = []
    for block in open_capture(capture_of(name)).blocks():
        for n in range(len(block)):
            start = int(block.start[n])
            data = bytes(block.buffer[start : start + int(block.captured[n])])
            found.append((int(block.time[n]), data, int(block.length[n]), int(block.link[n])))
    return tuple(found)


@cache
def whole(name: str) -> dict[Key, Row]:
    return by_key([row for exchange in exchanges(name) for _, row in records(exchange)])


def by_key(rows: list[Row]) -> dict[Key, Row]:
    found = {(row["connection"], row["kind"], row["position"]): row for row in rows}
    assert len(found) == len(rows)
    return found


def without(row: Row, columns: tuple[str, ...]) -> Row:
    return {name: value for name, value in row.items() if name not in columns}


def check_partial(name: str, outcome: Any) -> None:
    """What is left of a capture: no frame that is not in the whole one, and an ok one is as it is there."""
    complete = whole(name)
    for key, row in by_key(outcome.rows).items():
        assert key in complete, row
        if row["quality"] == "ok":
            unknown = ("index", *(("client_id",) if row["client_id"] is None else ()))  # the request may be cut
            drop = (*TIMES, *unknown)
            assert without(row, drop) == without(complete[key], drop)


feeds = pytest.mark.parametrize("feed", [None, 11])


@each
@feeds
def test_packets_out_of_order_and_repeated_change_nothing(name: str, feed: int | None, traffic: Any) -> None:
    rng = random.Random(name)
    given = [traffic.packet(*packet) for packet in packets(name)]
    jitter = sorted((packet.time + rng.randrange(300_000) * (packet.length > 100), n) for n, packet in enumerate(given))
    mixed = [given[n] for _, n in jitter for _ in range(1 + (rng.random() < 0.2))]
    found = by_key(traffic.read(mixed, feed=feed).rows)
    assert {key: without(row, TIMES) for key, row in found.items()} == {
        key: without(row, TIMES) for key, row in whole(name).items()
    }


@pytest.mark.slow
@each
def test_blocks_of_packets_change_nothing(name: str, traffic: Any) -> None:
    given = [traffic.packet(*packet) for packet in packets(name)]
    for feed in (1, 7, 100):
        found = by_key(traffic.read(given, feed=feed).rows)
        assert {key: without(row, ("capture",)) for key, row in found.items()} == {
            key: without(row, ("capture",)) for key, row in whole(name).items()
        }


@each
@feeds
@pytest.mark.parametrize("seed", range(3))
def test_lost_packets_invent_nothing_and_are_said(name: str, feed: int | None, seed: int, traffic: Any) -> None:
    rng = random.Random(f"{name} {seed}")
    data = 100  # bytes; without its SYN a connection would begin in midstream
    given = [traffic.packet(*each) for each in packets(name) if len(each[1]) < data or rng.random() > 0.02]
    outcome = traffic.read(given, feed=feed)
    check_partial(name, outcome)
    said = {(connection.name, way) for connection, way, _ in outcome.skipped}
    said |= {(row["connection"], row["kind"]) for row in outcome.rows if row["quality"] in ("gap", "truncated")}
    found = by_key(outcome.rows)
    for connection in outcome.over:
        for side, stream in enumerate(connection.tcp.streams):
            if stream.missing and connection.is_kafka:
                way = "request" if side == connection.client else "response"
                assert (connection.name, way) in said
    assert found


@each
@pytest.mark.parametrize("part", [0.1, 0.5])
def test_a_capture_that_begins_in_midstream_has_the_frames_that_are_left(name: str, part: float, traffic: Any) -> None:
    given = [traffic.packet(*packet) for packet in packets(name)]
    outcome = traffic.read(given[int(part * len(given)) :])
    known = {(row["kind"], row["time"], row["size"], row["api"], row["correlation_id"], row["client_id"], row["error"],
              row["api_version"], row["latency_ns"]) for row in whole(name).values()}  # fmt: skip
    for row in outcome.rows:
        if row["quality"] == "ok":
            assert (row["kind"], row["time"], row["size"], row["api"], row["correlation_id"], row["client_id"],
                    row["error"], row["api_version"], row["latency_ns"]) in known  # fmt: skip
    starts = {(row["kind"], row["time"], row["size"]) for row in whole(name).values()}
    assert {(row["kind"], row["time"], row["size"]) for row in outcome.rows} <= starts


@each
@feeds
def test_what_the_snaplen_cut_is_truncated_and_the_rest_as_it_was(name: str, feed: int | None, traffic: Any) -> None:
    given = [traffic.packet(time, data[:96], length, link) for time, data, length, link in packets(name)]
    outcome = traffic.read(given, feed=feed)
    check_partial(name, outcome)
    qualities = {row["quality"] for row in outcome.rows}
    assert qualities <= {"ok", "truncated", "orphan", "inferred", "opaque", "gap", "trailing", "malformed"}
    assert "truncated" in qualities


@each
@pytest.mark.parametrize("part", [0.3, 0.77])
def test_a_capture_that_is_cut_at_the_end_has_what_came_before(name: str, part: float, traffic: Any) -> None:
    given = [traffic.packet(*packet) for packet in packets(name)]
    outcome = traffic.read(given[: int(part * len(given))])
    check_partial(name, outcome)
    end = given[int(part * len(given))].time
    ended = {key for key, row in whole(name).items() if row["last_time"] < end}
    assert ended <= by_key(outcome.rows).keys()
