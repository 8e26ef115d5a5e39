"""What a client looks like from the wire: its versions and settings, what it did and how often."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from kwire.analyze.measures import Measure
from kwire.records.batch import LOG_OVERHEAD, MAGIC_AT, SIZE, read_header

MOST_BATCHES = 3_000
MOST_VALUES, LONGEST, OTHERS = 1_000, 500, "(others)"  # different ones of a setting, and characters of each


@dataclass(slots=True)
class BatchProfile:
    """Batches of a producer as they were sent: records, bytes, codec of each; spans: ms from its first to its last
    record."""

    records: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    spans: list[int] = field(default_factory=list)
    codecs: Counter[str] = field(default_factory=Counter)

    def add(self, data: bytes) -> None:
        """The records of a partition; of several batches in them the first."""
        if len(data) < SIZE or data[MAGIC_AT] < 2 or len(self.records) >= MOST_BATCHES:
            return
        header = read_header(data, 0)
        self.records.append(header.record_count)
        self.sizes.append(header.batch_length + LOG_OVERHEAD)
        self.spans.append(max(header.max_timestamp - header.base_timestamp, 0))
        self.codecs[header.compression] += 1


@dataclass(slots=True)
class Profile:
    """A client id. settings: of each how often it had which value; gaps: ns between two requests, by what sets their
    period; batches: what it produced; apis: by name what measures.py measures; versions: of each API; start and end:
    of its first and last request, ns."""

    client_id: str
    software: Counter[str] = field(default_factory=Counter)
    settings: dict[str, Counter[str]] = field(default_factory=dict)
    gaps: dict[str, list[int]] = field(default_factory=dict)
    batches: BatchProfile = field(default_factory=BatchProfile)
    apis: dict[str, Measure] = field(default_factory=dict)
    versions: dict[str, set[int]] = field(default_factory=dict)
    roles: set[str] = field(default_factory=set)
    start: int = 0
    end: int = 0

    @property
    def seconds(self) -> float:
        """From its first request to its last."""
        return (self.end - self.start) / 1e9

    def note(self, setting: str, value: str) -> None:
        """Counts a value of a setting."""
        values = self.settings.setdefault(setting, Counter())
        value = value if len(value) <= LONGEST else value[:LONGEST] + "…"
        values[value if value in values or len(values) < MOST_VALUES else OTHERS] += 1
