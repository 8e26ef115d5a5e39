"""Several processes read the same captures, each the connections that fall to it; one writes what they make.

Every process looks at all packets, which is cheap, and follows only its connections, which is the work. Workers are
forked before Arrow is imported, and send their rows as Arrow's own bytes.
"""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kwire.errors import KwireError

if TYPE_CHECKING:
    from kwire.capture.files import Capture
    from kwire.session.reader import Settings
    from kwire.session.record import BodyTexts

CLIENTS, DONE, FAILED, PROGRESS = "clients", "done", "failed", "progress"


@dataclass(slots=True)
class Outcome:
    """What the workers said at the end: notes on the captures, how many exchanges and packets there were."""

    notes: list[str] = field(default_factory=list)
    exchanges: int = 0
    packets: int = 0


class JobError(KwireError):
    """A worker failed; the message is its own."""


def build_with_jobs(
    paths: Sequence[str | Path], names: Sequence[str], emit: Callable[[str, Any], None], settings: Settings,
    jobs: int, bodies: BodyTexts | None = None, progress: Callable[[str, int, int | None], None] | None = None,
) -> Outcome:  # fmt: skip
    """As build.build, with so many processes. progress gets a capture's name, the bytes done and its size. Raises
    JobError with what went wrong in one of them."""
    forking = "fork" in multiprocessing.get_all_start_methods()
    context: Any = multiprocessing.get_context("fork" if forking else "spawn")
    workers, ends = [], []
    for number in range(jobs):
        mine, theirs = context.Pipe(duplex=False)
        share = replace(settings, share=(number, jobs))
        worker = context.Process(target=_work, args=(theirs, list(paths), list(names), share, bodies), daemon=True)
        worker.start()
        theirs.close()
        workers.append(worker)
        ends.append(mine)
    try:
        return _collect(ends, names, emit, progress)
    finally:
        for worker in workers:
            worker.terminate()
            worker.join()


def _collect(
    ends: list[Connection], names: Sequence[str], emit: Callable[[str, Any], None],
    progress: Callable[[str, int, int | None], None] | None,
) -> Outcome:  # fmt: skip
    import pyarrow as pa

    from kwire.analyze.clients import Clients
    from kwire.tables.build import client_batch
    from kwire.tables.schemas import SCHEMAS

    out, clients, open_ends = Outcome(), Clients(), list(ends)
    while open_ends:
        for end in wait(open_ends):
            assert isinstance(end, Connection)
            try:
                name, data = end.recv_bytes().decode(), end.recv_bytes()
            except EOFError:
                raise JobError("a worker ended before it was done") from None
            if name == FAILED:
                raise JobError(data.decode())
            if name == PROGRESS:
                if progress is not None:
                    progress(*pickle.loads(data))
            elif name == CLIENTS:
                clients.merge(pickle.loads(data))
            elif name == DONE:
                notes, exchanges, packets = pickle.loads(data)
                out.notes = out.notes or notes
                out.exchanges += exchanges
                out.packets = max(out.packets, packets)
                open_ends.remove(end)
            else:
                emit(name, pa.ipc.read_record_batch(pa.py_buffer(data), SCHEMAS[name]))
    if CLIENTS in names and clients.found:
        emit(CLIENTS, client_batch(clients))
    return out


def _work(
    end: Connection, paths: list[str | Path], names: list[str], settings: Settings, bodies: BodyTexts | None
) -> None:
    """A worker: its connections' rows, then the clients as they are, since others may have met them too."""
    from kwire.tables.build import Builder, read_into

    def send(name: str, batch: Any) -> None:
        end.send_bytes(name.encode())
        end.send_bytes(batch.serialize())

    first = settings.share is None or settings.share[0] == 0

    def tell(capture: Capture) -> None:
        if first:
            end.send_bytes(PROGRESS.encode())
            end.send_bytes(pickle.dumps((capture.name, capture.source.done, capture.source.size)))

    try:
        builder = Builder(names, send, bodies, whole=first)
        reading = read_into(builder, paths, settings, tell)
        builder.finish(reading, clients=False)
        end.send_bytes(CLIENTS.encode())
        end.send_bytes(pickle.dumps(builder.clients.all))
        end.send_bytes(DONE.encode())
        packets = sum(capture.packets for capture in reading.captures)
        end.send_bytes(pickle.dumps((reading.notes, builder.exchanges, packets)))
    except KeyboardInterrupt:
        pass
    except Exception as error:  # whatever it is, the other end tells it: a traceback from here helps nobody
        said = str(error) if isinstance(error, (KwireError, OSError)) else f"{type(error).__name__}: {error}"
        with suppress(OSError):  # unless it is gone
            end.send_bytes(FAILED.encode())
            end.send_bytes(said.encode("utf-8", "replace"))
    finally:
        end.close()
