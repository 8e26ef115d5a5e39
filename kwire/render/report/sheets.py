"""Tables of a report: each row with the command that shows more of it. In the page they sort and filter; without
JavaScript they are tables. On a phone every row becomes a card."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kwire.render.html.markup import LINE, Content, Markup, element, joined
from kwire.render.lines import clean, cut

LETTERS = 160  # of a cell
TALL = 30  # rows from which on a table scrolls in a box of its own; on paper all of it is there
FOLDED = 12  # rows from which on a table beside others is behind a fold


class Column(NamedTuple):
    """number: whether its cells are numbers."""

    head: str
    number: bool = False


class Cell(NamedTuple):
    """shown; value: what it is sorted by, when that is not what is shown; more: options that make the row's command
    that of this number."""

    shown: Content
    value: float | None = None
    more: str = ""
    style: str | None = None


@dataclass(slots=True)
class SheetRow:
    """cells: as many as there are columns; command: what shows more."""

    cells: Sequence[Cell]
    command: str = ""


@dataclass(slots=True)
class Sheet:
    """name: the table's id; total: how many rows there would be, when some are left out; rest: the command for
    these."""

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[SheetRow]
    total: int | None = None
    rest: str = ""

    @property
    def markup(self) -> Markup:
        """The table."""
        commands = any(row.command for row in self.rows)
        heads = [element("th", one.head, scope="col", class_="n" if one.number else None) for one in self.columns]
        if commands:
            heads.append(element("th", "shows more", scope="col"))
        rows = joined((_row(row, self.columns, commands) for row in self.rows), LINE)
        caption: list[Content] = [element("span", self.title)]
        if self.total is not None and self.total > len(self.rows):
            caption.append(f" {len(self.rows):,} of {self.total:,} ")
            caption.append(element("code", self.rest) if self.rest else None)
        table = element(
            "table", element("caption", *caption), element("thead", element("tr", *heads)), element("tbody", rows),
            class_="sheet", id=self.name,
        )  # fmt: skip
        if len(self.rows) <= TALL:
            return table
        return element("div", table, class_="tall", tabindex="0", role="region", aria_label=self.title)

    @property
    def style(self) -> str:
        """CSS that names the columns beside each value where a row is a card. Heads are ours, and no text of the
        wire."""
        heads = [*(one.head for one in self.columns), "shows more"]
        return "".join(
            f'  #{self.name} td:nth-child({at})::before {{ content: "{head}" }}\n'
            for at, head in enumerate(heads, 1) if at > 1 and head
        )  # fmt: skip


def folded(sheet: Sheet, title: str) -> Markup:
    """A short table, or a long one behind a fold."""
    if len(sheet.rows) <= FOLDED:
        return sheet.markup
    return element("details", element("summary", title), sheet.markup)


def _row(row: SheetRow, columns: Sequence[Column], commands: bool) -> Markup:
    cells = [
        element("td" if at else "th", _short(cell.shown), scope=None if at else "row", class_=_class(column, cell),
                data_v=_number(cell.value), data_m=cell.more or None)
        for at, (column, cell) in enumerate(zip(columns, row.cells, strict=True))
    ]  # fmt: skip
    if commands:
        cells.append(element("td", element("code", row.command) if row.command else "", class_="cmd"))
    return element("tr", *cells)


def _short(shown: Content) -> Content:
    """Text of the wire may be long."""
    return shown if isinstance(shown, Markup) else cut(clean(str(shown or "")), LETTERS)


def _class(column: Column, cell: Cell) -> str | None:
    return " ".join(filter(None, ("n" if column.number else "", cell.style or ""))) or None


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:g}" if isinstance(value, float) else str(value)
