"""Appends exchanges to the index: the numbers of their columns, and the names that are new, each once."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, BinaryIO, TypeVar

import numpy as np
from numpy.typing import NDArray

from kwire.browse.index import BARE, IDENTIFIED, ROW, SILENT, Ends, IndexNames, KindName, ToldAbout
from kwire.render.exchanges import about_text
from kwire.session.about import About
from kwire.session.about_columns import abouts_of
from kwire.session.batch import ExchangeBatch
from kwire.wire.columns import Ints

MOST_NAMES = 1_000_000  # of a kind; what comes later goes by the first one, which says nothing
LONGEST = 249  # characters of a client id that are kept
ABOUT = 400  # characters of what an exchange is about, and names of topics and groups each
WAITING = 50_000  # rows that wait for a request that is older and still open
T = TypeVar("T", bound=Hashable)


class Numbered:
    """Values and their numbers, those that are new to be told."""

    def __init__(self, first: Any) -> None:
        self._numbers: dict[Any, int] = {}
        self._values: list[Any] = []
        self.of(None, first)

    def of(self, key: Hashable, value: Any) -> int:
        """The value's number; 0 where there are too many."""
        number = self._numbers.get(key)
        if number is None:
            if len(self._numbers) >= MOST_NAMES:
                return 0
            number = self._numbers[key] = len(self._numbers)
            self._values.append(value)
        return number

    def known(self, key: Hashable) -> int | None:
        return self._numbers.get(key)

    def take(self) -> list[Any]:
        """The values since it was last asked."""
        new, self._values = self._values, []
        return new


class IndexWriter:
    """add(batch, block, safe) takes exchanges, which go to the file in the order of time once nothing older can come;
    count: rows in the file."""

    def __init__(self, file: BinaryIO) -> None:
        self.count = 0
        self._file = file
        self._waiting: NDArray[Any] = np.zeros(0, ROW)
        self._kinds = Numbered(KindName(-1, "unknown", 0))
        self._connections, self._clients = Numbered(Ends("", ("", ""))), Numbered(None)
        self._abouts, self._codes, self._endings = Numbered(ToldAbout("", [], [])), Numbered(()), Numbered(None)
        self._places: list[tuple[str, int]] = []

    def begin(self, name: str, before: int) -> None:
        """The packets behind so many are those of a file."""
        self._places.append((name, before))

    def take_names(self) -> IndexNames:
        """Those that are new."""
        places, self._places = self._places, []
        return IndexNames(
            self._kinds.take(), self._connections.take(), self._clients.take(), self._abouts.take(),
            self._codes.take(), self._endings.take(), places,
        )  # fmt: skip

    def add(self, batch: ExchangeBatch, block: int) -> None:
        """Exchanges that were complete with a block of packets. They wait for release."""
        self._waiting = np.concatenate([self._waiting, self._rows(batch, block)])

    def release(self, until: int | None) -> None:
        """Writes what began before a time, ns, None: all."""
        rows = self._waiting
        if not len(rows):
            return
        rows = rows[np.lexsort((np.where(rows["asked"] > 0, rows["asked"], rows["answered"]), rows["time"]))]
        end = len(rows) if until is None else int(np.searchsorted(rows["time"], until))
        if len(rows) - end > WAITING:
            end = max(end, len(rows) // 2)
        self._waiting = rows[end:]
        if end:
            self._file.write(rows[:end].tobytes())
            self._file.flush()
            self.count += end

    def _rows(self, batch: ExchangeBatch, block: int) -> NDArray[Any]:
        request, response = batch.request, batch.response
        rows = np.zeros(len(batch), ROW)
        rows["time"], rows["latency"], rows["block"] = batch.time, batch.latency, block
        for side, packet, index, size, quality in (
            (request, "asked", "asked_index", "sent", "asked_quality"),
            (response, "answered", "answered_index", "got", "answered_quality"),
        ):
            rows[packet] = np.where(side.there, side.packet, 0)
            rows[index], rows[size], rows[quality] = side.index, side.size, side.quality
        kinds = [
            0 if kind is None else self._kinds.of((kind.key, kind.version), KindName(kind.key, kind.api, kind.version))
            for kind in batch.kinds
        ]
        rows["kind"] = np.array(kinds, np.int64)[batch.kind] if kinds else 0
        used, back = np.unique(batch.connection, return_inverse=True)
        names = [(batch.connections[at].full_name, batch.connections[at].ends) for at in used.tolist()]
        rows["connection"] = np.array([self._connections.of(name, Ends(name, ends)) for name, ends in names])[back]
        clients, which = batch.client_ids()
        cut = [None if name is None else name[:LONGEST] for name in clients]
        rows["client"] = np.array([self._clients.of(name, name) for name in cut])[which]
        rows["correlation"], rows["errors"] = batch.correlation_id, np.minimum(batch.errors, 0xFFFFFFFF)
        rows["about"] = self._about(batch)
        rows["codes"] = self._codes_of(batch)
        used, back = np.unique(batch.ending, return_inverse=True)
        endings = [batch.texts[at] for at in used.tolist()]
        rows["ending"] = np.array([self._endings.of(text, text) for text in endings])[back]
        rows["flags"] = batch.identified * IDENTIFIED | batch.silent * SILENT | batch.token * BARE
        return rows

    def _about(self, batch: ExchangeBatch) -> Ints:
        found = abouts_of(batch)
        return np.array([self._told(value) for value in found.values], np.int64)[found.which]

    def _told(self, about: About) -> int:
        text = about_text(about)[:ABOUT]
        topics, groups = list(about.topics)[:ABOUT], about.groups[:ABOUT]
        if not text:
            return 0
        return self._abouts.of((text, *topics, None, *groups), ToldAbout(text, topics, groups))

    def _codes_of(self, batch: ExchangeBatch) -> Ints:
        codes = np.zeros(len(batch), np.int64)
        once = np.flatnonzero(batch.errors == 1)
        used, back = np.unique(batch.first_error[once], return_inverse=True)
        codes[once] = np.array([self._codes.of((code,), (code,)) for code in used.tolist()], np.int64)[back]
        for row in np.flatnonzero(batch.errors > 1).tolist():
            several = tuple(dict.fromkeys(batch.error_codes(row)))
            codes[row] = self._codes.of(several, several)
        return codes
