"""What commands write: never onto what they read, not over a capture that exists, in the form that the name tells."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from attacks import outputs as attacks

from kwire.cli.main import COMMANDS, cli
from kwire.cli.outputs import PACKETS, form_of
from kwire.errors import Exit, OutputError
from kwire.session.reading import Reading

ROOT = Path(__file__).parents[2]
CAPTURES = ROOT / "fixtures" / "captures"
CAPTURE = str(CAPTURES / "ipv6.pcap")
WHOLE = (CAPTURES / "ipv6.pcap").read_bytes()
SMALL = ["--interface", "lo", "--duration", "1s"]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def same(tmp_path: Path) -> Path:
    return Path(shutil.copy(CAPTURE, tmp_path / "same.pcap"))


# ---------------------------------------------------------------- inputs


@pytest.mark.parametrize("link", [None, os.symlink, os.link])
@pytest.mark.parametrize(
    "arguments",
    [
        ("read", "{in}", "--api", "Produce", "-w", "{out}"),
        ("read", "{in}", "--force", "-w", "{out}"),
        ("sql", "{in}", "select 1", "--format", "csv", "-o", "{out}"),
        ("sql", "{in}", "--report", "errors", "--format", "table", "-o", "{out}"),
    ],
)
def test_what_is_read_is_not_written(arguments: tuple[str, ...], link: Any, same: Path, kwire: Any) -> None:
    out = same
    if link:
        out = same.with_name("out")
        link(same, out)
    ran = kwire(*(word.format_map({"in": str(same), "out": str(out)}) for word in arguments))
    assert ran.err == f"kwire: {out}: this is read here too, so nothing is written to it\n"
    assert (ran.status, same.read_bytes()) == (Exit.USAGE, WHOLE)


def test_tables_are_not_written_onto_what_is_read(same: Path, kwire: Any) -> None:
    folder = same.parent / "tables"
    folder.mkdir()
    os.link(same, folder / "messages.parquet")
    ran = kwire("table", str(same), "-o", str(folder))
    assert f"{folder / 'messages.parquet'}: this is read here too" in ran.err
    assert (ran.status, same.read_bytes(), names(folder)) == (Exit.USAGE, WHOLE, ["messages.parquet"])


def test_other_inputs_than_captures_are_spared_too(tmp_path: Path, same: Path, kwire: Any) -> None:
    jar = tmp_path / "kafka-clients-9.9.jar"
    jar.write_bytes(b"precious")
    ran = kwire("read", str(same), "--schema", str(jar), "-w", str(jar), "--force")
    assert "read here too" in ran.err
    assert jar.read_bytes() == b"precious"


# ---------------------------------------------------------------- what exists


def test_a_capture_that_exists_stays_without_force(tmp_path: Path, kwire: Any) -> None:
    target = tmp_path / "old.pcapng"
    target.write_text("old")
    ran = kwire("read", CAPTURE, "-w", str(target))
    assert (ran.err, ran.status) == (f"kwire: {target}: exists already; --force overwrites it\n", Exit.USAGE)
    assert target.read_text() == "old"
    assert kwire("read", CAPTURE, "-w", str(target), "--force").status == Exit.OK
    assert (names(tmp_path), stat.S_IMODE(target.stat().st_mode)) == (["old.pcapng"], 0o600)
    assert len(list(Reading([target]).exchanges())) == len(list(Reading([CAPTURE]).exchanges()))


@pytest.mark.parametrize(
    "arguments",
    [
        ("sniff", *SMALL, "-w"),
        ("broker", "--port", "0", "--capture"),
        ("demo", "-w"),
    ],
)
def test_the_rule_is_that_of_all_commands(arguments: tuple[str, ...], tmp_path: Path, kwire: Any) -> None:
    target = tmp_path / "old.pcapng"
    target.write_text("old")
    ran = kwire(*arguments, str(target))
    assert ran.err.endswith(f"kwire: {target}: exists already; --force overwrites it\n")
    assert (ran.status, target.read_text(), names(tmp_path)) == (Exit.USAGE, "old", ["old.pcapng"])


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "site"])  # its --force is about a folder
def test_who_writes_captures_says_so_in_its_help(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    force = [one for one in command.params if one.name == "force"]
    captures = {
        "-w",
        "--capture",
        "--write",
        *(["--keylog"] if name in ("call", "check", "walk") else []),
        *(["--output"] if name == "redact" else []),
    }
    writes = [one for one in command.params if set(one.opts) & captures and not getattr(one, "is_flag", False)]
    assert len(force) == (1 if writes else 0)
    assert all(getattr(one, "help", "") == "Overwrite a capture or key log that exists." for one in force)


def test_a_port_that_is_taken_leaves_the_file_as_it_was(tmp_path: Path, kwire: Any) -> None:
    import socket

    target, pem = tmp_path / "old.pcapng", tmp_path / "c.pem"
    target.write_text("old")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        more = ("--capture", str(target), "--force", "--tls", "--certificate", str(pem))
        ran = kwire("broker", "--port", port, *more)
    assert "is taken by another program" in ran.err
    assert (ran.status, target.read_text(), names(tmp_path)) == (Exit.USAGE, "old", ["old.pcapng"])


def test_an_interface_that_is_not_there_leaves_the_file_as_it_was(tmp_path: Path, kwire: Any) -> None:
    target = tmp_path / "old.pcapng"
    target.write_text("old")
    ran = kwire("sniff", "-i", "nosuch0", "-w", str(target), "--force")
    assert "no such interface" in ran.err
    assert (target.read_text(), names(tmp_path)) == ("old", ["old.pcapng"])


def test_a_private_key_is_no_place_for_a_certificate(tmp_path: Path, kwire: Any) -> None:
    key = tmp_path / "server.pem"
    key.write_text("-----BEGIN PRIVATE KEY-----\n")
    ran = kwire("broker", "--port", "0", "--tls", "--certificate", str(key))
    assert f"{key}: holds a private key" in ran.err
    assert key.read_text() == "-----BEGIN PRIVATE KEY-----\n"


# ---------------------------------------------------------------- forms


@pytest.mark.parametrize(
    ("name", "asked", "form"),
    [
        ("x.pcap", None, "pcap"), ("x.CAP", None, "pcap"), ("x.pcapng", None, "pcapng"), ("x", None, "pcapng"),
        ("x.2026-11-21", None, "pcapng"), ("10.0.0.7", None, "pcapng"), ("x.pcap", "pcap", "pcap"),
        ("tmp.Xy12", "pcap", "pcap"), ("x.pcap", "pcapng", None), ("x.pcap.gz", None, None), ("x.json", None, None),
        ("x.parquet", "pcap", None),
    ],
)  # fmt: skip
def test_the_name_tells_the_form(name: str, asked: str | None, form: str | None) -> None:
    if form is not None:
        assert form_of(Path(name), PACKETS, asked, "pcapng") == form
        return
    with pytest.raises(OutputError):
        form_of(Path(name), PACKETS, asked, "pcapng")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("sql", CAPTURE, "select 1", "-o", "out.xlsx"), "out.xlsx: no form of this name; there are .json, .jsonl, "),
        (("sql", CAPTURE, "select 1", "-o", "out.xlsx", "--format", "csv"), "out.xlsx: would hold csv, not what its"),
        (("sql", CAPTURE, "select 1", "-o", "out.parquet", "--format", "csv"), "out.parquet: would hold csv, not"),
        (("table", CAPTURE, "-o", "out.xlsx"), "out.xlsx: becomes a folder, with a file for each table"),
        (("read", CAPTURE, "-w", "out.xlsx"), "out.xlsx: no form of this name; there are .pcap, .cap, .pcapng"),
        (("read", CAPTURE, "-w", "out.pcap.gz"), "out.pcap.gz: no form of this name"),
        (("sniff", *SMALL, "-w", "out.csv"), "out.csv: no form of this name"),
        (("broker", "--port", "0", "--capture", "out.csv"), "out.csv: no form of this name"),
        (("demo", "-w", "out.csv"), "out.csv: no form of this name"),
    ],
)
def test_a_name_that_promises_another_form_is_refused(arguments: tuple[str, ...], complaint: str, kwire: Any) -> None:
    ran = kwire(*arguments)
    assert complaint in ran.err
    assert ran.status == Exit.USAGE
    assert list(ROOT.glob("out.*")) == []


# ---------------------------------------------------------------- pipes


def test_packets_to_stdout_are_read_again(kwire: Any) -> None:
    for name in ("-", "/dev/stdout"):
        ran = kwire("read", CAPTURE, "-w", name)
        again = kwire("read", "-", "--format", "json", stdin=ran.out)
        rows = [json.loads(line) for line in again.text.splitlines()]
        there = kwire("read", CAPTURE, "--format", "json").text.splitlines()
        other = {"capture": "", "packet": 0, "last_packet": 0}  # packets of no exchange are left out
        assert [row | other for row in rows] == [json.loads(line) | other for line in there]


def test_results_to_stdout_and_nowhere(kwire: Any) -> None:
    assert kwire("sql", CAPTURE, "select 1 as x", "-o", "-", "--format", "csv").text == "x\n1\n"
    assert kwire("sql", CAPTURE, "select 1 as x", "-o", "/dev/stdout", "--format", "parquet").out[:4] == b"PAR1"
    assert kwire("sql", CAPTURE, "select 1 as x", "-o", "/dev/null").status == Exit.OK
    assert kwire("read", CAPTURE, "-w", "/dev/null").status == Exit.OK


# ---------------------------------------------------------------- signals


WAITING = """
import os, signal, sys, time
from kwire.cli import main, saving

