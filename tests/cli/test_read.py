"""kwire read: what it lists, for every width, format and option; what it saves can be read again."""

# mypy: disable-error-code="misc"

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kwire.capture.files import open_capture
from kwire.cli.main import cli
from kwire.errors import Exit
from kwire.session.reading import Reading

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "fixtures" / "captures"
FILES = sorted(FOLDER.glob("*.pcap*"))
CLASSIC, SHARE = "fixtures/captures/classic.pcap.gz", "fixtures/captures/share.pcap"
NOT_KAFKA, TLS = "fixtures/captures/notkafka.pcap", "fixtures/captures/tls.pcap"
every = pytest.mark.parametrize("path", FILES, ids=[path.name.split(".")[0] for path in FILES])
WIDTHS = (60, 80, 120, 200)
EDGES = (60, 80)


def piped(*arguments: str) -> str:
    """What a pipe gets when COLUMNS is not set."""
    return CliRunner(env={"COLUMNS": None}).invoke(cli, list(arguments)).stdout


def too_wide(text: str, width: int) -> list[str]:
    """Lines wider than the terminal that could be broken somewhere."""
    return [line for line in text.splitlines() if len(line) > width and (" " in line.strip() or width >= 80)]


def exchanges(path: Path | str) -> list[tuple[str, int | None, int | None, bytes, bytes]]:
    """What is the same wherever a capture was saved to: names, ids, times and bytes of its exchanges."""
    return [
        (each.api, each.correlation_id, each.latency, *(m.data if m else b"" for m in (each.request, each.response)))
        for each in Reading([path]).exchanges()
    ]


@every
@pytest.mark.parametrize("options", [(), ("--body",), ("--not-kafka",), ("--utc",)], ids=" ".join)
def test_no_line_is_wider_than_the_terminal(path: Path, options: tuple[str, ...], kwire: Any) -> None:
    if path.name.startswith("mtu1500") and options == ("--body",):
        options = ("--body", "--api", "Metadata")
    for width in WIDTHS if not options else EDGES:
        ran = kwire("read", str(path), *options, columns=width)
        assert too_wide(ran.text, width) == []
        assert ran.status in (Exit.OK, Exit.MALFORMED)


@pytest.mark.parametrize("name", ["kafkajs.pcap", "ipv6.pcap", "sasl-v0.pcap", "tls.pcap"])
@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_of_a_diagram_is_wider_than_the_terminal(name: str, width: int, kwire: Any) -> None:
    text = kwire("read", str(FOLDER / name), "-x", "--elements", "3", columns=width).text
    assert too_wide(text, width) == []
    assert ("packet  " in text) == (width >= 120 or (width >= 72 and name in ("kafkajs.pcap", "ipv6.pcap")))


@every
def test_every_exchange_has_its_line(path: Path, kwire: Any) -> None:
    count = len(exchanges(path))
    for width in EDGES:
        lines = kwire("read", str(path), columns=width).text.splitlines()[1:]
        assert sum(bool(re.match(r" *\d+\.\d{6}  (?!\d+ bytes)", line)) for line in lines) == count
    rows = kwire("read", str(path), "--format", "json").text.splitlines()
    messages = sum(bool(asked) + bool(answered) for *_, asked, answered in exchanges(path))
    assert len(rows) == messages


@every
def test_a_pipe_loses_nothing(path: Path) -> None:
    text = piped("read", str(path), "--not-kafka") + piped("read", str(path))
    assert "…" not in text
    for exchange in Reading([path], tracking=True).exchanges():
        line = f"{exchange.client_id or ''} {exchange.connection.ends[0]}".strip()
        assert line in text


@every
@pytest.mark.parametrize(
    "options",
    [("--slower", "50ms"), ("--errors", "--from", "1"), ("--api", "1", "--topic", "*", "--to", "9")],
    ids=" ".join,
)  # fmt: skip
def test_what_is_left_of_the_lines_is_shown_as_without_the_filter(
    path: Path, options: tuple[str, ...], kwire: Any
) -> None:
    everything = kwire("read", str(path), columns=160).text.splitlines()
    assert set(kwire("read", str(path), *options, columns=160).text.splitlines()) <= set(everything)


