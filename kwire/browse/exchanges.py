"""The list of exchanges: a line each, in columns that fit the terminal, made from rows of the index."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from rich.cells import cell_len, set_cell_size
from textual.strip import Strip

from kwire.browse.index import ShownRow, shown
from kwire.browse.panes import Lines, strip_of
from kwire.browse.view import RowsView
from kwire.render.exchanges import clock, outcome_of, took
from kwire.render.lines import Line, Shortener, clean, cut

WIDE, MIDDLE = 150, 100  # columns from which all, and most of the columns are shown
FINE = ("ok", "no answer wanted")  # outcomes that need no room of their own
MARK, HERE = "●", "▸"


class RowColumns(NamedTuple):
    """Widths; 0 leaves a column out."""

    time: int
    packet: int
    client: int
    broker: int
    api: int
    ident: int
    size: int
    took: int


NARROW = RowColumns(9, 0, 12, 0, 18, 0, 0, 7)
USUAL = RowColumns(11, 7, 18, 0, 24, 7, 0, 8)
ALL = RowColumns(11, 15, 36, 21, 28, 9, 8, 8)


class RowLines:
    """line(row) gives a row's line. start: what times count from, ns; None shows times of day."""

    def __init__(self, width: int, start: int | None) -> None:
        self.columns = ALL if width >= WIDE else USUAL if width >= MIDDLE else NARROW
        if start is None:
            self.columns = self.columns._replace(time=15)
        self.width, self.start = width, start
        self._clients = Shortener()

    def head(self) -> Line:
        c = self.columns
        cells = [
            ("time", c.time, True), ("packet", c.packet, False), ("client", c.client, False),
            ("broker", c.broker, False), ("exchange", c.api, False), ("id", c.ident, True), ("sent", c.size, True),
            ("got", c.size, True), ("took", c.took, True),
        ]  # fmt: skip
        texts = [f"{name:>{width}}" if right else f"{name:<{width}}" for name, width, right in cells if width]
        return [("  " + "  ".join([*texts, "about · outcome"]), "head")]

    def line(self, row: ShownRow, marked: bool, here: bool) -> Line:
        c = self.columns
        client = clean(row.client_id)
        if c.broker or not client:
            client = f"{client} {row.ends[0]}".strip()
        api = clean(row.api) + ("" if row.version is None else f" v{row.version}")
        asked, answered = row.packets
        packets = "→".join(str(number) for number in (asked, answered) if number)
        if not c.size:
            packets = str(asked or answered)
        cells = [
            (self.time(row.time), c.time, "offset", True), (packets, c.packet, "dim", False),
            (self._clients.short(client, c.client), c.client, "", False), (row.ends[1], c.broker, "dim", False),
            (cut(api, c.api), c.api, "name", False),
            ("" if row.correlation_id is None else str(row.correlation_id), c.ident, "dim", True),
            ("" if row.sent is None else str(row.sent), c.size, "dim", True),
            ("" if row.got is None else str(row.got), c.size, "dim", True), (took(row.latency), c.took, "", True),
        ]  # fmt: skip
        pieces: Line = [(MARK if marked else " ", "value" if marked else ""), (HERE if here else " ", "")]
        for text, width, style, right in cells:
            if width:
                pieces.append((_cell(text, width, right) + "  ", style))
        left = self.width - sum(cell_len(text) for text, _ in pieces)
        return [*pieces, *self._end(row, left)]

    def time(self, moment: int) -> str:
        if self.start is None:
            return clock(moment)
        micro = (moment - self.start) // 1000
        sign = "-" if micro < 0 else ""
        text = f"{sign}{abs(micro) // 1_000_000}.{abs(micro) % 1_000_000:06d}"
        return text[: max(self.columns.time, text.index(".") + 4)]

    @staticmethod
    def _end(row: ShownRow, room: int) -> Line:
        """What it is about, and before it how it ended, where that is worth a word."""
        outcome, style = outcome_of(cast(Any, row))
        if outcome in FINE:
            return [(row.about, "")] if row.about else [(outcome, "dim")]
        return [(cut(outcome, room), style), (f"  {row.about}" if row.about else "", "dim")]


def _cell(text: str, width: int, right: bool) -> str:
    """The text in a column: wide characters count as what they are."""
    if cell_len(text) > width:
        return set_cell_size(text, width)
    blank = " " * (width - cell_len(text))
    return blank + text if right else text + blank


class ExchangeList(Lines):
    """view: what is listed; marked: numbers of rows of the index; follows: the cursor stays on the last one."""

    def __init__(self, view: RowsView, utc: bool, *, id: str) -> None:
        super().__init__(id=id)
        self.view = view
        self.marked: set[int] = set()
        self.follows = False
        self.start = 0
        self._utc = utc
        self._lines = RowLines(80, 0)

    @property
    def lines(self) -> RowLines:
        start = None if self._utc else self.start
        if self._lines.width != self.size.width - 1 or self._lines.start != start:
            self._lines = RowLines(self.size.width - 1, start)
        return self._lines

    @property
    def row(self) -> int | None:
        """The number in the index of the row under the cursor."""
        return self.view.row(self.cursor) if self.cursor < len(self.view) else None

    def count(self) -> int:
        return len(self.view)

    def line(self, number: int, width: int) -> Strip:
        row, index = self.view.row(number), self.view.index
        line = self.lines.line(shown(index.row(row), index.names), row in self.marked, number == self.cursor)
        return strip_of(line, width, self.over(number))

    def grown(self) -> None:
        """There are more rows."""
        if self.follows and self.count():
            self.put(self.count() - 1)
        else:
            self.refresh()

    def show(self, view: RowsView) -> None:
        """Lists something else; the cursor stays where it was, or near it."""
        row = self.row
        self.view = view
        self.top = 0
        self.put(view.place(row) if row is not None and len(view) else 0)

    def step(self, by: int) -> None:
        self.follows = False
        super().step(by)

    def page(self, by: float) -> None:
        self.follows = False
        super().page(by)

    def ends(self, last: bool) -> None:
        self.follows = self.follows and last
        super().ends(last)
