"""The other end of the process that reads: asks it, and takes what it says as it comes."""

from __future__ import annotations

import multiprocessing
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from kwire.browse.index import Index
from kwire.browse.reader import Export, ReadingProcess
from kwire.session.reading import Reading


class ReaderLink:
    """Starts the process, which must be before there are threads. index: what it read so far; file: readable when it
    said something, which heard() gives; ask() says something to it."""

    def __init__(self, reading: Reading, export: Export) -> None:
        context: Any = multiprocessing.get_context("fork")
        self._rows = tempfile.TemporaryFile()  # noqa: SIM115 (open as long as the link is)
        self.index = Index(self._rows)
        read, self._orders = context.Pipe(duplex=False)
        self._said, write = context.Pipe(duplex=False)
        mine: list[Connection] = [self._orders, self._said]
        self._process = context.Process(target=_run, args=(reading, self._rows, read, write, export, mine), daemon=True)
        self._process.start()
        read.close()
        write.close()

    @property
    def file(self) -> int:
        number: int = self._said.fileno()
        return number

    @property
    def process(self) -> int:
        """The number of the process that reads."""
        number: int = self._process.pid
        return number

    def ask(self, what: Any) -> None:
        with suppress(OSError):
            self._orders.send(what)

    def heard(self) -> Iterator[Any]:
        """What was said by now. Raises EOFError when the process is gone."""
        while self._said.poll():
            try:
                yield self._said.recv()
            except OSError:
                raise EOFError from None

    def close(self) -> None:
        """Ends the process."""
        self._process.terminate()
        self._process.join()
        for end in (self._orders, self._said, self._rows):
            end.close()


def _run(
    reading: Reading, file: Any, asked: Connection, said: Connection, export: Export, others: list[Connection]
) -> None:
    for end in others:
        end.close()
    ReadingProcess(reading, file, asked, said, export).run()
