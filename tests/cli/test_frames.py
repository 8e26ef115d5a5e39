"""kwire decode on a capture: the frames of a packet, or those with a number on a connection, in every format."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from session.conftest import Traffic
from session.test_twins import talked, translated

from kwire.capture.packet_summary import packet_summary
from kwire.errors import Exit
from kwire.session.reading import Reading

ROOT = Path(__file__).parents[2]
SHARE, MTU = "fixtures/captures/share.pcap", "fixtures/captures/mtu1500.pcap.gz"
FORMATS = ("text", "tree", "json", "spans", "hex", "svg", "html")


def _messages(path: str) -> list[Any]:
    return [
        message
        for exchange in Reading([ROOT / path]).exchanges()
        for message in (exchange.request, exchange.response)
        if message is not None
    ]


MESSAGES = _messages(SHARE)
FIRST = MESSAGES[0]


@pytest.mark.parametrize("form", FORMATS)
def test_a_packets_frame_in_every_format(form: str, kwire: Any) -> None:
    ran = kwire("decode", SHARE, "--frame", str(FIRST.packet), "--format", form)
    assert (ran.err, ran.status) == ("", Exit.OK)
    assert "ClientSoftwareName" in ran.text or form == "hex"
    assert "61 70 61 63" in ran.text or form in ("json", "tree", "spans")


def test_the_text_is_the_diagram_of_read(kwire: Any) -> None:
    text = kwire("decode", SHARE, "--frame", str(FIRST.packet)).text
    assert text.startswith(f"{FIRST.name} · 51 bytes · correlation id 0 · packet {FIRST.packet} · ")
    read = kwire("read", SHARE, "-x", "--to", "1").text
    partner = " · answered in packet 6, "
    assert partner in text
    whole, _, rest = text.partition(partner)
    assert whole + rest[rest.index("\n") :] in read


def test_json_is_the_message_record_with_packets_and_body(kwire: Any) -> None:
    rows = [json.loads(line) for line in kwire("read", SHARE, "--format", "json", "--body").text.splitlines()]
    found = json.loads(kwire("decode", SHARE, "--frame", str(FIRST.packet), "--format", "json").text)
    assert found.pop("packets") == [FIRST.packet]
    assert found == rows[0]


def test_every_packet_with_a_frame_has_its_frames(kwire: Any) -> None:
    counts = Counter(message.packet for message in MESSAGES)
    for packet in sorted(counts)[::9]:
        text = kwire("decode", SHARE, "--frame", str(packet), "--format", "json").text
        assert text.count('"connection": ') == counts[packet]


def test_a_frame_over_many_packets_is_found_by_each_of_them(kwire: Any) -> None:
    long = max(_messages(MTU), key=lambda message: len(message.marks))
    packets = [number for _, number in long.marks]
    assert len(packets) > 300
    for packet in (packets[0], packets[5], packets[-1]):
        found = json.loads(kwire("decode", MTU, "--frame", str(packet), "--format", "json").text)
        assert (found["index"], found["size"], found["packets"]) == (long.index, long.size, packets)
    lines = kwire("decode", MTU, "--frame", str(packets[7]), "--elements", "1").text.splitlines()
    assert f"packets {packets[0]} to {packets[-1]}" in " ".join(lines[:3])


def test_packets_before_and_after_nat_both_have_their_frame(kwire: Any, tmp_path: Path) -> None:
    """A judgement takes one of the two connections; who names a packet of the other still wants its frame."""
    traffic = Traffic()
    talked(traffic)
    path = str(traffic.save(tmp_path / "nat.pcap", translated(traffic.packets, "192.168.1.1:40001", "10.9.0.2:19092")))
    both = [json.loads(kwire("decode", path, "--frame", number, "--format", "json").text) for number in ("7", "8")]
    assert [row["connection"] for row in both] == [
        "10.0.0.7:51522>10.0.0.2:9092#1",
        "192.168.1.1:40001>10.9.0.2:19092#1",
    ]
    assert both[0]["body"] == both[1]["body"]


def test_frames_of_a_connection_by_number(kwire: Any) -> None:
    name = FIRST.connection.name
    client = name.partition(">")[0]
    for index in range(2):
        text = kwire("decode", SHARE, "--connection", client, "--index", str(index), "--format", "json").text
        found = [json.loads(part) for part in re.split(r"(?<=^})\n", text, flags=re.MULTILINE) if part.strip()]
        assert [(row["kind"], row["index"], row["connection"]) for row in found] == [
            ("request", index, name), ("response", index, name),
        ]  # fmt: skip


def test_all_frames_of_a_connection(kwire: Any) -> None:
    name = FIRST.connection.name
    text = kwire("decode", SHARE, "--connection", name, "--format", "tree").text
    assert len(re.findall(r"^\w+(?:Request|Response) v\d+", text, re.M)) >= sum(
        message.connection.name == name for message in MESSAGES
    )


def test_fields_of_a_captured_frame(kwire: Any) -> None:
    ran = kwire("decode", SHARE, "--frame", str(FIRST.packet), "--field", "ClientSoftwareName")
    assert ran.text == "apache-kafka-java\n"


def test_the_nearest_packets_are_named(kwire: Any) -> None:
    packets = sorted({message.packet for message in MESSAGES})
    inside = {number for message in MESSAGES for number in ([n for _, n in message.marks] or [message.packet])}
    gap = next(number for number in range(packets[0], packets[-1]) if number not in inside)
    before, after = max(n for n in packets if n < gap), min(n for n in packets if n > gap)
    ran = kwire("decode", SHARE, "--frame", str(gap))
    what = packet_summary(SHARE, gap)
    said = f"kwire: {SHARE}: no Kafka frame in packet {gap}, {what}; the nearest begin in {before} and {after}\n"
    assert (ran.err, ran.out, ran.status) == (said, b"", Exit.USAGE)
    first = ", a SYN from 127.0.0.1:42196 to 127.0.0.1:9092"
    for number, what, nearest in ((1, first, packets[0]), (99999, "", packets[-1])):
        ran = kwire("decode", SHARE, "--frame", str(number))
        assert ran.err.endswith(f"no Kafka frame in packet {number}{what}; the nearest begin in {nearest}\n")


NAME = FIRST.connection.name


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--connection", "10.9.9.9"), f"kwire: {SHARE}: no frame on a connection whose name holds 10.9.9.9\n"),
        (("--connection", NAME, "--index", "9999"),
         f"kwire: {SHARE}: no frame on a connection whose name holds {NAME} is number 9999 of its stream\n"),
        (("--connection", "#1", "--index", "0"), f"kwire: {SHARE}: 13 connections hold #1: "),
        (("--index", "0"), "Error: --index counts the frames of a connection; --connection says of which\n"),
        (("--frame", "0"), "Error: Invalid value for '--frame': 0 is not in the range x>=1.\n"),
    ],
)  # fmt: skip
def test_what_is_not_there(arguments: tuple[str, ...], complaint: str, kwire: Any) -> None:
    ran = kwire("decode", SHARE, *arguments)
    assert complaint in ran.err
    assert (ran.out, ran.status) == (b"", Exit.USAGE)


def test_two_connections_are_both_named(kwire: Any) -> None:
    clients = sorted({message.connection.name for message in MESSAGES})
    common = next(
        text for name in clients for text in (name[10:14],) if sum(text in other for other in clients) in (2, 3, 4)
    )
    ran = kwire("decode", SHARE, "--connection", common)
    names = [name for name in clients if common in name]
    assert ran.err == f"kwire: {SHARE}: {len(names)} connections hold {common}: {', '.join(names)}\n"


@pytest.mark.parametrize("form", FORMATS)
def test_bare_tokens_are_withheld_and_no_fault(form: str, kwire: Any) -> None:
    options = ("--connection", "52324", "--index", "1", "--format", form)
    ran = kwire("decode", "fixtures/captures/sasl-v0.pcap", *options)
    assert "withheld" in ran.text or form == "hex"
    assert "fixture" not in ran.text.replace("fixtures", "")
    assert ran.status == Exit.OK


def test_the_capture_may_be_stdin(kwire: Any) -> None:
    data = (ROOT / SHARE).read_bytes()
    ran = kwire("decode", "--frame", str(FIRST.packet), stdin=data)
    assert ran.text == kwire("decode", SHARE, "--frame", str(FIRST.packet)).text


def test_a_file_that_is_no_capture(kwire: Any) -> None:
    ran = kwire("decode", "fixtures/frames/HeartbeatResponse.v3.bin", "--frame", "1")
    assert "neither pcap nor pcapng" in ran.err
    assert ran.status == Exit.USAGE
