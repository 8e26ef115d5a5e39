"""What of the index is listed: all of it, or the rows that a selection wants; and where words are found in it."""

from __future__ import annotations

import numpy as np

from kwire.browse.index import CHUNK, Index, mask_of
from kwire.session.record import error_name
from kwire.session.select import Selection
from kwire.wire.columns import Ints


class RowsView:
    """Rows of the index by their place in a list. selection None: all. scanned: rows of the index looked at."""

    def __init__(self, index: Index, selection: Selection | None = None) -> None:
        self.index, self.selection = index, selection
        self.scanned = 0
        self._found = np.zeros(0, np.uint32)
        self._count = 0

    def __len__(self) -> int:
        return len(self.index) if self.selection is None else self._count

    @property
    def behind(self) -> bool:
        """Whether there are rows that were not looked at."""
        return self.selection is not None and self.scanned < len(self.index)

    def advance(self) -> None:
        """Looks at some more rows."""
        if self.selection is None:
            return
        high = min(self.scanned + CHUNK, len(self.index))
        if high > self.scanned:
            found = self.index.fitting(self.selection, self.scanned, high)
            self.scanned = high
            if self._count + len(found) > len(self._found):
                grown = np.zeros(max(2 * len(self._found), self._count + len(found)), np.uint32)
                grown[: self._count] = self._found[: self._count]
                self._found = grown
            self._found[self._count : self._count + len(found)] = found
            self._count += len(found)

    def row(self, place: int) -> int:
        """The number in the index of what is at a place."""
        return place if self.selection is None else int(self._found[place])

    def rows(self, low: int, high: int) -> Ints:
        """The numbers of what is at these places."""
        return np.arange(low, high) if self.selection is None else self._found[low:high].astype(np.int64)

    def place(self, row: int) -> int:
        """Where a row of the index is, or would be."""
        if self.selection is None:
            return row
        return int(np.searchsorted(self._found[: self._count], row))

    def has(self, row: int) -> bool:
        place = self.place(row)
        return place < len(self) and self.row(place) == row


class Search:
    """Words in what lines say: client, API, what it is about, connection, errors. from_(view, place, step) looks for
    the next place."""

    def __init__(self, index: Index, words: str) -> None:
        self.words = words
        self._index = index

    def found(self, view: RowsView, place: int, forward: bool) -> int | None:
        """The nearest place behind, or before, one; goes on at the other end. None when there is none at all."""
        hits = self._hits()
        count = len(view)
        spans = [(place + 1, count), (0, min(place + 1, count))] if forward else [(0, place), (max(place, 0), count)]
        for low, high in spans:
            starts = range(low, high, CHUNK) if forward else range(high, low, -CHUNK)
            for at in starts:
                first, last = (at, min(at + CHUNK, high)) if forward else (max(at - CHUNK, low), at)
                where = np.flatnonzero(self._at(view.rows(first, last), hits))
                if len(where):
                    return first + int(where[0] if forward else where[-1])
        return None

    def _hits(self) -> dict[str, Ints]:
        """By the column of rows which of their names hold the words."""
        names, words = self._index.names, self.words
        texts = {
            "kind": [f"{kind.api} v{kind.version}" for kind in names.kinds],
            "client": [client or "" for client in names.clients],
            "connection": [ends.name for ends in names.connections],
            "about": [told.text for told in names.abouts],
            "codes": [" ".join(error_name(code) or "" for code in codes) for codes in names.codes],
            "ending": [ending or "" for ending in names.endings],
        }
        return {column: mask_of(values, words) for column, values in texts.items()}  # type: ignore[misc]

    def _at(self, rows: Ints, hits: dict[str, Ints]) -> Ints:
        low, high = (int(rows[0]), int(rows[-1]) + 1) if len(rows) else (0, 0)
        part = self._index.rows(low, high)[rows - low]
        found = np.zeros(len(part), bool)
        for column, named in hits.items():
            if named.any():
                found |= named[part[column]]
        return found
