"""Estimates other codecs and other batching for a capture's records, by compressing and batching the records of Produce
requests again.

Each topic keeps records up to a budget, and the rest is extrapolated. Records are moved between batches as they are:
their offset and time deltas, a byte or two each, stay those of the old batch.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from kwire.analyze.produced import produced
from kwire.errors import KwireError
from kwire.records.batch import LOG_OVERHEAD, SIZE, read_header
from kwire.records.compression import NAMES, compress, decompress
from kwire.records.read import walk
from kwire.schema.keys import PRODUCE
from kwire.session.decoded import Decoded
from kwire.wire.varint import read_uvarint

if TYPE_CHECKING:
    from kwire.session.batch import ExchangeBatch

SAMPLE = 32 << 20  # bytes of records of a topic that are kept, before they were compressed
MOST_TOPICS, TOTAL = 1_000, 512 << 20  # topics, and bytes that are kept of all of them
OF_BATCH = 16 << 20  # bytes that a batch may decompress to
LEVELS = {"gzip": range(1, 10), "zstd": range(-7, 23)}
USUAL = {"gzip": 6, "zstd": 3}  # levels that clients take unless told otherwise


class Way(NamedTuple):
    """A codec, and its level where it has any. str() is as of() takes it."""

    codec: str
    level: int | None = None

    @classmethod
    def of(cls, text: str) -> Way:
        """As "zstd:9". Raises ValueError."""
        codec, _, level = text.partition(":")
        if codec not in NAMES:
            raise ValueError(f"no codec {codec}; there are {', '.join(NAMES)}")
        if not level:
            return cls(codec, USUAL.get(codec))
        if codec not in LEVELS:
            raise ValueError(f"{codec} has no levels")
        allowed = LEVELS[codec]
        if not level.lstrip("-").isdigit() or int(level) not in allowed:
            raise ValueError(f"{codec} has the levels {allowed[0]} to {allowed[-1]}")
        return cls(codec, int(level))

    def __str__(self) -> str:
        return self.codec if self.level is None else f"{self.codec}:{self.level}"


class Sent(NamedTuple):
    """A batch: who sent it to which partition, its records as bytes without compression, how many, and the time of its
    first one, ms."""

    source: tuple[str, int]
    data: bytes
    records: int
    base_time: int


class Estimate(NamedTuple):
    """A topic's size under an estimate: bytes of batches, their number, and CPU seconds of compression."""

    size: int
    batches: int
    seconds: float


@dataclass(slots=True)
class TopicRecords:
    """A topic as it was sent: batches, records, bytes on the wire and before they were compressed; codecs: batches by
    codec; kept: a sample, in the order of time, kept_size and kept_plain: its bytes; unread: batches that could not be
    opened."""

    batches: int = 0
    records: int = 0
    size: int = 0
    plain: int = 0
    codecs: dict[str, int] = field(default_factory=dict)
    kept: list[Sent] = field(default_factory=list)
    kept_size: int = 0
    kept_plain: int = 0
    unread: int = 0

    @property
    def codec(self) -> str:
        """The one of most batches."""
        return max(self.codecs, key=lambda name: self.codecs[name], default="none")

    def compressed(self, way: Way) -> Estimate:
        """The estimate for the same batches with another codec."""
        return self._estimate([one.data for one in self.kept], way)

    def rebatched(self, linger: float, batch_size: int, way: Way) -> Estimate:
        """The estimate for batches that wait linger ms for records, up to batch_size bytes before compression."""
        return self._estimate(list(self._rebatch(linger, batch_size)), way)

    def _estimate(self, batches: list[bytes], way: Way) -> Estimate:
        began = time.process_time()
        size = sum(SIZE + len(compress(way.codec, data, level=way.level)) for data in batches)
        seconds = time.process_time() - began
        share = self.plain / self.kept_plain if self.kept_plain else 1.0
        return Estimate(round(size * share), round(len(batches) * share), seconds * share)

    def _rebatch(self, linger: float, batch_size: int) -> Iterator[bytes]:
        open_ones: dict[tuple[str, int], tuple[int, list[bytes], int]] = {}
        for sent in self.kept:
            for moment, record in records_of(sent):
                begun, parts, size = open_ones.get(sent.source, (moment, [], SIZE))
                if parts and (moment - begun > linger or size + len(record) > batch_size):
                    yield b"".join(parts)
                    begun, parts, size = moment, [], SIZE
                parts.append(record)
                open_ones[sent.source] = begun, parts, size + len(record)
        for _, parts, _ in open_ones.values():
            yield b"".join(parts)


def records_of(sent: Sent) -> Iterator[tuple[int, bytes]]:
    """Each record's time, ms, and its bytes."""
    data, at = sent.data, 0
    while at < len(data):
        try:
            length, after = read_uvarint(data, at)
            size = (length >> 1) ^ -(length & 1)
            if size <= 0 or after + size > len(data):
                return
            delta, _ = read_uvarint(data, after + 1, bits=64)
        except KwireError:  # no record: what was made of it is not judged
            return
        yield sent.base_time + ((delta >> 1) ^ -(delta & 1)), data[at : after + size]
        at = after + size


class Recompression:
    """add(batch) collects; topics: by name, the largest first. sample: bytes that are kept of each. old: batches of
    formats before magic 2, which are left out."""

    def __init__(self, sample: int = SAMPLE) -> None:
        self._sample = sample
        self._topics: dict[str, TopicRecords] = {}
        self._left = TOTAL
        self.old = 0

    @property
    def topics(self) -> dict[str, TopicRecords]:
        return dict(sorted(self._topics.items(), key=lambda item: -item[1].size))

    def add(self, batch: ExchangeBatch) -> None:
        """Exchanges."""
        decoded = Decoded(batch)
        for number in decoded.kinds(PRODUCE):
            found = produced(decoded, number)
            for at in range(len(found)):
                name = found.names[int(found.topic[at])]
                if name not in self._topics and len(self._topics) >= MOST_TOPICS:
                    continue
                topic = self._topics.setdefault(name, TopicRecords())
                connection = batch.connections[batch.connection[found.row[at]]]
                source = connection.capture + connection.name, int(found.partition[at])
                self._take(topic, source, found.bytes_of(at))

    def _take(self, topic: TopicRecords, source: tuple[str, int], data: bytes) -> None:
        try:
            for start, end in walk(data):
                if data[start + 16] < 2:
                    self.old += 1
                    continue
                self._one(topic, source, data[start:end])
        except (KwireError, IndexError):
            topic.unread += 1

    def _one(self, topic: TopicRecords, source: tuple[str, int], data: bytes) -> None:
        header = read_header(data, 0)
        size = header.batch_length + LOG_OVERHEAD
        topic.batches += 1
        topic.records += header.record_count
        topic.size += size
        topic.codecs[header.compression] = topic.codecs.get(header.compression, 0) + 1
        if topic.kept_plain >= self._sample or self._left <= 0:
            topic.plain += round(size * topic.plain / max(topic.size - size, 1))
            return
        try:
            plain = decompress(header.compression, data[SIZE:], OF_BATCH)
        except KwireError:
            topic.unread += 1
            topic.plain += size
            return
        topic.plain += SIZE + len(plain)
        topic.kept.append(Sent(source, plain, header.record_count, header.base_timestamp))
        topic.kept_size += size
        self._left -= len(plain)
        topic.kept_plain += SIZE + len(plain)