@pytest.mark.parametrize(
    ("arguments", "said", "status"),
    [
        ((CLASSIC,), "kwire: 166 exchanges, 9 with errors, 2 without an answer, on 10 connections\n", Exit.OK),
        ((CLASSIC, "--errors"), "kwire: 11 exchanges of 166, 9 with errors, 2 without an answer, on 10 connections\n",
         Exit.OK),
        ((CLASSIC, "--id", "999999"), "kwire: 0 exchanges of 166, on 10 connections\nkwire: no correlation id "
         "999999; 49 there are: 1, 2, 3, 4, 5, 6 and 43 more\n", Exit.OK),
        ((TLS,), "kwire: 1 exchange, 1 without an answer, on 1 connection, "
         "7 connections encrypted, 1 connection not Kafka (--not-kafka)\n",
         Exit.OK),
        ((TLS, "--not-kafka"), "", Exit.OK),
        ((SHARE, "--port", "9"), "kwire: 0 exchanges, on 0 connections\nkwire: no Kafka on port 9; brokers elsewhere "
         "in it: 127.0.0.1:9092\n", Exit.NOT_KAFKA),
        ((SHARE, "--port", "9", "--format", "json"), "kwire: no Kafka on port 9; brokers elsewhere in it: "
         "127.0.0.1:9092\n", Exit.NOT_KAFKA),
    ],
)  # fmt: skip
def test_the_last_words_and_the_status(arguments: tuple[str, ...], said: str, status: Exit, kwire: Any) -> None:
    ran = kwire("read", *arguments)
    assert (ran.err, ran.status) == (said, status)


@pytest.mark.parametrize("form", [(), ("--format", "json"), ("-x",)])
def test_a_malformed_frame_is_a_status(form: tuple[str, ...], kwire: Any, tmp_path: Path) -> None:
    data = bytearray((ROOT / SHARE).read_bytes())
    at = data.index(b"apache-kafka-java") - 1
    data[at] = 0
    path = tmp_path / "broken.pcap"
    path.write_bytes(data)
    ran = kwire("read", str(path), *form)
    assert "malformed" in ran.text
    assert ran.status == Exit.MALFORMED


def test_times_of_the_day(kwire: Any) -> None:
    seconds = kwire("read", SHARE).text.splitlines()[1]
    clock = kwire("read", SHARE, "--utc").text.splitlines()[1]
    assert re.fullmatch(r"0\.\d{6}", seconds.split()[0])
    assert re.fullmatch(r"02:17:15\.\d{6}", clock.split()[0])
    foreign = kwire("read", NOT_KAFKA, "--not-kafka", "--utc").text
    assert re.match(r"05:28:\d\d\.\d{6}  127\.0\.0\.1:46714", foreign)


def test_bytes_of_which_no_frame_could_be_made_have_a_line_with_the_same_time(kwire: Any) -> None:
    text = "7 bytes from 127.0.0.1:9094 skipped at position 0: a size of 352,518,912 bytes cannot be"
    for options in ((), ("--id", "12345")):
        line = kwire("read", TLS, *options, columns=120).text.splitlines()[-1]
        assert line == f"   4.269115  {text}"
    assert kwire("read", TLS, "--id", "12345", "--utc", columns=120).text == f"05:27:47.761825  {text}\n"


def test_bodies_stand_beneath_the_lines_or_in_the_rows(kwire: Any) -> None:
    options = ("--api", "OffsetCommit", "--id", "21")
    lines = kwire("read", CLASSIC, *options, "--body", columns=400).text.splitlines()
    rows = [
        json.loads(line) for line in kwire("read", CLASSIC, *options, "--body", "--format", "json").text.splitlines()
    ]
    found = [json.loads(line.split(" ", 5)[5]) for line in lines if re.match(r" {4}[→←] ", line)]
    assert found == [row["body"] for row in rows]
    plain = kwire("read", CLASSIC, *options, "--format", "json").text.splitlines()
    assert [{key: row[key] for key in row if key != "body"} for row in rows] == [json.loads(line) for line in plain]


