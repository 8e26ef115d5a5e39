"""kwire extcap: what Wireshark asks, what it gets, and that tshark finds on each packet what it could not read."""

from __future__ import annotations

import gzip
import os
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kwire.errors import Exit

CAPTURES = Path("fixtures/captures")
TSHARK = shutil.which("tshark")
with_tshark = pytest.mark.skipif(TSHARK is None, reason="no tshark")


def _fields(path: Path, *options: str) -> list[list[str]]:
    assert TSHARK
    command = [TSHARK, "-r", str(path), "-d", "tcp.port==9092,kafka", *options]
    found = subprocess.run(command, capture_output=True, timeout=300, check=True).stdout.decode()
    return [line.split("\t") for line in found.splitlines()]


def _plain(name: str, folder: Path) -> Path:
    """The capture, not packed: some builds of tshark read no gzip."""
    [found] = CAPTURES.glob(name + ".pcap*")
    path = folder / f"{name}.pcap"
    path.write_bytes(gzip.decompress(found.read_bytes()) if found.suffix == ".gz" else found.read_bytes())
    return path


def test_wireshark_is_told_of_the_interface(kwire: Any) -> None:
    listed = kwire("extcap", "--extcap-interfaces", "--extcap-version=4.0").text.splitlines()
    assert listed[0].startswith("extcap {version=")
    assert listed[1:] == ["interface {value=kwire}{display=Kafka (kwire)}"]
    assert kwire("extcap", "--extcap-dlts", "--extcap-interface", "kwire").text.startswith("dlt {number=1}")
    config = kwire("extcap", "--extcap-config", "--extcap-interface=kwire").text.splitlines()
    calls = [line.partition("{call=")[2].partition("}")[0] for line in config if line.startswith("arg ")]
    assert calls == ["--device", "--ports", "--read", "--keylog", "--delay"]
    assert "value {arg=0}{value=any}{display=all interfaces}{default=true}" in config


@pytest.mark.parametrize("arguments", [(), ("--capture",), ("--capture", "--fifo", "x", "--ports", "a")])
def test_nobody_else_starts_it(arguments: tuple[str, ...], tmp_path: Path, kwire: Any) -> None:
    named = [str(tmp_path / word) if word == "x" else word for word in arguments]
    assert kwire("extcap", *named).status == Exit.USAGE


def test_it_installs_a_script_that_calls_it(tmp_path: Path, kwire: Any) -> None:
    assert kwire("extcap", "--install", "--folder", str(tmp_path / "extcap")).status == Exit.OK
    [script] = (tmp_path / "extcap").iterdir()
    assert script.stat().st_mode & stat.S_IXUSR
    ran = subprocess.run([script, "--extcap-interfaces"], capture_output=True, timeout=120, check=True,
                         env={**os.environ, "PYTHONPATH": str(Path.cwd())})  # fmt: skip
    assert b"Kafka (kwire)" in ran.stdout


@with_tshark
@pytest.mark.parametrize("name", ["share", "consumer848", "streams"])
@pytest.mark.parametrize("way", ["extcap", "read"])
def test_packets_that_tshark_calls_malformed_are_named(name: str, way: str, tmp_path: Path, kwire: Any) -> None:
    path, made = _plain(name, tmp_path), tmp_path / "made.pcapng"
    if way == "extcap":
        ran = kwire("extcap", "--capture", "--extcap-interface", "kwire", "--fifo", str(made), "--read", str(path))
    else:
        ran = kwire("read", str(path), "-w", str(made), "--comments")
    assert ran.status == Exit.OK
    shown = ("-T", "fields", "-e", "frame.number", "-e", "frame.comment")
    malformed = _fields(made, "-Y", "_ws.malformed", *shown)
    assert len(malformed) == len(_fields(path, "-Y", "_ws.malformed", "-T", "fields", "-e", "frame.number")) > 20
    assert [row for row in malformed if not row[1].startswith("Kafka: ")] == []
    if way == "extcap":
        assert len(_fields(made, *shown)) == len(_fields(path, "-T", "fields", "-e", "frame.number"))


def test_a_capture_with_comments_reads_as_before(tmp_path: Path, kwire: Any) -> None:
    made = tmp_path / "made.pcapng"
    before = kwire("read", "fixtures/captures/classic.pcap.gz").text
    assert kwire("read", "fixtures/captures/classic.pcap.gz", "-w", str(made), "--comments").status == Exit.OK
    assert kwire("read", str(made)).text == before
    assert b"Kafka: HeartbeatRequest v3 from classic-c1" in made.read_bytes()


def test_comments_need_pcapng(tmp_path: Path, kwire: Any) -> None:
    for target in ((), ("-w", str(tmp_path / "x.pcap"))):
        assert kwire("read", "fixtures/captures/classic.pcap.gz", *target, "--comments").status == Exit.USAGE
