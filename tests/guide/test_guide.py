"""The guide: its pages are found, and what README and each page tell to type runs, page by page, in a folder that holds
what a newcomer has: the capture of `kwire demo`, and the fixtures that came with the sources."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import kwire as public
from kwire import guide
from kwire.cli.main import cli
from kwire.errors import UnknownName
from kwire.pipeline.hive import Hive
from kwire.tables.build import build
from kwire.tables.columns import DEFAULT

ROOT = Path(__file__).parents[2]
FOLDER = Path(guide.__file__).parent
PAGES = [ROOT / "README.md", *sorted(FOLDER.glob("*.md"))]
ASKED = "localhost:9092"  # in its place a broker of kwire's own
LIVE = {"sniff", "proxy", "broker", "browse", "check", "fault", "extcap", "pipeline", "demo", "site"}  # see below
BROUGHT = {"kafka-clients-4.5.0.jar", "frame.bin"}  # what one has who reads that page
SHAPE = r"^    (?:\.venv/bin/)?(kwire (?:\\\n|[^$\n])*)$"


def _lines(path: Path) -> Iterator[str]:
    """The commands of a page, in order, without the words beside them."""
    for found in re.findall(SHAPE, path.read_text("utf-8"), re.MULTILINE):
        yield re.split(r"\s{2,}|\s+#\s", found.replace("\\\n", " ").strip())[0]


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with demo.pcapng, as the first page has it made, and the fixtures."""
    import subprocess
    import sys

    folder = tmp_path_factory.mktemp("newcomer")
    made = subprocess.run(
        [sys.executable, "-m", "kwire", "demo", "--capture", "demo.pcapng"],
        cwd=folder, capture_output=True, timeout=300, check=False,
    )  # fmt: skip
    assert (made.returncode, (folder / "demo.pcapng").exists()) == (0, True)
    (folder / "fixtures").symlink_to(ROOT / "fixtures")
    for name in ("captures", "lake"):  # as the page on Spark has them made
        (folder / name).mkdir()
    lake = Hive(str(folder / "lake"), "run")
    build([folder / "demo.pcapng"], DEFAULT, lake.write)
    lake.close()
    return folder


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    from kwire.testing import Broker

    with Broker(topics={"orders": 3}) as one:
        yield one.address


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_what_a_page_tells_to_type_runs(
    path: Path, newcomer: Path, broker: str, kwire: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KWIRE_CONTROL", "control")
    monkeypatch.chdir(newcomer)
    for line in _lines(path):
        words = shlex.split(line.replace(ASKED, broker).partition(" | ")[0])[1:]
        if words[0] in LIVE or words == ["sql", "demo.pcapng"]:
            _understood(words)
        elif not BROUGHT & set(words):
            _run(line, words, newcomer, kwire)


BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PYTHON = BLOCK.findall((FOLDER / "python.md").read_text("utf-8"))


@pytest.mark.slow
def test_the_blocks_of_the_python_page_run_one_after_the_other(newcomer: Path) -> None:
    import subprocess
    import sys

    (newcomer / "page.py").write_text("\n".join(PYTHON), "utf-8")
    ran = subprocess.run(  # its own process: it binds ports to a layer of scapy
        [sys.executable, "page.py"], cwd=newcomer, capture_output=True, timeout=300, check=False, text=True,
        encoding="utf-8", env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    told = ["at GenerationId", "no message", "neither pcap", "exists already", "definition:1"]
    assert [one for one in told if one not in ran.stdout] == []
    assert "###[ Kafka ]###" in ran.stdout


@pytest.mark.slow
def test_the_tests_of_the_brokers_page_pass_as_they_stand(tmp_path: Path) -> None:
    import subprocess
    import sys

    pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    page = (FOLDER / "test-broker.md").read_text("utf-8")
    (tmp_path / "test_page.py").write_text("\n".join(BLOCK.findall(page)), "utf-8")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_page.py"],
        cwd=tmp_path, capture_output=True, timeout=300, check=False, text=True,
    )  # fmt: skip
    assert "4 passed" in ran.stdout, ran.stdout + ran.stderr


def test_the_python_page_shows_every_public_name() -> None:
    shown = set(re.findall(r"\bkwire\.(\w+)", "\n".join(PYTHON)))
    assert [name for name in public.__all__ if name not in shown] == []


def _run(line: str, words: list[str], folder: Path, kwire: Callable[..., Any]) -> None:
    stdin, out = b"", None
    for sign in set(words) & {"<", ">"}:
        at = words.index(sign)
        file = folder / words[at + 1]
        words = words[:at] + words[at + 2 :]
        if sign == ">":
            out = file
        else:
            stdin = file.read_bytes() if file.suffix != ".sql" else b"select count(*) from messages"
    if "-w" in words and (folder / words[words.index("-w") + 1]).exists():
        words.append("--force")
    ran = kwire(*words, stdin=stdin, folder=folder)
    assert ran.status in (0, 1), f"{line}: {ran.err}"
    assert ran.out or ran.err or "--not-kafka" in words, line
    if out is not None:
        out.write_bytes(ran.out)


def _understood(words: list[str]) -> None:
    """What needs an interface, a person or a cluster, or goes on: the command takes these options and values."""
    context = click.Context(cli)
    command = cli.get_command(context, words[0])
    while isinstance(command, click.Group):
        context, words = command.make_context(words[0], words[1:], context), words[1:]
        command = command.get_command(context, words[0])
    assert command is not None
    command.make_context(words[0], words[1 : words.index(">>") if ">>" in words else None], context)


def test_every_page_has_a_heading_and_a_summary() -> None:
    pages = [guide.page(name) for name in guide.names()]
    assert len(pages) > 12
    assert all(page.text.startswith("# ") and page.title and page.summary for page in pages)


def test_order_names_pages_that_there_are() -> None:
    assert set(guide.ORDER) == set(guide.names())


def test_an_unknown_page_gets_the_nearest() -> None:
    with pytest.raises(UnknownName) as raised:
        guide.page("eviction")
    assert raised.value.nearest[0] == "evictions"
