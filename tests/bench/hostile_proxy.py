"""The proxy under attack: what a well-behaved client waits for, and what the proxy's process takes.

    python tests/bench/hostile_proxy.py [WORDS] [--seconds 8] [--list] [--only NAME]

As hostile_broker.py, with kwire proxy in between: broker, proxy and attackers are processes of their own, and here is a
client that produces, fetches and heartbeats through the proxy ten times a second. The attacks are in proxy_attacks.py.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from broker_client import Client
from hostile_broker import BOUND, HEAD, Row, behave, broker, peak
from proxy_attacks import ATTACKS, ProxyAttack, serve


@contextmanager
def proxy(upstream: str, folder: str, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A proxy that shows its lines to nobody and may ask for so much memory, and its first port."""

    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (BOUND, BOUND))

    command = [sys.executable, "-m", "kwire", "proxy", upstream, "--listen", "127.0.0.1:0", *options]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=bounded, cwd=folder
    )
    assert process.stderr is not None
    listens = re.search(r"listening: (\S+) ", process.stderr.readline())
    assert listens
    threading.Thread(target=lambda: [None for _ in process.stderr or ()], daemon=True).start()
    try:
        yield process, listens[1]
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def attack(made: ProxyAttack, address: str, end: float, tally: object) -> None:
    """In a process of its own: so many connections, each in a thread."""
    clients = made.clients
    for number in range(clients.threads):
        threading.Thread(target=clients.run, args=(address, number, end, tally), daemon=True).start()
    time.sleep(max(0.0, end - time.monotonic()) + 1)


def hostile_broker(name: str, told: Any) -> None:
    """In a process of its own: says where it listens, and answers."""
    answer = ATTACKS[name].answer
    assert answer is not None
    told.send(serve(answer))
    threading.Event().wait()


@contextmanager
def against(name: str) -> Iterator[str | None]:
    """The address of the attack's broker, if it has one."""
    if ATTACKS[name].answer is None:
        yield None
        return
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=hostile_broker, args=(name, theirs), daemon=True)
    process.start()
    yield ours.recv()
    process.kill()


def measure(name: str, seconds: float) -> Row:
    with against(name) as hostile:
        return measure_against(name, hostile, seconds)


def measure_against(name: str, hostile: str | None, seconds: float) -> Row:
    made = ATTACKS[name]
    faults = [] if hostile is None else ["--fault", f"coordinator:advertise={hostile}"]
    with tempfile.TemporaryDirectory() as folder, broker(*faults) as upstream:
        assert upstream.stdout is not None
        address = upstream.stdout.readline().split()[-1]
        with proxy(address, folder, *made.options) as (process, port), multiprocessing.Manager() as manager:
            target = port
            if hostile is not None:
                found = Client(port, "finder", 20).ask("FindCoordinator", 0, {"Key": "g"})
                target = f"{found['Host']}:{found['Port']}"
            tally = manager.dict(answers=0, ended=0)
            end = time.monotonic() + seconds
            attacker = multiprocessing.Process(target=attack, args=(made, target, end, tally), daemon=True)
            attacker.start()
            time.sleep(0.5)
            times = sorted(behave(port, end))
            memory = peak(process.pid)
            attacker.join(3)
            attacker.kill()
            return Row(
                name, times[len(times) // 2], times[min(len(times) - 1, len(times) * 99 // 100)], times[-1], memory,
                tally["answers"], tally["ended"],
            )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--only", metavar="NAME", help="this attack alone")
    given = parser.parse_args()
    chosen = [given.only] if given.only else [name for name in ATTACKS if all(word in name for word in given.words)]
    if given.list:
        print("\n".join(chosen))
        return
    print(HEAD, flush=True)
    rows = []
    for name in chosen:
        rows.append(measure(name, given.seconds))
        print(rows[-1], flush=True)
    sys.exit(not all(row.good for row in rows))


if __name__ == "__main__":
    main()
