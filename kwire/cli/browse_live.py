"""kwire sniff --browse: one process records what passes, kwire browse follows the capture that grows.

The capture is a temporary file of its user's alone, which goes when the browser ends, and bounded; -w keeps one.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kwire.cli.browse import browse, needed
from kwire.cli.captures import Bounds
from kwire.cli.wanted import Wanted
from kwire.counted import counted

if TYPE_CHECKING:
    from kwire.capture.live import Live
    from kwire.capture.packets import Packets

MOST = 1 << 30  # bytes of packets that are kept without -w
FULL = f"no more is shown: {MOST >> 30} GiB of packets are kept; -w FILE keeps all"
LATE = (
    "kwire.browse.app", "kwire.browse.link", "kwire.cli.frames", "textual.drivers.linux_driver", "textual.screen",
    "multiprocessing.popen_fork", "concurrent.futures.thread", "uuid", "csv",
)  # fmt: skip
Keep = Callable[["Packets"], None]


@contextmanager
def temporary_capture(live: Live) -> Iterator[Path]:
    """Where the packets go that are browsed: a folder that whoever the process will be may read."""
    folder = Path(tempfile.mkdtemp(prefix="kwire-"))
    try:
        if os.geteuid() == 0:
            os.chown(folder, *live.becomes)
        yield folder / "live.pcapng"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def prepare() -> None:
    """Loads what may not be readable once the rights are gone. Raises what needed() does."""
    needed()
    for name in LATE:
        importlib.import_module(name)


def watch(live: Live, path: Path, bounds: Bounds, wanted: Wanted, keep: Sequence[Keep], until: float | None) -> int:
    """Records and browses, until the user leaves. path: the capture that is browsed; keep: what gets every block of
    packets, the first one as long as there is room."""
    recorder = _Recorder(live, keep, until)
    where = ", ".join(live.names) if len(live.names) < 4 else "any"
    try:
        return browse(
            (str(path),), bounds, line_of(wanted), follow=True, utc=True, title=where, alert=recorder.alert
        )  # fmt: skip
    finally:
        packets, dropped = recorder.stop()
        lost = f", {dropped:,} dropped by the kernel" if dropped else ""
        print(f"kwire: {counted(packets, 'packet')}{lost}", file=sys.stderr)


class _Recorder:
    """The process that takes packets from the interfaces."""

    def __init__(self, live: Live, keep: Sequence[Keep], until: float | None) -> None:
        context: Any = multiprocessing.get_context("fork")
        self._mine, theirs = context.Pipe()
        self._said: list[Any] = []
        self._process = context.Process(target=self._run, args=(live, keep, until, theirs, self._mine), daemon=True)
        self._process.start()
        theirs.close()

    @staticmethod
    def _run(live: Live, keep: Sequence[Keep], until: float | None, end: Connection, other: Connection) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        other.close()
        size = count = 0
        said = ""
        try:
            for packets in live.blocks(until):
                count += len(packets)
                size += int(packets.captured.sum()) if len(packets) else 0
                for each in keep if size <= MOST else keep[1:]:
                    each(packets)
                if size > MOST and not said:
                    said = FULL
                    end.send(said)
                if end.poll():  # nobody looks any longer
                    break
        except Exception as error:
            with suppress(OSError):
                end.send(f"nothing more is recorded: {error}")
        with suppress(OSError):
            end.send((count, live.count_drops()))

    def alert(self) -> str:
        """What there is to say of it, once."""
        with suppress(EOFError, OSError):
            while self._mine.poll():
                self._said.append(self._mine.recv())
        return next((self._said.pop(at) for at, said in enumerate(self._said) if isinstance(said, str)), "")

    def stop(self) -> tuple[int, int]:
        """Ends it; how many packets there were, and how many the kernel dropped."""
        with suppress(OSError):
            self._mine.send("end")
        self._process.join(10)
        self.alert()
        if self._process.is_alive():
            self._process.terminate()
        return next((said for said in self._said if isinstance(said, tuple)), (0, 0))


def line_of(wanted: Wanted) -> str:
    """The same filters as a line of kwire browse. Raises click.UsageError for times, which it would have to know."""
    import shlex

    if wanted.start or wanted.end:
        raise click.UsageError("--from and --to do not go with --browse; f filters by time")
    named = {
        "api": wanted.apis, "client-id": wanted.client_ids, "client": wanted.clients, "broker": wanted.brokers,
        "topic": wanted.topics, "group": wanted.groups, "error": wanted.error_names, "id": wanted.ids,
        "connection": wanted.connections, "slower": () if wanted.slower is None else (f"{wanted.slower}ns",),
    }  # fmt: skip
    words = [f"{name}={value}" for name, values in named.items() for value in values]
    return shlex.join([*(["errors"] if wanted.errors else []), *words])
