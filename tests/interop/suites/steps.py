"""What suites and targets have in common: a suite's needs, results, and commands that must work or may not."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as Xml
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

PATIENCE = 1_500  # seconds for one suite
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
LATER, TWICE = "passed at the second try", "failed twice"
Results = dict[str, str]


class Needs(NamedTuple):
    """What a suite asks of its brokers. first: the id of the first node. port: of the first node's listener, its
    others and the further nodes follow; 0: any. users: name and password, for PLAIN. scram: name, mechanism,
    password."""

    nodes: int = 1
    listeners: tuple[str, ...] = ("PLAINTEXT",)
    first: int = 0
    port: int = 0
    users: tuple[tuple[str, str], ...] = ()
    scram: tuple[tuple[str, str, str], ...] = ()
    partitions: int = 4
    config: tuple[tuple[str, str], ...] = ()


class Place(NamedTuple):
    """Brokers that stand. at: protocol to the addresses of all nodes; certificate: what clients trust."""

    at: dict[str, str]
    certificate: str = ""

    @property
    def plain(self) -> str:
        return self.at["PLAINTEXT"]


class Suite(NamedTuple):
    """build: fetches and builds in the folder, once. run: against brokers, the tests named or all. checkout: the
    variable that names the client's own repository, where the registries' package has no tests."""

    version: str
    needs: Needs
    build: Callable[[Path], None]
    run: Callable[[Path, Place, list[str]], Results]
    checkout: str = ""


def must(*command: str | Path, cwd: Path | None = None) -> str:
    """What a step of a build printed. Raises SystemExit when it failed."""
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{(done.stdout + done.stderr)[-2_000:]}")
    return done.stdout


def call(*command: str | Path, cwd: Path | None = None, **env: str) -> str:
    """What it printed, failed or not, also when it took too long."""
    try:
        done = subprocess.run(
            [str(word) for word in command], cwd=cwd, env={**os.environ, **env}, timeout=PATIENCE, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace",
        )  # fmt: skip
    except subprocess.TimeoutExpired as late:
        return (late.stdout or b"").decode("utf-8", "replace") if isinstance(late.stdout, bytes) else late.stdout or ""
    return done.stdout


def pytest_results(folder: Path, files: list[str], *options: str, **env: str) -> Results:
    report = folder / "report.xml"
    report.unlink(missing_ok=True)
    words = ["-q", "-p", "no:cacheprovider", "--junitxml", str(report), "-o", "junit_family=xunit1", *options]
    out = call(sys.executable, "-m", "pytest", *words, *files, cwd=folder, PYTHONPATH=str(folder), **env)
    if not report.exists():
        raise SystemExit(out[-2_000:])
    return junit(report)


def junit(report: Path) -> Results:
    """A JUnit file's verdicts."""
    found: Results = {}
    for case in Xml.parse(report).getroot().iter("testcase"):
        bad = case.find("failure") is not None or case.find("error") is not None
        verdict = FAILED if bad else SKIPPED if case.find("skipped") is not None else PASSED
        found[f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"] = verdict
    return found
