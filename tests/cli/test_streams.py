"""Captures from stdin and pipes are read twice from copies, of which nothing stays."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from kwire.cli.streams import readable_twice

CAPTURE = Path(__file__).parents[2] / "fixtures" / "captures" / "classic.pcap.gz"
PART = ("--api", "JoinGroup", "-w")


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def test_a_part_of_what_comes_on_stdin(temporary: Path, tmp_path: Path, kwire: Any) -> None:
    ran = kwire("read", "-", *PART, str(tmp_path / "stdin.pcap"), stdin=CAPTURE.read_bytes())
    there = kwire("read", str(CAPTURE), *PART, str(tmp_path / "file.pcap"))
    assert (ran.status, there.status) == (0, 0)
    assert (tmp_path / "stdin.pcap").read_bytes() == (tmp_path / "file.pcap").read_bytes()
    assert list(temporary.iterdir()) == []


def test_a_part_of_what_comes_through_a_pipe(temporary: Path, tmp_path: Path, kwire: Any) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(CAPTURE.read_bytes()))
    writer.start()
    ran = kwire("read", str(pipe), *PART, "-")
    writer.join(60)
    assert ran.out == kwire("read", str(CAPTURE), *PART, "-").out != b""
    assert list(temporary.iterdir()) == []


def test_files_stay_what_they_are() -> None:
    with readable_twice((str(CAPTURE), "no such file")) as paths:
        assert paths == (str(CAPTURE), "no such file")
