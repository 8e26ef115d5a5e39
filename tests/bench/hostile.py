"""Inputs that mean harm: time and peak memory of kwire on each of the attacks in tests/attacks.

    python tests/bench/hostile.py [WORDS] [--scale 1.0] [--seconds 300] [--memory 8192]

WORDS: only attacks whose area and name hold them. Each attack runs in a process of its own, with its output thrown
away, and is one row: what it is, the bytes of its input (those of compressed captures as they are unpacked), seconds of
CPU, microseconds of it a byte, peak memory, exit status. An exit of "killed" took more of it than --seconds, or five
times as long, or was ended by the system, "bug" is an error that kwire did not expect. --memory (MB) bounds what a
process may ask for.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).parents[1]
sys.path.insert(0, str(TESTS))

# makes the input in a folder, at a scale (1.0: as large as it is measured), and gives the arguments of kwire; those of
# Python where the first one is "python"
Maker = Callable[[Path, float], list[str]]


class Row(NamedTuple):
    """What an attack cost. status is the exit status, or killed, or bug."""

    name: str
    size: int  # bytes of the input, unpacked
    seconds: float  # of CPU
    peak: float  # MB
    status: str

    def __str__(self) -> str:
        each = f"{1e6 * self.seconds / self.size:.3f}" if self.size else ""
        return f"| {self.name} | {self.size:,} | {self.seconds:.2f} | {each} | {self.peak:.0f} | {self.status} |"


SERVED = ("hostile_broker", "hostile_proxy")  # they print the peak of the process that they attack: theirs is no matter
WAITING = 5  # how many times the seconds of CPU a run may last

HEAD = "| attack | bytes | CPU s | µs a byte | peak MB | exit |\n|---|---|---|---|---|---|"


def attacks() -> dict[str, Maker]:
    """Every attack by its area and name."""
    found: dict[str, Maker] = {}
    for path in sorted((TESTS / "attacks").glob("[a-z]*.py")):
        area = importlib.import_module(f"attacks.{path.stem}")
        found |= {f"{path.stem}: {name}": maker for name, maker in area.ATTACKS.items()}
    return found


def unpacked(path: Path) -> int:
    """The size of a file, that of its content if that is compressed."""
    from backports import zstd

    if path.suffix != ".zst":
        return path.stat().st_size
    with zstd.open(path) as file:
        return sum(map(len, iter(lambda: file.read(1 << 20), b"")))


def measure(name: str, arguments: list[str], size: int, seconds: float, memory: int) -> Row:
    """Runs kwire, or Python, and gives what it cost."""

    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (memory << 20, memory << 20))
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds)))

    command = arguments[1:] if arguments[0] == "python" else ["-m", "kwire", *arguments]
    nothing, served = subprocess.DEVNULL, arguments[0] == "python" and Path(arguments[1]).stem in SERVED
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as printed:
        out = printed if served else nothing
        child = subprocess.Popen([sys.executable, *command], stdin=nothing, stdout=out, stderr=said, preexec_fn=bounded)
        signal.signal(signal.SIGALRM, lambda *_: child.kill())
        signal.setitimer(signal.ITIMER_REAL, WAITING * seconds)
        _, status, usage = os.wait4(child.pid, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        errors = said.read()
        printed.seek(0)
        lines = printed.read().decode().splitlines()
    peak = float(lines[-1].split(" | ")[4]) if served and len(lines) > 2 else usage.ru_maxrss / 1024
    ended = "killed" if child.returncode < 0 else str(child.returncode)
    if b"a bug in kwire" in errors or b"Traceback" in errors:
        ended = "bug"
    return Row(name, size, usage.ru_utime + usage.ru_stime, peak, ended)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--memory", type=int, default=8192)
    parser.add_argument("--make", nargs=2, help=argparse.SUPPRESS)  # name and folder: only make the input
    given = parser.parse_args()
    if given.make:
        name, folder = given.make
        print(json.dumps(attacks()[name](Path(folder), given.scale)))
        return
    print(HEAD)
    for name in attacks():
        if any(word.lower() not in name.lower() for word in given.words):
            continue
        with tempfile.TemporaryDirectory() as folder:
            # made by another process: what this one holds would count as the peak of those that it starts
            make = [sys.executable, __file__, "--make", name, folder, "--scale", str(given.scale)]
            arguments = json.loads(subprocess.run(make, check=True, stdout=subprocess.PIPE).stdout)
            size = sum(unpacked(path) for path in Path(folder).rglob("*") if path.is_file())
            print(measure(name, arguments, size, given.seconds, given.memory), flush=True)


if __name__ == "__main__":
    main()
