"""What the programs of the Python clients share: trying features, several at a time, and saying what came of each."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Awaitable, Callable

PATIENCE = 200.0  # seconds for a feature
TOGETHER = 10  # features at a time
LATELY = int(time.time() - 60) * 1_000  # ms; records that are old may be gone before they are read
Features = dict[str, Callable[[str], object]]  # by name: what tries it with topics and groups that begin with this


def try_all(features: Features, client: str) -> None:
    """Prints "ok NAME" or "no NAME WHY" for each, several at a time; one that hangs is left behind."""
    places = threading.Semaphore(TOGETHER)
    threads = []
    for name, feature in features.items():
        places.acquire(timeout=PATIENCE)
        threads.append((name, threading.Thread(target=tried, args=(name, feature, client, places), daemon=True)))
        threads[-1][1].start()
    end = time.monotonic() + PATIENCE
    for name, thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
        if thread.is_alive():
            say(f"no {name} not done in {PATIENCE:.0f} s")


def tried(name: str, feature: Callable[[str], object], client: str, places: threading.Semaphore) -> None:
    try:
        feature(f"{client}-{name}")
    except Exception as wrong:
        say(f"no {name} {type(wrong).__name__}: {wrong}".replace("\n", " "))
    else:
        say(f"ok {name}")
    finally:
        places.release()


def say(line: str) -> None:
    """As one piece: print writes the end of a line by itself, and threads come in between."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def check(right: object, what: object = "") -> None:
    if not right:
        raise ValueError(what)


def soon(holds: Callable[[], object]) -> None:
    """A real broker follows its controller a little later, and a transaction's end is everywhere a little later."""
    end = time.monotonic() + PATIENCE / 3
    while not holds():
        check(time.monotonic() < end, "not in force")
        time.sleep(0.1)


async def soon_async(holds: Callable[[], Awaitable[object]]) -> None:
    end = time.monotonic() + PATIENCE / 3
    while not await holds():
        check(time.monotonic() < end, "not in force")
        await asyncio.sleep(0.1)
