"""kwire browse on a long capture: how soon it is there, how long keys and frames take, and how much memory it takes.

    python tests/bench/browse.py [CAPTURE] [--packets 1000000]

Without CAPTURE one is made (traffic.py). The application runs without a terminal, driven as by keys. Beside seconds on
the clock stand those of the processor, which other work on the machine does not change: of the process that draws, and
of the one that reads.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1]))

from browsing import browsing
from traffic import make

from kwire.browse.view import Search

SIZE = (120, 40)
Clocks = tuple[float, float, float]


def cpu_of(pid: int) -> float:
    """Seconds of the processor that a process took so far."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / 100


def peak_of(pid: int) -> float:
    """Megabytes that a process took at most, without those of files."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024


def show(what: str, found: list[Clocks]) -> None:
    walls, mine, other = ([one[at] * 1000 for one in found] for at in range(3))
    cells = f"{median(walls):.0f} | {max(walls):.0f} | {median(mine):.1f} | {max(mine):.1f} | {median(other):.0f}"
    print(f"| {what} | {cells} |")


async def bench(path: Path) -> None:
    begun = time.perf_counter()
    async with browsing(path, size=SIZE, wait=False) as session:
        app = session.app
        pid = app.link.process

        async def clocked(what: Callable[[], Awaitable[object]]) -> Clocks:
            wall, mine, other = time.perf_counter(), time.process_time(), cpu_of(pid)
            await what()
            return time.perf_counter() - wall, time.process_time() - mine, cpu_of(pid) - other

        while not app.diagram.picture.fields:
            await asyncio.sleep(0.005)
        print(f"first screen after {time.perf_counter() - begun:.2f} s, {cpu_of(pid):.2f} s of the processor to read")
        print("\n| | ms, median | most | of it drawing, median | most | reading |\n|---|--:|--:|--:|--:|--:|")
        keys: list[Clocks] = []
        while app.ended is None:
            key = "jjkGg"[len(keys) % 5]
            keys.append(await clocked(lambda key=key: session.pilot.press(key)))  # type: ignore[misc]
            await asyncio.sleep(0.02)
        if keys:
            show(f"{len(keys)} keys while it is read", keys)
        read = cpu_of(pid)
        await session.settled()
        random, frames = Random(7), []
        for _ in range(40):

            async def jump() -> None:
                app.rows.put(random.randrange(len(app.index)))
                await session.settled()

            frames.append(await clocked(jump))
        show("a frame anywhere, until it is shown", frames)
        near = [await clocked(lambda: session.press("j")) for _ in range(40)]
        show("the next one", near)

        async def narrow() -> None:
            app.filter("api=Fetch slower=0ms topic=topic-1")
            await session.settled()

        show("a filter, until all is looked at", [await clocked(narrow)])
        app.filter("")
        mine = time.process_time()
        Search(app.index, "nowhere").found(app.rows.view, 0, True)
        print(f"\na search in vain takes {1000 * (time.process_time() - mine):.0f} ms of the processor")
        print(
            f"{len(app.index):,} exchanges, read in {read:.2f} s of the processor; {peak_of(pid):.0f} MB to read, ",
            end="",
        )
        print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB to draw")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("capture", type=Path, nargs="?")
    parser.add_argument("--packets", type=int, default=1_000_000, help="of the capture that is made")
    given = parser.parse_args()
    if given.capture:
        asyncio.run(bench(given.capture))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "long.pcap"
        make(path, given.packets)
        asyncio.run(bench(path))


if __name__ == "__main__":
    main()
