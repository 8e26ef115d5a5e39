"""What is kept of every exchange: a row of numbers in a file that two processes share, and the names they stand for.

The process that reads the capture appends rows (writer.py) and tells the names; the one that shows it maps the file, so
that rows nobody looks at need not stay in memory. Nothing here holds a frame: a row says where one is read again.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kwire.codec.quality import QUALITIES
from kwire.session.exchange import TOKEN
from kwire.session.select import Selection
from kwire.wire.columns import Ints

Mask = NDArray[np.bool_]
ROW = np.dtype([
    ("time", "<i8"), ("latency", "<i8"),  # ns
    ("asked", "<u4"), ("answered", "<u4"),  # packets with the first bytes; 0: there is no such message
    ("asked_index", "<u4"), ("answered_index", "<u4"),  # the frames' numbers in their streams
    ("block", "<u4"),  # of packets, with which the exchange was complete
    ("connection", "<u4"), ("client", "<u4"), ("kind", "<u4"), ("about", "<u4"), ("codes", "<u4"), ("ending", "<u4"),
    ("correlation", "<i4"), ("sent", "<i4"), ("got", "<i4"), ("errors", "<u4"),
    ("asked_quality", "u1"), ("answered_quality", "u1"), ("flags", "u1"), ("spare", "u1"),
])  # fmt: skip
IDENTIFIED, SILENT, BARE = 1, 2, 4  # flags: has a correlation id; wants no answer; bare SASL tokens
CHUNK = 1 << 15  # rows that are looked at without a pause


class KindName(NamedTuple):
    """An API in a version; key -1: nobody knows it."""

    key: int
    api: str
    version: int


class Ends(NamedTuple):
    """A connection: its name, and client and broker."""

    name: str
    ends: tuple[str, str]


class ToldAbout(NamedTuple):
    """What exchanges are about: as a text, and by name."""

    text: str
    topics: list[str]
    groups: list[str]


class IndexNames(NamedTuple):
    """What the numbers in rows stand for. codes: the error codes of an answer, each once, the first one first; places:
    of each file its name and how many packets stand before it; several: packets are named with their files."""

    kinds: list[KindName]
    connections: list[Ends]
    clients: list[str | None]
    abouts: list[ToldAbout]
    codes: list[tuple[int, ...]]
    endings: list[str | None]
    places: list[tuple[str, int]]

    @classmethod
    def empty(cls) -> IndexNames:
        return cls([], [], [], [], [], [], [])

    def extend(self, new: IndexNames) -> None:
        for name in self._fields:
            getattr(self, name).extend(getattr(new, name))


class Index:
    """The rows that are there so far. rows(low, high) gives some of them; names are what they refer to."""

    def __init__(self, file: BinaryIO) -> None:
        self.names = IndexNames.empty()
        self.count = 0
        self._file = file
        self._rows: NDArray[Any] = np.zeros(0, ROW)

    def __len__(self) -> int:
        return self.count

    def grow(self, count: int) -> None:
        """So many rows are in the file."""
        self.count = count

    def rows(self, low: int, high: int) -> NDArray[Any]:
        """A view of the rows, fields as in ROW."""
        high = min(high, self.count)
        if high > len(self._rows):
            mapped = mmap.mmap(self._file.fileno(), self.count * ROW.itemsize, access=mmap.ACCESS_READ)
            self._rows = np.frombuffer(mapped, ROW)
        return self._rows[low:high]

    def row(self, number: int) -> Any:
        return self.rows(number, number + 1)[0]

    def holding(self, packet: int) -> int | None:
        """The exchange of which a message begins in a packet, counted through all files."""
        for low in range(0, self.count, CHUNK):
            rows = self.rows(low, low + CHUNK)
            found = np.flatnonzero((rows["asked"] == packet) | (rows["answered"] == packet))
            if len(found):
                return low + int(found[0])
        return None

    def counted(self, file: str, packet: int) -> int | None:
        """The number counted through of a file's packet; file "": of the only one."""
        found = [before for name, before in self.names.places if name == file or not file]
        return found[0] + packet if found else None

    def fitting(self, selection: Selection, low: int, high: int) -> Ints:
        """Which of these rows are wanted."""
        part = _Part(self.rows(low, high), self.names)
        wanted = selection.mask(part)  # type: ignore[arg-type]
        if selection.needs_about:
            about = np.unique(part.rows["about"][wanted])
            fine = [number for number in about.tolist() if selection.is_about(self.names.abouts[number])]
            wanted &= np.isin(part.rows["about"], fine)
        return np.flatnonzero(wanted) + low


