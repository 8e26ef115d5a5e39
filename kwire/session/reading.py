"""Captures by their files: read once, in the order of time, those that follow each other as one."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, count
from pathlib import Path
from typing import TypeVar
from uuid import UUID

from kwire.capture.files import Capture, note_kind, open_capture
from kwire.capture.packet_numbers import labels
from kwire.capture.packets import Packets
from kwire.counted import counted
from kwire.session.batch import ExchangeBatch
from kwire.session.connection_info import ConnectionInfo
from kwire.session.exchange import Exchange
from kwire.session.framing import Skipped
from kwire.session.order import merged
from kwire.session.reader import Reader, Settings
from kwire.session.topic_search import TopicSearch, Unclear
from kwire.session.topics import Topics
from kwire.session.twins import Twins

T = TypeVar("T")
Progress = Callable[[Capture], None]
MOST_SOUGHT = 16  # topics whose names are looked for one by one before all captures are read for them
JOIN = 300_000_000_000  # ns by which a capture may begin after the one before it ended, for both to be one


def span_of(path: str | Path) -> tuple[int, int]:
    """The times of the first and the last packet of a capture; (0, 0) of an empty one. Raises OSError, CaptureError."""
    first, last = 0, 0
    for packets in open_capture(path).blocks():
        if len(packets):
            first = min(first or int(packets.time[0]), int(packets.time.min()))
            last = max(last, int(packets.time.max()))
    return first, last


def chained(spans: Iterable[tuple[int, int, T]]) -> list[list[T]]:
    """What follows each other in time together. spans: times of the first and the last packet, sorted, and what has
    them."""
    chains: list[tuple[int, list[T]]] = []
    for first, last, what in spans:
        known = next((chain for chain in chains if 0 <= first - chain[0] <= JOIN), None)
        if known is None:
            chains.append((last, [what]))
        else:
            chains[chains.index(known)] = (last, [*known[1], what])
    return [chain for _, chain in chains]


@dataclass(eq=False)
class Reading:
    """Captures that are being read: exchanges() gives what they hold, the rest tells how it went. apart: a connection
    that two captures saw at two points is read in both."""

    paths: Sequence[str | Path]
    settings: Settings = field(default_factory=Settings)
    tracking: bool = False
    follow: bool = False
    ended: Callable[[ConnectionInfo], None] | None = None
    progress: Progress | None = None
    captures: list[Capture] = field(default_factory=list)
    readers: list[Reader] = field(default_factory=list)
    unread: list[tuple[str, str]] = field(default_factory=list)  # notes of readers elsewhere, with the capture's name
    sealed: int = 0  # TLS connections that readers elsewhere could not decrypt
    skips: list[tuple[int, int, ConnectionInfo, str, Skipped]] = field(default_factory=list)
    order: Iterator[int] = field(default_factory=count)
    apart: bool = False
    _twins: Twins = field(default_factory=Twins)

    def batches(self, ordered: bool = True, scans: bool = True) -> Iterator[ExchangeBatch]:
        """In the order of time, over all captures, else as they are complete. scans: as Reader has it. Raises OSError
        and CaptureError."""
        topics = self.topics()
        streams = [self._batches(paths, topics, ordered, scans) for paths in self.chains]
        return merged(streams) if ordered and len(streams) > 1 else chain.from_iterable(streams)

    def exchanges(self) -> Iterator[Exchange]:
        """As batches, one by one."""
        return chain.from_iterable(self.batches())

    def take_skipped(self, until: int | None) -> list[tuple[ConnectionInfo, str, Skipped]]:
        """Bytes of which no frames could be made, up to that time (None: all), each once, with the frames' kind."""
        for reader in self.readers:
            for connection, kind, skipped in reader.skipped:
                heapq.heappush(self.skips, (skipped.time, next(self.order), connection, kind, skipped))
            reader.skipped = []
        found = []
        while self.skips and (until is None or self.skips[0][0] <= until):
            _, _, connection, kind, skipped = heapq.heappop(self.skips)
            found.append((connection, kind, skipped))
        return found

    @property
    def remarks(self) -> list[tuple[str, str, str]]:
        """What was damaged, not read, dropped, or came through a tunnel: the capture, which of these, what to say."""
        found = [(capture.name, "damaged", note) for capture in self.captures for note in capture.notes]
        unread = [*self.unread, *((reader.name, note) for reader in self.readers for note in reader.notes)]
        found += [(name, note_kind(note), note) for name, note in dict.fromkeys(unread)]
        found += [
            (capture.name, "dropped", f"{capture.dropped:,} packets were dropped while capturing")
            for capture in self.captures
            if capture.dropped
        ]
        return found

    @property
    def encrypted(self) -> int:
        """TLS connections that were not decrypted."""
        return self.sealed + sum(reader.tls.sealed for reader in self.readers)

    @property
    def notes(self) -> list[str]:
        """The same as lines."""
        twins = f"{counted(self._twins.found, 'connection')} seen a second time, at another point: counted once"
        return [f"{name}: {note}" for name, _, note in self.remarks] + ([twins] if self._twins.found else [])

    @property
    def damaged(self) -> bool:
        """Whether a file was not what it should be."""
        return any(capture.notes for capture in self.captures)

    def topics(self) -> Topics:
        """Names of topics that all captures tell; what is not known yet is looked for ahead, where that can be."""
        return Topics(self._ahead if self._twice else None)

    @property
    def _twice(self) -> bool:
        """Whether the captures can be read a second time."""
        return not self.follow and all(str(path) != "-" and Path(path).is_file() for path in self.paths)

    @cached_property
    def names(self) -> dict[str, str]:
        """What the captures go by where packets are named."""
        return labels(self.paths)

    @cached_property
    def chains(self) -> list[list[str | Path]]:
        """The captures, those that follow each other in time together, as a ring buffer of tcpdump writes them: a
        connection goes on from one to the next, and packets are counted through."""
        if len(self.paths) == 1 or not self._twice:
            return [[path] for path in self.paths]
        return chained(sorted((*span_of(path), path) for path in self.paths))

    def _batches(
        self, paths: Sequence[str | Path], topics: Topics, ordered: bool, scans: bool
    ) -> Iterator[ExchangeBatch]:
        reader = self.reader(topics, ordered, scans)
        for capture, packets in self.blocks(paths):
            if not len(packets):
                continue
            reader.name = capture.name
            reader.places.begin(self.names[str(capture.source.path)], self.before(capture, packets))
            yield from reader.feed(packets)
        yield from reader.finish()

    @staticmethod
    def before(capture: Capture, packets: Packets) -> int:
        """How many packets there were in the captures before, of the newest packets of a capture."""
        return int(packets.number[0]) - 1 - (capture.packets - len(packets)) if len(packets) else 0

    def reader(self, topics: Topics, ordered: bool = True, scans: bool = True) -> Reader:
        """A reader for captures that follow each other."""
        reader = Reader(
            "", self.settings, tracking=self.tracking, ordered=ordered and not self.follow, topics=topics,
            ended=self.ended, scans=scans, twins=None if self.apart else self._twins,
        )  # fmt: skip
        reader.places.several = len(self.paths) > 1
        self.readers.append(reader)
        return reader

    def blocks(self, chain: Sequence[str | Path]) -> Iterator[tuple[Capture, Packets]]:
        """The packets of captures that follow each other, counted through. Raises OSError, CaptureError."""
        before = 0
        for path in chain:
            capture = open_capture(path, follow=self.follow)
            self.captures.append(capture)
            for packets in capture.blocks():
                yield capture, replace(packets, number=packets.number + before) if before else packets
                if self.progress is not None:
                    self.progress(capture)
            before += capture.packets

    @cached_property
    def _search(self) -> TopicSearch:
        return TopicSearch(self.paths)

    def _ahead(self, topics: Topics, ident: UUID) -> None:
        """Looks for the name of a topic whose id is used before a response explains it: in the bytes of the captures,
        and where these do not tell for sure, by reading all captures."""
        if not self.settings.keys and self.settings.library is None and self._search.sought < MOST_SOUGHT:
            try:
                name = self._search.name(ident)
            except Unclear:
                pass
            else:
                if name is not None:
                    topics.names[ident] = name
                return
        topics.elsewhere = None
        self._read_ahead(topics)

    def _read_ahead(self, topics: Topics) -> None:
        """Reads all captures for the names of topics."""
        ahead = Topics()
        for path in self.paths:
            capture = open_capture(path)
            reader = Reader(capture.name, self.settings, tracking=True, ordered=False, topics=ahead, scans=False)
            for packets in capture.blocks():
                reader.feed(packets)
            reader.finish()
        for ident, name in ahead.names.items():
            topics.names.setdefault(ident, name)