def test_inner_opens_what_fields_hold(kwire: Any) -> None:
    options = ("read", CLASSIC, "--api", "JoinGroup", "--body", "--format", "json")
    plain, inner = kwire(*options).text, kwire(*options, "--inner").text
    assert '"Topics": ["classic-orders"]' not in plain
    assert '"Topics": ["classic-orders"]' in inner


@pytest.mark.parametrize("bodies", [(), ("--body",), ("--body", "--inner")])
def test_json_with_a_filter_that_leaves_all_is_json_without_one(bodies: tuple[str, ...], kwire: Any) -> None:
    options = ("read", CLASSIC, "--format", "json", *bodies)
    assert kwire(*options).out == kwire(*options, "--from", "0").out


def test_several_captures_are_listed_in_the_order_of_time(kwire: Any, tmp_path: Path) -> None:
    again = tmp_path / "again.pcap"
    again.write_bytes((ROOT / SHARE).read_bytes())
    rows = [json.loads(row) for row in kwire("read", SHARE, str(again), CLASSIC, "--format", "json").text.splitlines()]
    times = [row["time"] for row in rows if row["kind"] == "request"]
    assert times == sorted(times)
    assert {row["capture"] for row in rows} == {"share.pcap", "again.pcap", "classic.pcap.gz"}
    lines = [line for line in kwire("read", SHARE, CLASSIC).text.splitlines()[1:] if "╰" not in line]
    assert len(lines) == len(exchanges(ROOT / SHARE)) + 166
    assert [float(line.split()[0]) for line in lines] == sorted(float(line.split()[0]) for line in lines)


@pytest.mark.slow
def test_diagrams_name_packets_and_elements_are_bounded(kwire: Any) -> None:
    text = kwire("read", CLASSIC, "--id", "2", "--api", "Metadata", "-x").text
    assert re.search(r"^MetadataRequest v13 · [\d,]+ bytes · correlation id 2 · packet \d+ · ", text, re.M)
    assert "Request Header v2 · flexible" in text
    short = kwire("read", SHARE, "-x", "--elements", "1").text
    assert re.search(r"… \d+ more$", short, re.M)
    assert len(short) < len(kwire("read", SHARE, "-x").text) < len(kwire("read", SHARE, "-x", "--full").text)


@every
@pytest.mark.parametrize("form", ["pcap", "pcapng"])
def test_what_is_saved_reads_as_the_same_exchanges(path: Path, form: str, kwire: Any, tmp_path: Path) -> None:
    target = tmp_path / f"saved.{form}"
    ran = kwire("read", str(path), "--format", form, "-w", str(target))
    assert re.fullmatch(r"kwire: [\d,]+ packets to .*\n(kwire: logins are in it .*\n)?", ran.err)
    assert exchanges(target) == exchanges(path)