class _Side(NamedTuple):
    there: Mask
    quality: Ints


class _Part:
    """Rows as a selection looks at those of a batch."""

    def __init__(self, rows: NDArray[Any], names: IndexNames) -> None:
        self.rows, self._names = rows, names
        self.kinds, self.connections = names.kinds, names.connections
        self.kind, self.connection, self.errors = rows["kind"], rows["connection"], rows["errors"]
        self.time, self.latency, self.correlation_id = rows["time"], rows["latency"], rows["correlation"]
        self.identified = (rows["flags"] & IDENTIFIED) > 0
        self.request = _Side(rows["asked"] > 0, rows["asked_quality"])
        self.response = _Side(rows["answered"] > 0, rows["answered_quality"])

    def __len__(self) -> int:
        return len(self.rows)

    def client_ids(self) -> tuple[list[str | None], Ints]:
        which, back = np.unique(self.rows["client"], return_inverse=True)
        return [self._names.clients[number] for number in which.tolist()], back

    def error_codes(self, row: int) -> tuple[int, ...]:
        codes: tuple[int, ...] = self._names.codes[self.rows["codes"][row]]
        return codes


class Answered(NamedTuple):
    """A row's message, as the rendering of outcomes looks at it."""

    quality: str
    errors: tuple[int, ...]
    api: KindName | None
    token: bool


class ShownRow(NamedTuple):
    """A row as an exchange: what is shown of it in a line. times and latency in ns; the rest as Exchange has it."""

    time: int
    latency: int | None
    client_id: str
    ends: tuple[str, str]
    api: str
    version: int | None
    correlation_id: int | None
    sent: int | None
    got: int | None
    about: str
    request: Answered | None
    response: Answered | None
    silent: bool
    ending: str | None
    packets: tuple[int, int]

    @property
    def first(self) -> Answered:
        message = self.request or self.response
        assert message is not None
        return message

    @property
    def error(self) -> int | None:
        return self.response.errors[0] if self.response and self.response.errors else None


def shown(row: Any, names: IndexNames) -> ShownRow:
    """A row with its names."""
    flags, kind, ends = int(row["flags"]), names.kinds[row["kind"]], names.connections[row["connection"]]
    asked, answered = int(row["asked"]), int(row["answered"])
    bare = bool(flags & BARE)
    known = kind if kind.key >= 0 else None
    codes, errors = names.codes[row["codes"]], int(row["errors"])
    codes += codes[:1] * min(errors - len(codes), 9999)
    request = Answered(QUALITIES[row["asked_quality"]], (), known, bare) if asked else None
    response = Answered(QUALITIES[row["answered_quality"]], codes, known, bare) if answered else None
    return ShownRow(
        int(row["time"]), int(row["latency"]) if asked and answered else None, names.clients[row["client"]] or "",
        ends.ends, TOKEN if bare and known is None else kind.api, known.version if known else None,
        int(row["correlation"]) if flags & IDENTIFIED else None, int(row["sent"]) if asked else None,
        int(row["got"]) if answered else None, names.abouts[row["about"]].text, request, response,
        bool(flags & SILENT), names.endings[row["ending"]], (asked, answered),
    )  # fmt: skip


def mask_of(values: Iterable[str], words: str) -> Mask:
    """Which of the texts hold the words, in any case."""
    wanted = words.lower()
    return np.array([wanted in value.lower() for value in values], bool)
