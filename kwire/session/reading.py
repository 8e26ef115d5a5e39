"""Reads capture files in time order; files that follow each other are read as one capture."""

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
MOST_SOUGHT = 16  # topic ids that are searched for one by one before all captures are read for names
JOIN = 300_000_000_000  # ns between the end of a capture and the beginning of the next for both to be one


def span_of(path: str | Path) -> tuple[int, int]:
    """The times of the first and the last packet of a capture, ns since the epoch; (0, 0) when empty. Raises OSError,
    CaptureError."""
    first, last = 0, 0
    for packets in open_capture(path).blocks():
        if len(packets):
            first = min(first or int(packets.time[0]), int(packets.time.min()))
            last = max(last, int(packets.time.max()))
    return first, last


def chained(spans: Iterable[tuple[int, int, T]]) -> list[list[T]]:
    """Groups items whose spans follow each other in time. spans: sorted, (first time, last time, item), ns."""
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
    """Captures that are being read: batches() and exchanges() give their contents; notes, skips and damaged say how it
    went. apart: a connection recorded in two captures is read in both."""

    paths: Sequence[str | Path]
    settings: Settings = field(default_factory=Settings)
    tracking: bool = False
    follow: bool = False
    ended: Callable[[ConnectionInfo], None] | None = None
    progress: Progress | None = None
    captures: list[Capture] = field(default_factory=list)
    readers: list[Reader] = field(default_factory=list)
    unread: list[tuple[str, str]] = field(
        default_factory=list
    )  # capture name and note, from readers in other processes
    sealed: int = 0  # TLS connections that readers in other processes could not decrypt
    skips: list[tuple[int, int, ConnectionInfo, str, Skipped]] = field(default_factory=list)
    order: Iterator[int] = field(default_factory=count)
    apart: bool = False
    _twins: Twins = field(default_factory=Twins)

    def batches(self, ordered: bool = True, scans: bool = True) -> Iterator[ExchangeBatch]:
        """The captures' exchanges. ordered: in time order over all captures, else as they become complete; scans: as in
        Reader. Raises OSError, CaptureError."""
        topics = self.topics()
        streams = [self._batches(paths, topics, ordered, scans) for paths in self.chains]
        return merged(streams) if ordered and len(streams) > 1 else chain.from_iterable(streams)

    def exchanges(self) -> Iterator[Exchange]:
        """As batches(), single exchanges."""
        return chain.from_iterable(self.batches())

    def take_skipped(self, until: int | None) -> list[tuple[ConnectionInfo, str, Skipped]]:
        """Ranges of which no frames could be made, up to a time (ns, None: all), each given once, with "request" or
        "response"."""
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
        """(capture, kind, text) of everything damaged, not read, dropped or tunnelled."""
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
        """The remarks as lines."""
        twins = f"{counted(self._twins.found, 'connection')} seen a second time, at another point: counted once"
        return [f"{name}: {note}" for name, _, note in self.remarks] + ([twins] if self._twins.found else [])

    @property
    def damaged(self) -> bool:
        """Whether a file was damaged."""
        return any(capture.notes for capture in self.captures)

    def topics(self) -> Topics:
        """Topic names from all captures; unknown ids are looked up ahead if the files can be read twice."""
        return Topics(self._ahead if self._twice else None)

    @property
    def _twice(self) -> bool:
        """Whether the captures can be read twice."""
        return not self.follow and all(str(path) != "-" and Path(path).is_file() for path in self.paths)

    @cached_property
    def names(self) -> dict[str, str]:
        """The captures' short names, by path, used in packet references."""
        return labels(self.paths)

    @cached_property
    def chains(self) -> list[list[str | Path]]:
        """The captures, grouped by those that follow each other in time, as tcpdump's ring buffer writes them:
        connections continue from one to the next, and packets are numbered through."""
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
        """The number of packets in the captures before this one. packets: its newest block."""
        return int(packets.number[0]) - 1 - (capture.packets - len(packets)) if len(packets) else 0

    def reader(self, topics: Topics, ordered: bool = True, scans: bool = True) -> Reader:
        """A reader for a group of captures that follow each other."""
        reader = Reader(
            "", self.settings, tracking=self.tracking, ordered=ordered and not self.follow, topics=topics,
            ended=self.ended, scans=scans, twins=None if self.apart else self._twins,
        )  # fmt: skip
        reader.places.several = len(self.paths) > 1
        self.readers.append(reader)
        return reader

    def blocks(self, chain: Sequence[str | Path]) -> Iterator[tuple[Capture, Packets]]:
        """The packets of a group of captures, numbered through. Raises OSError, CaptureError."""
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
        """Looks up a topic id that is used before a response names it: by searching the files' bytes, and where that is
        not conclusive, by reading all captures."""
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
        """Reads all captures, only for topic names."""
        ahead = Topics()
        for path in self.paths:
            capture = open_capture(path)
            reader = Reader(capture.name, self.settings, tracking=True, ordered=False, topics=ahead, scans=False)
            for packets in capture.blocks():
                reader.feed(packets)
            reader.finish()
        for ident, name in ahead.names.items():
            topics.names.setdefault(ident, name)
