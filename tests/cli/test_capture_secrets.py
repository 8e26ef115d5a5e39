"""What logins hold is withheld in every view of a capture unless it is asked for; text from the wire is shown, never
obeyed."""

from __future__ import annotations

import base64
import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from struct import pack
from typing import Any

import pytest
from click.testing import CliRunner

import kwire as api
from kwire.capture.save import PcapWriter
from kwire.cli.main import cli
from kwire.session.reading import Reading

ROOT = Path(__file__).parents[2]
SASL, BARE = "fixtures/captures/sasl.pcap.gz", "fixtures/captures/sasl-v0.pcap"
captures = pytest.mark.parametrize("path", [SASL, BARE], ids=["sasl", "sasl-v0"])


def _raw(path: str) -> bytes:
    data = (ROOT / path).read_bytes()
    return gzip.decompress(data) if path.endswith(".gz") else data


def _secrets(path: str) -> set[bytes]:
    """Passwords, and every proof and signature of a SCRAM login."""
    data = _raw(path)
    found = set(re.findall(rb"fixture-secret-[a-z]+", data)) | set(re.findall(rb",p=([A-Za-z0-9+/=]{40,})", data))
    return found | set(re.findall(rb"v=([A-Za-z0-9+/=]{40,})", data))


def _forms(secret: bytes) -> Iterator[str]:
    """A secret as it could stand in an output: as it is, as hex, as a part of base64 wherever it begins."""
    text = secret.decode()
    yield text
    yield from (text[at : at + 12] for at in (0, len(text) - 12))
    yield secret.hex()
    yield secret[8:14].hex(" ")
    for lead in range(3):
        whole = base64.b64encode(bytes(lead) + secret).decode()
        yield whole[4 if lead else 0 : 24]


def leaked(text: str, path: str) -> list[str]:
    joined = re.sub(r"\s+", " ", text)
    return [
        form
        for secret in _secrets(path)
        for form in _forms(secret)
        if form in text or form in joined or form in text.replace("\n", "")
    ]


VIEWS = [
    ("read", "PATH"), ("read", "PATH", "-x", "--full"), ("read", "PATH", "--body"),
    ("read", "PATH", "--body", "--inner"), ("read", "PATH", "--format", "json"),
    ("read", "PATH", "--format", "json", "--body"), ("read", "PATH", "--format", "json", "--body", "--inner"),
    ("read", "PATH", "--format", "json", "--body", "--from", "0"), ("read", "PATH", "--errors", "-x", "--full"),
    ("read", "PATH", "--not-kafka"), ("read", "PATH", "--not-kafka", "--format", "json"), ("stats", "PATH", "--all"),
    ("stats", "PATH", "--format", "json"), ("clients", "PATH"), ("clients", "PATH", "--format", "json"),
]  # fmt: skip


def test_there_are_secrets_to_look_for() -> None:
    assert len(_secrets(SASL)) > 10
    assert {b"fixture-secret-plain", b"fixture-secret-wrong"} <= _secrets(BARE)
    assert leaked(base64.b64encode(b"\0user\0fixture-secret-plain").decode(), BARE)
    assert leaked(b"fixture-secret-plain".hex(), SASL)


@captures
@pytest.mark.parametrize("view", VIEWS, ids=" ".join)
def test_no_view_shows_a_secret(path: str, view: tuple[str, ...], kwire: Any) -> None:
    arguments = [path if word == "PATH" else word for word in view]
    ran = kwire(*arguments, columns=80)
    assert leaked(ran.text + ran.err, path) == []
    assert "json" in view or leaked(CliRunner(env={"COLUMNS": None}).invoke(cli, arguments).output, path) == []


def _logins(path: str) -> Iterator[Any]:
    for exchange in Reading([ROOT / path]).exchanges():
        if exchange.first.token or exchange.api in ("SaslAuthenticate", "SaslHandshake"):
            yield exchange


@captures
@pytest.mark.parametrize("form", ["text", "tree", "json", "spans", "hex", "svg", "html"])
def test_no_format_of_decode_shows_a_secret(path: str, form: str, kwire: Any) -> None:
    seen = 0
    for exchange in list(_logins(path))[:7]:
        for message in (exchange.request, exchange.response):
            if message is None:
                continue
            options = ("--frame", str(message.packet), "--format", form, "--full", "--inner", "--notes")
            assert leaked(kwire("decode", path, *options).text, path) == []
            seen += 1
    assert seen > 8


