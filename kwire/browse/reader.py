"""The process that reads: it fills the index and, between two blocks of packets, shows the frames it is asked for.

What it is asked comes by a pipe, what it says goes by another: one thing after the other, no threads. It never writes
to the terminal, which belongs to the process that draws.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from kwire.browse.checkpoints import Checkpoints, Frames
from kwire.browse.index import IndexNames
from kwire.browse.pictures import FrameViews, Picture, picture
from kwire.browse.writer import IndexWriter
from kwire.errors import KwireError
from kwire.session.exchange import Exchange
from kwire.session.reader import Reader
from kwire.session.reading import Reading

GONE = "the capture no longer holds this frame"
Export = Callable[[Exchange, str, str, bool], str]


class AskFrame(NamedTuple):
    """Shows a frame: of row, which has a number, the request (0) or the response (1)."""

    number: int
    row: Any
    side: int
    views: FrameViews


class AskText(NamedTuple):
    """Gives a frame as text in a form, for a file."""

    row: Any
    kind: str
    form: str
    secrets: bool


class More(NamedTuple):
    """What was read since. rows: how many there are in the index; names: those that are new; done and size: bytes of
    the captures; start: the first packet's time, ns."""

    rows: int
    names: IndexNames
    done: int
    size: int
    start: int


class AllRead(NamedTuple):
    """All is read. notes: what was damaged; encrypted: connections that only keys open; problem: why no more is."""

    notes: list[str]
    encrypted: int
    problem: str = ""


class FrameAnswer(NamedTuple):
    """The answer to AskFrame. side: what there was; sides: whether there are a request and a response. None: the frame
    cannot be read any longer, or problem says what else."""

    number: int
    side: int
    sides: tuple[bool, bool]
    picture: Picture | None
    problem: str = ""


class FrameText(NamedTuple):
    """The answer to AskText."""

    text: str
    problem: str = ""


@dataclass(eq=False)
class _Chain:
    """Captures that follow each other, while they are read. until: nothing older than that is to come, ns."""

    reader: Reader
    checkpoints: Checkpoints
    blocks: Iterator[None]
    until: int = 0


class ReadingProcess:
    """run() until the other process is gone. export: gives a frame as text, in a kind and a form."""

    def __init__(self, reading: Reading, file: BinaryIO, asked: Connection, said: Connection, export: Export) -> None:
        self._reading, self._asked, self._said, self._export = reading, asked, said, export
        self._writer, self._frames = IndexWriter(file), Frames()
        self._chains: list[_Chain] = []
        self._block = 0
        self._blocks: list[Checkpoints] = []  # by block
        self._start = 0

    def run(self) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with suppress(EOFError, OSError):
            nothing = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(nothing, number)
            self.read_all()
            while True:
                self._answer(self._asked.recv())

    def read_all(self) -> None:
        """Reads the captures, and says AllRead."""
        problem = ""
        try:
            self._begin()
            while left := [chain for chain in self._chains if chain.until >= 0]:
                next(min(left, key=lambda chain: chain.until).blocks, None)
                self.serve()
            self._writer.release(None)
        except KwireError as error:
            problem = str(error)
        except OSError as error:
            if isinstance(error, BrokenPipeError):
                raise
            problem = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        self._writer.release(None)
        self._tell()
        self._said.send(AllRead(self._reading.notes, self._reading.encrypted, problem))

    def serve(self, seconds: float = 0.0) -> None:
        """Answers what is asked by now."""
        while self._asked.poll(seconds):
            self._answer(self._asked.recv())
            seconds = 0.0

    def _begin(self) -> None:
        topics = self._reading.topics()
        if sum(Path(path).stat().st_size for path in self._reading.paths) > self.AHEAD or self._reading.follow:
            topics.elsewhere = None
        for paths in self._reading.chains:
            reader = self._reading.reader(topics, ordered=False)
            chain = _Chain(reader, Checkpoints(paths, self._reading, topics), iter(()))
            chain.blocks = self._read(chain)
            self._chains.append(chain)

    AHEAD = 16 << 20  # bytes of captures that are read ahead for names of topics

    def _read(self, chain: _Chain) -> Iterator[None]:
        """Reads a block each time it is asked."""
        reader, paths = chain.reader, chain.checkpoints.paths
        begun = None
        for capture, packets in self._reading.blocks(paths):
            capture.source.pause = self.serve
            if len(packets):
                before = Reading.before(capture, packets)
                file = [str(path) for path in paths].index(str(capture.source.path))
                if capture is not begun:
                    begun = capture
                    reader.name = capture.name
                    reader.places.begin(self._reading.names[str(capture.source.path)], before)
                    self._writer.begin(self._reading.names[str(capture.source.path)], before)
                self._take(chain, reader.feed(packets))
                self._start = min(self._start or reader.first_time or 0, reader.first_time or 0)
                chain.checkpoints.keep(reader, self._block, file, before, capture)
            yield
        self._take(chain, reader.finish())
        chain.until = -1
        self._release()

    def _take(self, chain: _Chain, batches: list[Any]) -> None:
        """What was complete with a block."""
        for batch in batches:
            if len(batch):
                self._writer.add(batch, self._block)
                self._frames.keep(self._block, batch)
        self._blocks.append(chain.checkpoints)
        self._block += 1
        oldest = chain.reader.oldest
        chain.until = max(chain.reader.last_time if oldest is None else oldest.time, 0)
        self._release()
        self._tell()

    def _release(self) -> None:
        left = [chain.until for chain in self._chains if chain.until >= 0]
        self._writer.release(None if self._reading.follow else min(left, default=None))

    def _tell(self) -> None:
        captures = self._reading.captures
        done = sum(capture.source.done for capture in captures)
        size = sum(capture.source.size or 0 for capture in captures)
        self._said.send(More(self._writer.count, self._writer.take_names(), done, size, self._start))

    def _answer(self, asked: Any) -> None:
        if isinstance(asked, AskFrame):
            self._said.send(self._frame(asked))
        elif isinstance(asked, AskText):
            self._said.send(self._text(asked))

    def _frame(self, asked: AskFrame) -> FrameAnswer:
        try:
            exchange = self._exchange(asked.row)
            if exchange is None:
                return FrameAnswer(
                    asked.number, asked.side, (False, False), None, "the capture no longer holds this frame"
                )
            sides = exchange.request is not None, exchange.response is not None
            side = asked.side if sides[asked.side] else 1 - asked.side
            message = (exchange.request, exchange.response)[side]
            assert message is not None
            return FrameAnswer(asked.number, side, sides, picture(message, exchange, asked.views, self._start))
        except (KwireError, OSError) as error:
            return FrameAnswer(asked.number, asked.side, (False, False), None, str(error))
        except Exception as error:  # a frame that cannot be shown is no reason to show no other
            said = f"a bug in kwire: {type(error).__name__}: {error}"
            return FrameAnswer(asked.number, asked.side, (False, False), None, said)

    def _text(self, asked: AskText) -> FrameText:
        try:
            exchange = self._exchange(asked.row)
            if exchange is None:
                return FrameText("", GONE)
            return FrameText(self._export(exchange, asked.kind, asked.form, asked.secrets))
        except (KwireError, OSError) as error:
            return FrameText("", str(error))

    def _exchange(self, row: Any) -> Exchange | None:
        return self._frames.exchange(row, self._blocks[int(row["block"])])
