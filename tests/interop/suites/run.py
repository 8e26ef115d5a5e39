"""The client libraries' own integration suites against kwire, kfake and a real broker, as a table.

    python tests/interop/suites/run.py [SUITE...] [--target kwire,kfake,kafka] [--work DIR] [--json FILE]

Suites come from the package registries at the versions below and are built once, in DIR; what they need is there or
installed there: Go, Cargo, pip. kfake is built from its module; the real broker is KWIRE_LAB (a folder with jars/ and
broker.sh beside it, or named by KWIRE_LAB_SCRIPT). Every suite gets a broker that has just started. A row of the table
is a suite, a cell what passed and failed; beneath it stand the tests that fail on kwire, each with what the real broker
did, and suites/known.txt's words for those that are explained. Not part of the normal suite: it takes many minutes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import time
import xml.etree.ElementTree as Xml
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
GO_MODULE = "github.com/twmb/franz-go"
FRANZ_GO, KAFKA_PYTHON, RSKAFKA = "v1.22.2", "2.3.0", "0.6.0"
PATIENCE = 1_500  # seconds for one suite
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
Results = dict[str, str]


class Suite(NamedTuple):
    """build: fetches and builds in the folder, once. run: against an address (host:port of all nodes)."""

    version: str
    nodes: int
    build: Callable[[Path], None]
    run: Callable[[Path, str], Results]


def must(*command: str | Path, cwd: Path | None = None) -> str:
    """What a step of a build printed. Raises SystemExit when it failed."""
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{(done.stdout + done.stderr)[-2_000:]}")
    return done.stdout


def call(*command: str | Path, cwd: Path | None = None, **env: str) -> str:
    """What it printed, failed or not."""
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env={**os.environ, **env}, timeout=PATIENCE, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace",
    )  # fmt: skip
    return done.stdout


# ---------------------------------------------------------------- franz-go


def build_kgo(folder: Path) -> None:
    found = json.loads(must("go", "mod", "download", "-json", f"{GO_MODULE}@{FRANZ_GO}", cwd=folder))
    shutil.copytree(found["Dir"], folder / "franz-go", dirs_exist_ok=True)
    for path in (folder / "franz-go").rglob("*"):
        path.chmod(path.stat().st_mode | 0o200)
    must("go", "test", "-c", "-o", folder / "kgo.test", "./pkg/kgo", cwd=folder / "franz-go")


def run_kgo(folder: Path, address: str) -> Results:
    copies = str(min(3, address.count(",") + 1))
    out = call(
        folder / "kgo.test", "-test.v", "-test.timeout", f"{PATIENCE - 20}s", cwd=folder / "franz-go" / "pkg" / "kgo",
        KGO_SEEDS=address, KGO_TEST_RECORDS="20000", KGO_TEST_RF=copies,
    )  # fmt: skip
    words = {"PASS": PASSED, "FAIL": FAILED, "SKIP": SKIPPED}
    return {name: words[word] for word, name in re.findall(r"^--- (PASS|FAIL|SKIP): (\S+)", out, re.MULTILINE)}


# ---------------------------------------------------------------- Python


SERVICE = """
class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port

    def open(self):
        pass

    start = stop = close = dump_logs = open


class SpawnedService:
    pass
