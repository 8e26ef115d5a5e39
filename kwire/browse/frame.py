"""The two panes of a frame: its diagram, and its bytes. What is chosen in one lights up in the other."""

from __future__ import annotations

from bisect import bisect_right

from rich.style import Style
from textual.strip import Strip

from kwire.browse.panes import Lines, strip_of
from kwire.browse.pictures import MOST_BYTES, NO_FIELD, Area, Picture
from kwire.render.hexdump import COLORS
from kwire.render.lines import Line

EMPTY = Picture([], [], [], b"", 0, [], [])
LIT = Style(bold=True)
SIXTEEN = 73  # columns from which sixteen bytes stand in a line


class DiagramPane(Lines):
    """picture: what is shown; the cursor goes from field to field."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.picture = EMPTY

    def show(self, picture: Picture) -> None:
        """Shows a frame, from its start, the first field that could not be read chosen, else the first one."""
        self.picture = picture
        self.top = 0
        first = next((field.line for field in picture.fields if field.bad), None)
        self.put(self._next(-1, 1) if first is None else first, told=False)

    @property
    def field(self) -> Area | None:
        """The one under the cursor."""
        owner = self._owner(self.cursor)
        return None if owner == NO_FIELD else self.picture.fields[owner]

    def choose(self, byte: int) -> None:
        """Goes to the field that has a byte of the frame."""
        found = field_at(self.picture, byte)
        if found is not None:
            self.put(found.line, told=False)

    def count(self) -> int:
        return len(self.picture.lines)

    def line(self, number: int, width: int) -> Strip:
        owner, chosen = self._owner(number), self._owner(self.cursor)
        over = self.over(number)
        if over is None and owner == chosen != NO_FIELD:
            over = LIT
        return strip_of(self.picture.lines[number], width, over)

    def step(self, by: int) -> None:
        if abs(by) > 1:
            self.top += by
        self.put(self._next(self.cursor, by))

    def put(self, cursor: int, told: bool = True) -> None:
        if cursor <= self._next(-1, 1):
            self.top = 0  # the title stands above the first field
        super().put(cursor, told)
        field = self.field
        if field is not None:  # with what is said beneath it
            self.top = max(self.top, min(field.line, field.last - self.size.height + 1))

    def _owner(self, line: int) -> int:
        return self.picture.owners[line] if 0 <= line < len(self.picture.owners) else NO_FIELD

    def _next(self, line: int, by: int) -> int:
        """The next line with a field of its own, so many lines on at least."""
        step = 1 if by > 0 else -1
        own = self._owner(line)
        at = line + by
        while 0 <= at < len(self.picture.lines):
            if self._owner(at) not in (NO_FIELD, own) or self._owner(at) == own != self._owner(at - step):
                return at
            at += step
        return max(line, 0)


class BytesPane(Lines):
    """picture: what is shown; byte: where the cursor is; lit: the bytes of the field that is chosen."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.picture = EMPTY
        self.byte = 0
        self.lit = (0, 0)
        self._starts: list[int] = []

    def show(self, picture: Picture) -> None:
        self.picture = picture
        self._starts = [start for start, _, _ in picture.tiles]
        self.byte = self.top = 0
        self.put(0, told=False)

    def mark(self, field: Area | None) -> None:
        """Lights a field's bytes up. None: nothing."""
        self.lit = (0, 0) if field is None else (field.start, field.end)
        self.refresh()

    def light(self, field: Area | None) -> None:
        """The same, and shows the first of them."""
        self.mark(field)
        if field is not None:
            self.byte = min(field.start, max(len(self.picture.data) - 1, 0))
            self.put(self.byte // self.each, told=False)

    @property
    def each(self) -> int:
        """Bytes in a line."""
        return 16 if self.size.width >= SIXTEEN else 8

    def count(self) -> int:
        rows = -(-len(self.picture.data) // self.each)
        return rows + (self.picture.size > len(self.picture.data) and bool(self.picture.tiles))

    def step(self, by: int) -> None:
        self.aside(by * self.each)

    def aside(self, by: int) -> None:
        """Moves by bytes."""
        self.byte = max(0, min(self.byte + by, len(self.picture.data) - 1))
        super().put(self.byte // self.each)

    def page(self, by: float) -> None:
        self.aside(int(by * self.size.height) * self.each)

    def ends(self, last: bool) -> None:
        self.aside(len(self.picture.data) if last else -len(self.picture.data))

    def line(self, number: int, width: int) -> Strip:
        data, each = self.picture.data, self.each
        at = number * each
        if at >= len(data):
            return strip_of([(f"… {self.picture.size - len(data):,} more bytes", "note")], width)
        pairs: Line = [(f"{at:04x}  ", "offset")]
        texts: Line = [(" ", "")]
        for place in range(at, at + each):
            if place >= len(data):
                pairs.append(("   ", ""))
                continue
            style, hidden = self._style(place), self._hidden(place)
            gap = " underline" if place + 1 == self.lit[1] else ""
            pairs.append((f"{data[place]:02x}" if not hidden else "··", style))
            pairs.append((" ", style.replace("reverse", "") if gap else style))
            char = chr(data[place]) if 32 <= data[place] < 127 and not hidden else "·"
            texts.append((char, style))
        return strip_of([*pairs, *texts], width)

    def _hidden(self, place: int) -> bool:
        at = bisect_right(self.picture.hidden, (place, MOST_BYTES)) - 1
        return at >= 0 and place < self.picture.hidden[at][1]

    def _style(self, place: int) -> str:
        at = bisect_right(self._starts, place) - 1
        bad = at >= 0 and self.picture.tiles[at][2]
        color = "error" if bad else COLORS[at % len(COLORS)]
        lit = " reverse" if self.lit[0] <= place < self.lit[1] else ""
        return color + lit + (" bold underline" if place == self.byte and self.active else "")


def field_at(picture: Picture, byte: int) -> Area | None:
    """The field of which a byte is one."""
    return next((field for field in picture.fields if field.start <= byte < field.end), None)
