"""Pages over the list: help, what other commands say, and findings that lead to their evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from rich.segment import Segment
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.strip import Strip
from textual.widgets import Static

from kwire.browse.keys import MOVING
from kwire.browse.panes import Lines, strip_of
from kwire.render.lines import Line, clean, paragraph

SEVERITIES = {"error": "error", "warning": "note", "note": "dim"}
STEPS = [key for key in MOVING if key.action.startswith(("step", "ends", "page"))]


class TextPane(Lines):
    """Lines of text to read. A text of one line may be longer than the pane: it goes on beneath."""

    def __init__(self, lines: Sequence[Line | Text] | str, *, id: str) -> None:
        super().__init__(id=id)
        self._text = lines if isinstance(lines, str) else ""
        self._lines: Sequence[Line | Text] = [] if isinstance(lines, str) else lines

    def on_resize(self) -> None:
        if self._text:
            room = max(self.size.width - 1, 1)
            self._lines = [[(self._text[at : at + room], "")] for at in range(0, len(self._text), room)]
        super().on_resize()

    def count(self) -> int:
        return len(self._lines)

    def line(self, number: int, width: int) -> Strip:
        line = self._lines[number]
        if not isinstance(line, Text):
            return strip_of(line, width)
        segments = [segment for segment in line.render(self.app.console) if segment.text != "\n"]
        return Strip([Segment(text, style) for text, style, _ in segments]).adjust_cell_length(width)

    def step(self, by: int) -> None:
        self.top = max(0, min(self.top + by, self.count() - self.size.height))
        self.put(self.top if by < 0 else self.top + self.size.height - 1)


class TextPage(Screen[Any]):
    """A title and lines; q or Esc closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,escape", "leave", show=False),
        Binding("enter", "choose", show=False),
        *(Binding(key.keys, key.action, show=False) for key in STEPS),
    ]

    def __init__(self, title: str, pane: Lines) -> None:
        super().__init__()
        self._title, self._pane = title, pane

    def compose(self) -> ComposeResult:
        yield Static(Text(clean(self._title), no_wrap=True, overflow="ellipsis"), classes="bar")
        yield self._pane
        yield Static(Text("q back", style="dim"), classes="hints")

    def on_mount(self) -> None:
        self._pane.focus()

    def action_leave(self) -> None:
        self.dismiss(None)

    def action_choose(self) -> None:
        self.dismiss(self._pane.chosen() if isinstance(self._pane, FindingsPane) else None)

    def action_step(self, by: int) -> None:
        self._pane.step(by)

    def action_page(self, by: int) -> None:
        self._pane.page(by)

    def action_ends(self, last: bool) -> None:
        self._pane.ends(last)

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        event.stop()
        self.action_choose()


class FindingsPane(Lines):
    """Findings as kwire doctor gives them in JSON: each its text, its advice, and a line for each packet that shows it,
    on which the cursor stops. chosen(): the packet under it."""

    def __init__(self, findings: Sequence[dict[str, Any]], width: int, *, id: str) -> None:
        super().__init__(id=id)
        self._lines: list[Line] = []
        self._packets: list[str | None] = []
        for finding in findings:
            self._add(finding, width - 2)

    def _add(self, finding: dict[str, Any], width: int) -> None:
        severity, packets = str(finding["severity"]), [str(packet) for packet in finding["packets"]]
        count = finding["count"]
        times = f"  {count:,} times" if count > 1 else ""
        head: Line = [
            (f"{severity:<9}", SEVERITIES.get(severity, "")), (clean(str(finding["detector"])), "section"),
            (times, "dim"),
        ]  # fmt: skip
        first = packets[0] if packets else None
        for line in (head, *paragraph(clean(str(finding["text"])), width, " " * 9, "", breaks=True)):
            self._put(line, first)
        if finding["advice"]:
            for line in paragraph(clean("→ " + str(finding["advice"])), width, " " * 9, "good", breaks=True):
                self._put(line, first)
        for packet in packets:
            self._put([(" " * 9, ""), (f"packet {clean(packet)}", "value")], packet)
        self._put([], None)

    def _put(self, line: Line, packet: str | None) -> None:
        self._lines.append(line)
        self._packets.append(packet)

    def chosen(self) -> str | None:
        return self._packets[self.cursor] if self.cursor < len(self._packets) else None

    def count(self) -> int:
        return len(self._lines)

    def line(self, number: int, width: int) -> Strip:
        return strip_of(self._lines[number], width, self.over(number))

    def step(self, by: int) -> None:
        """To the next line that leads to a packet."""
        at = self.cursor + by
        while 0 <= at < self.count() and self._packets[at] is None:
            at += 1 if by > 0 else -1
        self.put(at)