"""


def build_kafka_python(folder: Path) -> None:
    pip = [sys.executable, "-m", "pip"]
    print(
        call(*pip, "download", "-q", "--no-deps", "--no-binary", ":all:", f"kafka-python=={KAFKA_PYTHON}", "-d", folder)
    )
    with tarfile.open(next(folder.glob("kafka*python-*.tar.gz"))) as packed:
        packed.extractall(folder, filter="data")
    (folder / f"kafka_python-{KAFKA_PYTHON}").rename(folder / "source")
    tests = folder / "source" / "test"
    (tests / "__init__.py").touch()  # the archive lacks this, and what starts and stops brokers
    (tests / "service.py").write_text(SERVICE)
    (folder / "source" / "servers" / "4.0.0" / "kafka-bin").mkdir(parents=True)  # looked for, and not used


def run_kafka_python(folder: Path, address: str) -> Results:
    first = address.split(",")[0]
    wanted = ["admin_integration", "consumer_group", "consumer_integration", "producer_integration"]
    files = [f"test/integration/test_{name}.py" for name in wanted]
    return pytest_results(folder / "source", files, KAFKA_URI=f"kafka://{first}", KAFKA_VERSION="4.0.0")


def pytest_results(folder: Path, files: list[str], **env: str) -> Results:
    report = folder / "report.xml"
    report.unlink(missing_ok=True)
    options = ["-q", "-p", "no:cacheprovider", "--junitxml", str(report), "-o", "junit_family=xunit1"]
    out = call(sys.executable, "-m", "pytest", *options, *files, cwd=folder, PYTHONPATH=str(folder), **env)
    if not report.exists():
        raise SystemExit(out[-2_000:])
    found: Results = {}
    for case in Xml.parse(report).getroot().iter("testcase"):
        bad = case.find("failure") is not None or case.find("error") is not None
        verdict = FAILED if bad else SKIPPED if case.find("skipped") is not None else PASSED
        found[f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"] = verdict
    return found


# ---------------------------------------------------------------- Rust


def build_rskafka(folder: Path) -> None:
    (folder / "src").mkdir()
    (folder / "src" / "lib.rs").touch()
    manifest = f'[package]\nname="fetch"\nversion="0.1.0"\nedition="2021"\n[dependencies]\nrskafka="={RSKAFKA}"\n'
    (folder / "Cargo.toml").write_text(manifest)
    must("cargo", "fetch", "-q", cwd=folder)
    found = json.loads(must("cargo", "metadata", "--format-version", "1", "--offline", cwd=folder).splitlines()[-1])
    source = next(Path(each["manifest_path"]).parent for each in found["packages"] if each["name"] == "rskafka")
    shutil.copytree(source, folder / "source")
    (folder / "source" / "rust-toolchain.toml").unlink(missing_ok=True)
    must("cargo", "test", "-q", "--no-run", "--tests", cwd=folder / "source")


def run_rskafka(folder: Path, address: str) -> Results:
    out = call(
        "cargo", "test", "--no-fail-fast", "--tests", "--", "--test-threads", "2", cwd=folder / "source",
        TEST_INTEGRATION="1", KAFKA_CONNECT=address, TEST_BROKER_IMPL="kafka",
    )  # fmt: skip
    words = {"ok": PASSED, "FAILED": FAILED, "ignored": SKIPPED}
    return {
        name: words[word] for name, word in re.findall(r"^test (\S+) \.\.\. (ok|FAILED|ignored)", out, re.MULTILINE)
    }


SUITES = {
    "kgo": Suite(FRANZ_GO, 3, build_kgo, run_kgo),
    "kafka-python": Suite(KAFKA_PYTHON, 1, build_kafka_python, run_kafka_python),
    "rskafka": Suite(RSKAFKA, 1, build_rskafka, run_rskafka),
}

# ---------------------------------------------------------------- targets


@contextlib.contextmanager
def kwire(nodes: int, _: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "kwire", "broker", "-q", "--port", "0", "--nodes", str(nodes), "--events", "json"]
    with started([*command, "--partitions", "4", "--super-user", "ANONYMOUS"]) as process:
        for line in process.stdout or ():
            row = json.loads(line)
            if row["kind"] == "ready":
                yield row["bootstrap"]
                return


@contextlib.contextmanager
def kfake(nodes: int, work: Path) -> Iterator[str]:
    program = work / "kfake" / "kfake"
    if not program.exists():
        shutil.copytree(HERE / "kfake", program.parent, dirs_exist_ok=True)
        must("go", "build", "-o", program, ".", cwd=program.parent)
    with started([str(program), str(nodes)]) as process:
        addresses: list[str] = []
        for line in process.stdout or ():
            if line.strip() == "ready":
                yield ",".join(addresses)
                return
            addresses.append(line.strip())


@contextlib.contextmanager
def kafka(_: int, work: Path) -> Iterator[str]:
    """One node, with its data fresh."""
    lab = Path(os.environ["KWIRE_LAB"])
    script = os.environ.get("KWIRE_LAB_SCRIPT", str(lab / "broker.sh"))
    folder = work / "kafka"
    folder.mkdir(exist_ok=True)
    with contextlib.suppress(FileExistsError):
        (folder / "jars").symlink_to(lab / "jars")
    shutil.rmtree(folder / "data", ignore_errors=True)
    (folder / "extra.properties").write_text("num.partitions=4\n")
    os.environ["EXTRA_PROPS"] = str(folder / "extra.properties")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    print(call("sh", script, "start", folder, port), end="", file=sys.stderr)
    try:
        yield f"127.0.0.1:{port}"
    finally:
        call("sh", script, "stop", folder)


@contextlib.contextmanager
def started(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env)
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=30)


TARGETS = {"kwire": kwire, "kfake": kfake, "kafka": kafka}


# ---------------------------------------------------------------- the table


def known() -> dict[str, str]:
    """Why a test fails on kwire and not on the real broker, by suite and test."""
    lines = (HERE / "known.txt").read_text("utf-8").splitlines()
    return dict(line.split(": ", 1) for line in lines if line and not line.startswith("#"))


def cell(results: Results | None) -> str:
    if results is None:
        return "-"
    counts = [sum(verdict == word for verdict in results.values()) for word in (PASSED, FAILED, SKIPPED)]
    return f"{counts[0]}/{counts[1]}" + (f" ({counts[2]} skipped)" if counts[2] else "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="*", choices=[[], *SUITES], default=list(SUITES))
    parser.add_argument("--target", default="kwire,kfake,kafka")
    parser.add_argument("--work", type=Path, default=Path.home() / ".cache" / "kwire" / "suites")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    targets = options.target.split(",")
    found: dict[str, dict[str, Results]] = {}
    for name in options.suites or SUITES:
        suite = SUITES[name]
        folder = options.work / f"{name}-{suite.version}"
        if not (folder / "built").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            suite.build(folder)
            (folder / "built").touch()
        found[name] = {}
        for target in targets:
            begun = time.monotonic()
            with TARGETS[target](suite.nodes, options.work) as address:
                found[name][target] = suite.run(folder, address)
            print(
                f"{name} against {target}: {cell(found[name][target])}, {time.monotonic() - begun:.0f} s",
                file=sys.stderr,
            )
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))
    report(found, targets)
    return 0


def report(found: dict[str, dict[str, Results]], targets: list[str]) -> None:
    print("| suite | " + " | ".join(targets) + " |")
    print("|---|" + "---|" * len(targets))
    for name, by_target in found.items():
        cells = [cell(by_target.get(target)) for target in targets]
        print(f"| {name} {SUITES[name].version} | " + " | ".join(cells) + " |")
    reasons = known()
    for name, by_target in found.items():
        for test, verdict in by_target.get("kwire", {}).items():
            if verdict == FAILED:
                real = by_target.get("kafka", {}).get(test, "not run")
                print(f"{name}: {test}: real {real}; {reasons.get(f'{name} {test}', 'not explained')}")


if __name__ == "__main__":
    sys.exit(main())