@captures
@pytest.mark.parametrize("field", ["AuthBytes", "token"])
def test_no_field_alone_shows_a_secret(path: str, field: str, kwire: Any) -> None:
    packets = [str(exchange.request.packet) for exchange in _logins(path) if exchange.request][:10]
    texts = [kwire("decode", path, "--frame", packet, "--field", field).text for packet in packets]
    assert leaked("".join(texts), path) == []
    assert any("withheld" in text for text in texts) == ((field == "token") == (path == BARE))


@captures
@pytest.mark.parametrize(
    "view",
    [("-x", "--full"), ("--body",), ("--body", "--format", "json"), ("--body", "--format", "json", "--to", "99")],
)
def test_secrets_are_shown_when_they_are_asked_for(path: str, view: tuple[str, ...], kwire: Any) -> None:
    found = leaked(kwire("read", path, "--show-secrets", *view, columns=400).text, path)
    assert found


@pytest.mark.parametrize("drop", range(1, 8))
def test_a_capture_that_begins_in_the_middle_of_a_login_shows_no_secret(drop: int, kwire: Any, tmp_path: Path) -> None:
    data, at, packets = _raw(BARE), 24, []
    while at < len(data):
        end = at + 16 + int.from_bytes(data[at + 8 : at + 12], "little")
        packets.append(data[at:end])
        at = end
    path = tmp_path / "cut.pcap"
    path.write_bytes(data[:24] + b"".join(packets[drop:]))
    for options in ((), ("-x", "--full"), ("--body", "--format", "json"), ("--not-kafka",)):
        ran = kwire("read", str(path), *options)
        assert leaked(ran.text + ran.err, BARE) == []


# ---------------------------------------------------------------- untrusted text

NASTY = "\x1b]0;owned\x07\x1b[31m\u202egro.live\u2066[bold red]x[/]:smile:\r\n\t\x9b2J\x00" + "W" * 300
RAW = "\x1b\x07\r\t\x9b\x00\u202e\u2066"