@pytest.mark.parametrize(
    "options", [("--api", "Heartbeat"), ("--errors",), ("--client-id", "classic-c2")], ids=" ".join
)
def test_a_part_that_is_saved_has_the_wanted_exchanges(options: tuple[str, ...], kwire: Any, tmp_path: Path) -> None:
    target = tmp_path / "part.pcapng"
    kwire("read", CLASSIC, *options, "-w", str(target))
    rows = kwire("read", CLASSIC, *options, "--format", "json").text.splitlines()
    wanted = {(row["api"], row["correlation_id"], row["kind"]) for row in map(json.loads, rows)}
    found = {
        (m.api.api if m.api else None, m.correlation_id, m.kind)
        for each in Reading([target]).exchanges()
        for m in (each.request, each.response)
        if m is not None
    }
    assert len(wanted & found) >= len(wanted) - 2
    assert sum(len(block) for block in open_capture(target).blocks()) < 556


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed, which would read what is saved")
@pytest.mark.parametrize("name", ["saved.pcap", "saved.pcapng"])
def test_tshark_reads_what_is_saved(name: str, kwire: Any, tmp_path: Path) -> None:
    target = tmp_path / name
    kwire("read", SHARE, "-w", str(target))
    fields = ["-T", "fields", "-e", "frame.time_epoch", "-e", "tcp.len"]
    told = subprocess.run(["tshark", "-r", str(target), *fields], capture_output=True, text=True, check=True).stdout
    packets = [packet for block in open_capture(target).blocks() for packet in block.time.tolist()]
    assert [int(line.split()[0].replace(".", "")) for line in told.splitlines()] == packets


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((SHARE, "--format", "pcap"), "Error: --format pcap needs -w FILE, and captures that are whole"),
        ((SHARE, "-f", "-w", "x.pcapng"), "Error: --format pcapng needs -w FILE, and captures that are whole"),
        ((SHARE, "--format", "xml"), "Error: Invalid value for '--format': 'xml' is not one of"),
        ((SHARE, "--elements", "0"), "Error: Invalid value for '--elements': 0 is not in the range x>=1."),
        ((), "Error: Missing argument 'CAPTURE...'."),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], complaint: str, kwire: Any) -> None:
    ran = kwire("read", *arguments)
    assert complaint in ran.err
    assert ran.status == Exit.USAGE


def test_not_kafka_as_rows(kwire: Any) -> None:
    rows = [json.loads(line) for line in kwire("read", NOT_KAFKA, "--not-kafka", "--format", "json").text.splitlines()]
    assert [row["what"] for row in rows][:4] == ["HTTP request", "TLS ClientHello", "SSH", "ZooKeeper command"]
    assert rows[0]["first_bytes_as_size"] == 1195725856
    assert rows[0]["logged"] == "Invalid receive (size = 1195725856 larger than 104857600)"


def test_a_packed_capture_reads_like_a_plain_one(kwire: Any, tmp_path: Path) -> None:
    packed = tmp_path / "share.pcap"
    packed.write_bytes(gzip.compress((ROOT / SHARE).read_bytes()))
    assert kwire("read", str(packed)).out == kwire("read", SHARE).out
    assert kwire("read", str(packed), "--format", "json").out == kwire("read", SHARE, "--format", "json").out


def test_the_exchange_that_holds_a_packet(kwire: Any) -> None:
    found = kwire("read", "--format", "json", CLASSIC, "--frame", "24", "--frame", "20")
    rows = [json.loads(line) for line in found.text.splitlines()]
    assert [(row["packet"], row["api"]) for row in rows] == [
        (20, "Metadata"), (22, "Metadata"), (21, "CreateTopics"), (24, "CreateTopics"),
    ]  # fmt: skip
    both = [CLASSIC, SHARE]
    for path in both:
        (first, *_) = (json.loads(line) for line in kwire("read", "--format", "json", path).text.splitlines())
        name, number = first["capture"], first["packet"]
        shown = kwire("read", "--format", "json", *both, "--frame", f"{name}:{number}").text.splitlines()
        assert [json.loads(line)["capture"] for line in shown] == [name, name]
        assert json.loads(shown[0]) == first


def test_a_packet_without_a_frame_is_said() -> None:
    done = CliRunner().invoke(cli, ["read", CLASSIC, "--frame", "5"])
    assert "kwire: no Kafka frame in packet 5\n" in done.stderr
    several = CliRunner().invoke(cli, ["read", CLASSIC, SHARE, "--frame", "5"])
    assert (several.exit_code, "of several captures it is FILE:N" in several.stderr) == (2, True)


def test_lines_name_packets() -> None:
    assert piped("read", CLASSIC).splitlines()[1].split()[:2] == ["0.000238", "4→6"]
    wide = CliRunner(env={"COLUMNS": "120"}).invoke(cli, ["read", CLASSIC]).stdout
    assert wide.splitlines()[1].split()[:2] == ["0.000238", "4"]
    narrow = CliRunner(env={"COLUMNS": "80"}).invoke(cli, ["read", "-v", CLASSIC]).stdout
    assert narrow.splitlines()[1].split()[:2] == ["0.000238", "4→6"]