def save(reading, exchanges, kept, output, target, secrets, comments=None):
    with target as file:
        file.write(b"half")
        print("begun", flush=True)
        time.sleep(30)

saving.save = save
sys.argv = ["kwire", "read", *sys.argv[1:]]
main.main()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signals_leave_nothing(number: signal.Signals, tmp_path: Path) -> None:
    target = tmp_path / "x.pcapng"
    running = subprocess.Popen(
        [sys.executable, "-c", WAITING, CAPTURE, "-w", str(target)], stdout=subprocess.PIPE, cwd=ROOT
    )
    assert running.stdout is not None
    assert running.stdout.readline() == b"begun\n"
    assert len(names(tmp_path)) == 1
    running.send_signal(number)
    assert running.wait(120) == 128 + number
    running.stdout.close()
    assert names(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_broker_that_is_ended_leaves_a_whole_capture(number: signal.Signals, tmp_path: Path) -> None:
    target = tmp_path / "x.pcapng"
    running = subprocess.Popen(
        [sys.executable, "-m", "kwire", "broker", "--port", "0", "--capture", str(target)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT,
    )  # fmt: skip
    assert running.stdout is not None
    address = running.stdout.readline().decode().split()[-1]
    assert names(tmp_path) == ["x.pcapng"]
    subprocess.run(
        [sys.executable, "-m", "kwire", "call", address, "Metadata"], cwd=ROOT, check=True, capture_output=True
    )
    assert any(exchange.response for exchange in Reading([target]).exchanges())
    running.send_signal(number)
    running.communicate(timeout=60)
    assert (running.returncode, names(tmp_path)) == (0, ["x.pcapng"])
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert any(exchange.response for exchange in Reading([target]).exchanges())


# ---------------------------------------------------------------- harm


def test_what_others_left_is_gone_afterwards(kwire: Any, tmp_path: Path) -> None:
    ran = kwire(*attacks.parts_in_the_folder(tmp_path, 0.001))
    assert (ran.status, names(tmp_path)) == (Exit.OK, ["out.pcapng", "x.pcap"])


def test_spreadsheets_and_markdown_get_no_orders(kwire: Any, tmp_path: Path) -> None:
    assert kwire(*attacks.formulas_as_csv(tmp_path, 0.001)).status == Exit.OK
    assert kwire(*attacks.formulas_as_tables(tmp_path, 0.001)).status == Exit.OK
    assert kwire(*attacks.links_as_markdown(tmp_path, 0.001)).status == Exit.OK
    for path in (tmp_path / "out.csv", *(tmp_path / "out").glob("*.csv")):
        with path.open(newline="") as file:
            cells = [cell for row in csv.reader(file) for cell in row if not re.fullmatch(r"-?[\d.]+", cell)]
        assert cells
        assert [cell for cell in cells if cell[:1] in set("=+-@\t\r") or not cell.isprintable()] == []
    text = (tmp_path / "out.md").read_text()
    assert text.replace("\n", "").isprintable()
    assert "HYPERLINK" in text
    assert re.findall(r"\| [^`|]*(?:<b>|\[x\]|http)", text) == []
