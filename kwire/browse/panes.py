"""A pane of lines with a cursor: however many there are, only those on the screen are made.

Lines are pieces with styles of our own (render/lines.py). They become segments of text as they are: no markup is read.
"""

from __future__ import annotations

from functools import cache

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from kwire.render.lines import STYLES, Line

THUMB = "▐"
CURSOR = Style(color="default", dim=False, reverse=True)
QUIET = Style(bold=True)  # the cursor of a pane that has not the keys


@cache
def style_of(name: str) -> Style:
    """Of a style's name, which may be several with blanks between."""
    found = Style.null()
    for part in name.split():
        found += Style.parse(STYLES.get(part, part) or "none")
    return found


def strip_of(line: Line, width: int, over: Style | None = None) -> Strip:
    """A line as long as width, over its styles another one."""
    styles = (style_of(style) if over is None else style_of(style) + over for _, style in line)
    strip = Strip([Segment(text, style) for (text, _), style in zip(line, styles, strict=True)])
    return strip.adjust_cell_length(width, over)


class Lines(Widget, can_focus=True):
    """count() lines, of which line(number, width) gives one. cursor: the number of a line; top: the first one shown;
    active: it has the keys."""

    DEFAULT_CSS = "Lines { width: 1fr; height: 1fr; }"

    class Moved(Message):
        """The cursor stands elsewhere, because somebody moved it."""

        def __init__(self, pane: Lines) -> None:
            super().__init__()
            self.pane = pane

    class Chosen(Message):
        """The line under the cursor was asked for."""

        def __init__(self, pane: Lines) -> None:
            super().__init__()
            self.pane = pane

    class Touched(Message):
        """Somebody clicked into the pane."""

        def __init__(self, pane: Lines) -> None:
            super().__init__()
            self.pane = pane

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.cursor = self.top = 0
        self.active = True

    def count(self) -> int:
        return 0

    def line(self, number: int, width: int) -> Strip:
        raise NotImplementedError

    def render_line(self, y: int) -> Strip:
        count, height, width = self.count(), self.size.height, self.size.width
        number = self.top + y
        room = width - (count > height)
        strip = self.line(number, room) if number < count else Strip.blank(room)
        if room == width:
            return strip
        thumb = self.top * (height - 1) // max(count - height, 1)
        return Strip([*strip, Segment(THUMB if y == min(thumb, height - 1) else " ", style_of("dim"))])

    def over(self, number: int) -> Style | None:
        """The style over the line of the cursor."""
        if number != self.cursor:
            return None
        return CURSOR if self.active else QUIET

    def put(self, cursor: int, told: bool = True) -> None:
        """Puts the cursor on a line, and shows it. told: others may want to know."""
        self.cursor = max(0, min(cursor, self.count() - 1))
        height = max(self.size.height, 1)
        self.top = max(min(self.top, self.cursor), self.cursor - height + 1)
        self.top = max(0, min(self.top, self.count() - height))
        self.refresh()
        if told:
            self.post_message(self.Moved(self))

    def step(self, by: int) -> None:
        """Moves the cursor by so many lines."""
        self.put(self.cursor + by)

    def page(self, by: float) -> None:
        """Moves by so many screens."""
        self.top += int(by * self.size.height)
        self.put(self.cursor + int(by * self.size.height))

    def ends(self, last: bool) -> None:
        self.put(self.count() - 1 if last else 0)

    def on_resize(self) -> None:
        self.put(self.cursor, told=False)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.step(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.step(-3)

    def on_click(self, event: events.Click) -> None:
        self.post_message(self.Touched(self))
        if self.top + event.y < self.count():
            self.put(self.top + event.y)
        if event.chain > 1:
            self.post_message(self.Chosen(self))
