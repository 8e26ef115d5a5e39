"""--keylog and SSLKEYLOGFILE: what is inside TLS is read, and what is not says why."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from kwire.cli.main import cli
from kwire.errors import Exit

FOLDER = Path(__file__).parents[2] / "fixtures/captures/tls-kafka"
CAPTURE, KEYS = str(FOLDER / "capture.pcap.gz"), str(FOLDER / "keys.log")


def test_a_decrypted_connection_is_one_like_any_other(kwire: Any) -> None:
    result = kwire("read", CAPTURE, "--keylog", KEYS, "--format", "json")
    rows = [json.loads(line) for line in result.text.splitlines()]
    assert result.status == Exit.OK
    assert len({row["connection"] for row in rows}) == 43
    assert {row["quality"] for row in rows} <= {"ok", "truncated"}
    assert all(row["time"] <= row["last_time"] for row in rows)


@pytest.mark.parametrize("command", ["read", "stats", "clients", "groups"])
def test_encrypted_is_not_nothing(command: str, kwire: Any) -> None:
    result = kwire(command, CAPTURE)
    assert result.status == Exit.OK
    assert "43 TLS connections that only keys can open: --keylog FILE" in result.err


def test_redacting_what_is_encrypted_is_not_nothing(kwire: Any, tmp_path: Path) -> None:
    result = kwire("redact", CAPTURE, "-o", str(tmp_path / "r.pcapng"))
    assert (result.status, "nothing" in result.err) == (Exit.OK, False)
    assert "43 TLS connections: all blank" in result.err


def commands(group: click.Group, *before: str) -> Iterator[tuple[str, click.Command]]:
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, *before, name)
        else:
            yield " ".join([*before, name]), command


def test_every_command_that_reads_captures_takes_key_logs() -> None:
    """redact has none: what it writes lies in the same records, and of those only the lengths stay."""
    takes = {}
    for name, command in commands(cli):
        reads = any(
            str(given.metavar or given.name).upper().startswith(("CAPTURE", "PATHS")) for given in command.params
        )
        keys = any("--keylog" in option.opts for option in command.params)
        takes[name] = keys
        assert keys or not reads or name == "redact", name
    named = {
        "read",
        "sniff",
        "stats",
        "clients",
        "groups",
        "trace",
        "doctor",
        "audit",
        "table",
        "sql",
        "decode",
        "report",
    }
    assert {name for name in {*named, "pipeline run", "diff", "browse", "what-if"} if not takes[name]} == set()


def test_the_environment_names_one_which_is_said(kwire: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSLKEYLOGFILE", KEYS)
    result = kwire("read", CAPTURE)
    assert f"TLS keys from {KEYS} (SSLKEYLOGFILE)" in result.err
    assert "on 43 connections" in result.err


def test_why_something_is_not_decrypted_is_said(kwire: Any, tmp_path: Path) -> None:
    some = tmp_path / "some.log"
    some.write_text("".join(line for line in Path(KEYS).read_text().splitlines(True) if line.startswith("RSA")))
    result = kwire("read", CAPTURE, "--keylog", str(some))
    assert "1 TLS connection not decrypted: no key for client random " in result.err
    assert "19 more TLS connections not decrypted (kwire read --not-kafka says why)" in result.err
    shown = kwire("read", CAPTURE, "--keylog", str(some), "--not-kafka", "--format", "json").text.splitlines()
    rows = [json.loads(line)["tls"] for line in shown]
    assert all(row["why"] == f"no key for client random {row['client_random']}" for row in rows)
    assert len(rows) == 24


def test_a_handshake_that_began_before_is_listed_beside_decrypted_connections(kwire: Any, tmp_path: Path) -> None:
    """Also where others show that its broker speaks Kafka."""
    data = gzip.decompress(Path(CAPTURE).read_bytes())
    at = 24
    for _ in range(4):  # SYN, SYN-ACK, ACK, ClientHello
        at += 16 + int.from_bytes(data[at + 8 : at + 12], "little")
    late = tmp_path / "late.pcap"
    late.write_bytes(data[:24] + data[at:])
    result = kwire("read", str(late), "--keylog", KEYS)
    assert "on 42 connections, 1 connection encrypted (--not-kafka)" in result.err
    assert "skipped" not in result.text
    shown = kwire("read", str(late), "--keylog", KEYS, "--not-kafka", "--format", "json").text.splitlines()
    whys = [json.loads(line)["tls"]["why"] for line in shown]
    assert whys == ["the handshake is not whole: packets of it are missing or cut"]


def test_what_is_no_key_log_is_said(kwire: Any, tmp_path: Path) -> None:
    other = tmp_path / "other.log"
    other.write_text("hello\nyou\n")
    assert f"{other}: 2 lines are not a key log's" in kwire("read", CAPTURE, "--keylog", str(other)).err
    missing = kwire("read", CAPTURE, "--keylog", str(tmp_path / "no.log"))
    assert missing.status != Exit.OK
    assert "no.log" in missing.err


def test_decode_shows_the_record_beside_the_packet(kwire: Any) -> None:
    rows = kwire("read", CAPTURE, "--keylog", KEYS, "--format", "json").text.splitlines()
    largest = max((json.loads(line) for line in rows), key=lambda row: row["size"])
    name, index = largest["connection"].split(">")[0], str(largest["index"])
    found = kwire("decode", CAPTURE, "--connection", name, "--index", index, "--keylog", KEYS, "--format", "json")
    text = found.text.strip()
    while text:
        record, end = json.JSONDecoder().raw_decode(text)
        text = text[end:].strip()
        inside = record["tls_records"]
        assert inside[0]["position"] <= record["position"]
        assert sum(one["size"] for one in inside) >= record["size"] + 4
    assert "TLS record" in kwire("decode", CAPTURE, "--connection", name, "--index", index, "--keylog", KEYS).text


def test_decode_of_what_is_encrypted_says_so(kwire: Any) -> None:
    assert "43 TLS connections that only keys can open" in kwire("decode", CAPTURE, "--frame", "20").err


def test_a_key_log_to_write_needs_tls_and_is_kept_without_force(kwire: Any, tmp_path: Path) -> None:
    target = tmp_path / "keys.log"
    assert "--keylog belongs to --tls" in kwire("call", "127.0.0.1:1", "Metadata", "--keylog", str(target)).err
    target.write_text("precious")
    refused = kwire("call", "127.0.0.1:1", "Metadata", "--tls", "--keylog", str(target))
    assert "--force overwrites it" in refused.err
    assert target.read_text() == "precious"


def test_the_broker_and_the_client_write_the_same_secrets(tmp_path: Path) -> None:
    import ssl

    from kwire.cli.keylogs import written
    from kwire.client.security import Security
    from kwire.outputs import Output

    target = tmp_path / "keys.log"
    with written(Output(target, private=True, force=False), True) as log:
        assert log == target
        assert target.stat().st_mode & 0o777 == 0o600
        context = Security(True, insecure=True, keylog=log).context()
        assert isinstance(context, ssl.SSLContext)
        assert context.keylog_filename == str(target)
    assert target.exists()


def test_a_capture_with_its_secrets_needs_no_key_log(kwire: Any, tmp_path: Path) -> None:
    target = tmp_path / "part.pcapng"
    chosen = ("--client-id", "kp-1.2")
    wrote = kwire("read", CAPTURE, "--keylog", KEYS, *chosen, "-w", str(target), "--with-secrets")
    assert "TLS secrets: who has" in wrote.err
    assert target.stat().st_mode & 0o777 == 0o600
    whole = kwire("read", CAPTURE, "--keylog", KEYS, *chosen, "--format", "json").text.splitlines()
    part = kwire("read", str(target), *chosen, "--format", "json").text.splitlines()
    keys = ("connection", "kind", "index", "position", "time", "api", "correlation_id", "quality")
    assert [[json.loads(row)[key] for key in keys] for row in part] == [
        [json.loads(row)[key] for key in keys] for row in whole
    ]
    other = tmp_path / "sealed.pcapng"
    kwire("read", CAPTURE, "--keylog", KEYS, *chosen, "-w", str(other))
    assert "only keys can open" in kwire("read", str(other)).err
    assert kwire("read", CAPTURE, "-w", str(tmp_path / "x.pcap"), "--with-secrets").status == Exit.USAGE