def _packet(side: int, seq: int, data: bytes, flags: int = 24) -> bytes:
    ends = [(bytes([10, 0, 0, 7]), 51522), (bytes([10, 0, 0, 2]), 9092)]
    (source, sport), (target, dport) = ends[side], ends[1 - side]
    tcp = pack(">HHIIHHHH", sport, dport, seq, 0, 5 << 12 | flags, 65535, 0, 0) + data
    return pack(">BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0) + source + target + tcp


def _frame(head: bytes, body: bytes) -> bytes:
    return pack(">i", len(head + body)) + head + body


def _capture(path: Path, asked: list[bytes], answers: list[bytes]) -> str:
    seq, number = [1, 1], 0
    with path.open("wb") as file:
        writer = PcapWriter(file)
        for side, flags in ((0, 2), (1, 18)):
            data = _packet(side, 0, b"", flags)
            writer.write(number, data, len(data), 101)
        for number, (request, answer) in enumerate(zip(asked, answers, strict=True), 1):
            for side, piece in ((0, request), (1, answer)):
                data = _packet(side, seq[side], piece)
                seq[side] += len(piece)
                writer.write(number * 1_000_000, data, len(data), 101)
    return str(path)


@pytest.fixture
def nasty(tmp_path: Path) -> str:
    """Clients, software, topics, groups, errors and other protocols' words, all made to be obeyed."""
    name = NASTY.encode()
    head = pack(">h", len(name)) + name
    bodies: list[tuple[int, int, str, dict[str, Any], dict[str, Any]]] = [
        (18, 3, "ApiVersions", {"ClientSoftwareName": NASTY, "ClientSoftwareVersion": NASTY}, {}),
        (3, 12, "Metadata", {"Topics": [{"Name": NASTY}]},
         {"ClusterId": NASTY, "Topics": [{"Name": NASTY, "ErrorCode": 3, "Partitions": []}]}),
        (10, 2, "FindCoordinator", {"Key": NASTY}, {"ErrorCode": 15, "ErrorMessage": NASTY, "Host": NASTY}),
        (17, 1, "SaslHandshake", {"Mechanism": NASTY}, {"Mechanisms": [NASTY]}),
        (11, 5, "JoinGroup", {"GroupId": NASTY, "MemberId": NASTY, "ProtocolType": NASTY, "GroupInstanceId": NASTY},
         {"ErrorCode": 79, "ProtocolName": NASTY}),
    ]  # fmt: skip
    plain = pack(">hhih", 3, 0, 77, 1) + b"c"  # a connection that begins like this is Kafka's
    asked = [_frame(plain, api.encode("MetadataRequest", 0, {}))]
    answers = [_frame(pack(">i", 77), api.encode("MetadataResponse", 0, {}))]
    for ident, (key, version, api_name, request, response) in enumerate(bodies):
        tags = b"\0" if (key, version) in ((18, 3), (3, 12)) else b""
        front = pack(">hhi", key, version, ident) + head + tags
        asked.append(_frame(front, api.encode(f"{api_name}Request", version, request)))
        back = pack(">i", ident) + (b"\0" if (key, version) == (3, 12) else b"")
        answers.append(_frame(back, api.encode(f"{api_name}Response", version, response)))
    asked.append(_frame(pack(">hhi", 3, 12, 99) + head + b"\0", api.encode("MetadataRequest", 12, {})))
    answers.append(b"HTTP/1.1 400 \x1b]0;owned\x07\x1b[31m\xe2\x80\xae\x9b2J" + b"Z" * 60 + b"\r\n\r\n" + bytes(200))
    return _capture(tmp_path / "nasty.pcap", asked, answers)


def _wrong(text: str) -> list[str]:
    return [char for char in text if char in RAW or (not char.isprintable() and char != "\n")]


@pytest.mark.parametrize("columns", [60, 80, 120, 200, None])
@pytest.mark.parametrize(
    "view",
    [("read",), ("read", "-x"), ("read", "-x", "--full"), ("read", "--body"), ("read", "--not-kafka"),
     ("read", "--format", "json", "--body"), ("stats",), ("stats", "--format", "json"), ("clients",),
     ("clients", "--format", "json")],
    ids=" ".join,
)  # fmt: skip
def test_text_from_the_wire_is_shown_not_obeyed(view: tuple[str, ...], columns: int | None, nasty: str) -> None:
    name, *options = view
    environment = {"COLUMNS": None if columns is None else str(columns)}
    ran = CliRunner(env=environment).invoke(cli, [name, nasty, *options])
    assert ran.exception is None
    assert _wrong(ran.output) == []
    assert "Metadata" in ran.output or view == ("read", "--not-kafka")
    if columns is not None and "json" not in view:
        wide = [line for line in ran.stdout.splitlines() if len(line) > columns]
        assert [line for line in wide if columns >= 80 or " " in line.strip()] == []
    if columns is None and view == ("read",):
        assert "W" * 300 in ran.stdout, "a pipe gets all of it"
        assert "[bold red]x[/]:smile:" in ran.stdout


@pytest.mark.parametrize("form", ["text", "tree", "json", "spans", "hex", "svg", "html"])
def test_decoded_text_from_the_wire_is_not_obeyed_either(form: str, nasty: str, kwire: Any) -> None:
    for packet in range(3, 15):
        ran = kwire("decode", nasty, "--frame", str(packet), "--format", form)
        assert _wrong(ran.text + ran.err) == []


def test_other_protocols_are_quoted_not_obeyed(kwire: Any, tmp_path: Path) -> None:
    line = b"\x1b]0;x\x07\x9b2J\xe2\x80\xae" + b"Z" * 50
    path = _capture(
        tmp_path / "http.pcap", [b"GET /" + line + b" HTTP/1.1\r\n\r\n"], [b"HTTP/1.1 200 " + line + b"\r\n"]
    )
    for columns in (60, 80, 120):
        ran = kwire("read", path, "--not-kafka", columns=columns)
        assert "HTTP request" in ran.text
        assert _wrong(ran.text) == []
        assert [row for row in ran.text.splitlines() if len(row) > columns] == []
