"""The application: list above, diagram below, bytes beside it; narrow terminals show one of the two, Tab the other.

It only draws and takes keys. What is read and decoded comes from the process at the other end of the link, and is
heard as it comes; a frame that is long in coming is announced and replaces the announcement.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, ClassVar

from rich.text import Text
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widgets import Input, Static

from kwire.browse.exchanges import ExchangeList
from kwire.browse.frame import EMPTY, BytesPane, DiagramPane, field_at
from kwire.browse.keys import HINTS, SECTIONS, help_lines
from kwire.browse.link import ReaderLink
from kwire.browse.pages import TextPage, TextPane
from kwire.browse.panes import Lines, style_of
from kwire.browse.pictures import FrameViews
from kwire.browse.prompt import Prompted
from kwire.browse.reader import AllRead, AskFrame, FrameAnswer, FrameText, More
from kwire.browse.setting import BrowseSetting
from kwire.browse.view import RowsView
from kwire.counted import counted
from kwire.render.lines import Line, clean

BESIDE, ROOMY = 110, 170  # columns from which bytes stand beside the diagram, and sixteen of them in a line
ELEMENTS = 50  # of an array that are shown at first
PATIENCE = 0.1  # seconds that a frame may take before "reading…" is said


class Browser(Prompted, App[None]):
    """setting: what is browsed; link: the process that reads."""

    CSS = """
    Screen { background: ansi_default; color: ansi_default; layout: vertical; }
    .bar { height: 1; background: ansi_default; text-style: bold; }
    .head, .hints { height: 1; background: ansi_default; }
    #list { height: 2fr; min-height: 3; }
    #below { height: 3fr; }
    #bytes { width: 41; display: none; border-left: solid ansi_bright_black; }
    .beside #bytes { display: block; }
    .roomy #bytes { width: 75; }
    .bytes #bytes { display: block; width: 1fr; border-left: none; }
    .bytes #diagram { display: none; }
    .beside.bytes #diagram { display: block; }
    .beside.bytes #bytes { width: 41; border-left: solid ansi_bright_black; }
    .roomy.bytes #bytes { width: 75; }
    #asking { display: none; height: 1; }
    #asking.asked { display: block; }
    #question { width: auto; }
    #prompt { width: 1fr; height: 1; border: none; padding: 0; background: ansi_default; }
    Input { color: ansi_default; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(key.keys, key.action, show=False) for _, keys in SECTIONS for key in keys if "tab" not in key.keys),
        Binding("tab", "next_pane(1)", show=False, priority=True),
        Binding("shift+tab", "next_pane(-1)", show=False, priority=True),
        Binding("ctrl+c", "quit", show=False, priority=True),
    ]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, setting: BrowseSetting, link: ReaderLink) -> None:
        super().__init__(ansi_color=True)
        self.setting, self.link = setting, link
        self.index = link.index
        self.done = 0.0  # how much is read, of 1
        self.ended: AllRead | None = None
        self.gone = False
        self.failure: Exception | None = None
        self.side = 0
        self.sides = (True, True)
        self._asked = self._answered = 0  # numbers of frames
        self._showing: tuple[int, int, FrameViews] | None = None  # the row, side and views that were asked for last
        self._elements = ELEMENTS
        self._frame_now: FrameAnswer | None = None

    def _handle_exception(self, error: Exception) -> None:
        """A bug ends it, and is told by whoever ran it: Textual would print a traceback with all that is in memory."""
        self.failure = self.failure or error
        self._return_code = 1
        if self._exception is None:  # as App has it, for its pilot
            self._exception = error
            self._exception_event.set()
        self._close_messages_no_wait()

    def compose(self) -> ComposeResult:
        self.rows = ExchangeList(RowsView(self.index), self.setting.utc, id="list")
        self.diagram, self.bytes = DiagramPane(id="diagram"), BytesPane(id="bytes")
        self.pane: Lines = self.rows  # which has the keys
        self.diagram.active = self.bytes.active = False
        yield Static(classes="bar", id="title")
        yield Static(classes="head", id="columns")
        yield self.rows
        yield Static(classes="bar", id="about")
        with Horizontal(id="below"):
            yield self.diagram
            yield self.bytes
        yield Static(Text(HINTS, style="dim", no_wrap=True), classes="hints", id="status")
        with Horizontal(id="asking"):
            yield Static(id="question")
            yield Input(id="prompt")

    def on_mount(self) -> None:
        self.theme = "ansi-dark"
        self.rows.focus()
        self.rows.follows = self.setting.follow
        asyncio.get_running_loop().add_reader(self.link.file, self._hear)
        self.set_timer(0.01, self._hear)
        if self.setting.first:
            self.filter(self.setting.first)

    def on_unmount(self) -> None:
        with suppress(RuntimeError):
            asyncio.get_running_loop().remove_reader(self.link.file)

    @property
    def quiet(self) -> bool:
        """Whether nothing is on its way: no frame, no look for what fits, no other command."""
        return (self._asked == self._answered or self.gone) and not self._busy and not self.running

    # ---------------------------------------------------------------- what is heard

    def _hear(self) -> None:
        try:
            for said in self.link.heard():
                self._take(said)
        except EOFError:
            asyncio.get_running_loop().remove_reader(self.link.file)
            self.gone = True
            self.say("the process that reads is gone", "error")
        self._title()
        said = self.setting.alert()
        if said:
            self.say(said, "error")

    def _take(self, said: Any) -> None:
        if isinstance(said, More):
            self.index.names.extend(said.names)
            self.index.grow(said.rows)
            self.rows.start = said.start
            self.done = said.done / said.size if said.size else 0.0
            self._grown()
        elif isinstance(said, AllRead):
            self.ended = said
            for note in said.notes[:1]:
                self.say(note, "note")
            if said.problem:
                self.say(said.problem, "error")
            self._grown()
        elif isinstance(said, FrameAnswer):
            self._shown(said)
        elif isinstance(said, FrameText):
            self.exported(said)

    def _grown(self) -> None:
        self.look_on()
        self.rows.grown()
        self._ask_frame()

    def _title(self) -> None:
        listed, count = len(self.rows.view), len(self.index)
        filtered = self.rows.view.selection is not None
        text = Text(no_wrap=True, overflow="ellipsis")
        text.append(f"{clean(self.setting.title)} ", "bold")
        text.append(f"· {self.rows.cursor + 1:,} of " if listed else "· ")
        text.append(f"{listed:,} of {counted(count, 'exchange')}" if filtered else counted(count, "exchange"))
        if self.setting.live and not self.ended:
            text.append(" · live" + (", following" if self.rows.follows else ""), "green")
        elif not self.ended:
            text.append(f" · reading {min(self.done, 1):.0%}", "magenta")
        if self.rows.marked:
            text.append(f" · {len(self.rows.marked):,} marked", "yellow")
        if self.filter_line:
            text.append(f" · {clean(self.filter_line)}", "cyan")
        if self.ended and not count:
            sealed = self.ended.encrypted
            text.append(
                f" · {counted(sealed, 'TLS connection')} that only keys can open (--keylog FILE)" if sealed
                else " · no Kafka in it (kwire read --not-kafka shows what there is)", "magenta",
            )  # fmt: skip
        self._put("title", text)
        self._put("columns", _text(self.rows.lines.head()))

    def _put(self, id: str, text: Text) -> None:
        if self.screen_stack:  # none any more when it ends
            self.screen_stack[0].query_one(f"#{id}", Static).update(text)

    def say(self, text: str, style: str = "") -> None:
        """A line at the bottom, until the next key."""
        self._put("status", Text(clean(text), style=style_of(style or "none"), no_wrap=True, overflow="ellipsis"))
        self._said = True

    _said = False

    def on_key(self, _: events.Key) -> None:
        if self._said:
            self._said = False
            self._put("status", Text(HINTS, style="dim", no_wrap=True))

    # ---------------------------------------------------------------- the frame

    def _ask_frame(self) -> None:
        """Asks for the frame of the row under the cursor, unless it is there or another one is on its way."""
        row = self.rows.row
        if row is None or self._asked != self._answered or self.gone:
            if row is None and self.diagram.picture is not EMPTY:
                self._showing = None
                self._frame(None)
            return
        views = FrameViews(max(self.diagram.size.width or self._wide(), 40) - 1, self._elements, *self._shown_as)
        wanted = row, self.side, views
        if wanted == self._showing:
            return
        self._showing = wanted
        self._asked += 1
        number = self._asked
        self.link.ask(AskFrame(number, self.index.row(row).copy(), self.side, views))
        self.set_timer(PATIENCE, lambda: self._late(number))

    @property
    def _shown_as(self) -> tuple[bool, bool]:
        return self.setting.secrets, self.setting.utc

    def _wide(self) -> int:
        width = self.size.width
        return width - 75 if width >= ROOMY else width - 41 if width >= BESIDE else width

    def _late(self, number: int) -> None:
        if self._answered < number:
            self._put("about", Text("reading…", style="magenta"))

    def _shown(self, frame: FrameAnswer) -> None:
        self._answered = frame.number
        row = self._showing[0] if self._showing else None
        if row == self.rows.row:
            self.sides = frame.sides
            self._frame(frame)
        self._ask_frame()

    def _frame(self, frame: FrameAnswer | None) -> None:
        found = frame.picture if frame is not None and frame.picture is not None else EMPTY
        self.diagram.show(found)
        self.bytes.show(found)
        self.bytes.light(self.diagram.field)
        self._frame_now = frame
        self._heading()

    def _heading(self) -> None:
        """The line between list and frame: which of the two messages it is."""
        frame = self._frame_now
        if frame is None or not self.screen_stack:
            self._put("about", Text(""))
            return
        if frame.problem:
            self._put("about", Text(clean(frame.problem), style="red"))
            return
        base = self.screen_stack[0]
        text = Text(no_wrap=True, overflow="ellipsis")
        for side, name in enumerate(("request", "response")):
            there = frame.sides[side]
            style = "reverse bold" if side == frame.side else "" if there else "dim"
            text.append(f" {name} " if there else f" no {name} ", style)
        shown, other = ("bytes", "diagram") if base.has_class("bytes") else ("diagram", "bytes")
        text.append("" if base.has_class("beside") else f"  {shown} (Tab: {other})", "dim")
        start, end = self.bytes.lit
        field = self.diagram.field
        if field is not None and end > start:
            text.append(f"  {field.name}: byte {start}" + (f" to {end - 1}" if end - start > 1 else ""), "dim")
        self._put("about", text)

    def on_lines_moved(self, event: Lines.Moved) -> None:
        if event.pane is self.rows:
            self._ask_frame()
            self._title()
        elif event.pane is self.diagram:
            self.bytes.light(self.diagram.field)
            self._heading()
        elif event.pane is self.bytes:
            self.bytes.mark(field_at(self.bytes.picture, self.bytes.byte))
            self.diagram.choose(self.bytes.byte)
            self._heading()

    def on_lines_touched(self, event: Lines.Touched) -> None:
        if event.pane in (self.rows, self.diagram, self.bytes):
            self.go(event.pane)

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        if event.pane is self.rows:
            self.action_enter()

    def on_resize(self, event: events.Resize) -> None:
        base = self.screen_stack[0]
        base.set_class(event.size.width >= BESIDE, "beside")
        base.set_class(event.size.width >= ROOMY, "roomy")
        self.call_after_refresh(self._ask_frame)
        self.call_after_refresh(self._title)

    # ---------------------------------------------------------------- keys

    def action_step(self, by: int) -> None:
        self.pane.step(by)

    def action_page(self, by: int) -> None:
        self.pane.page(by)

    def action_ends(self, last: bool) -> None:
        self.pane.ends(last)

    def action_aside(self, by: int) -> None:
        if self.pane is self.bytes:
            self.bytes.aside(by)

    def action_next_pane(self, by: int) -> None:
        if len(self.screen_stack) > 1 or self.asking:
            return
        panes: list[Lines] = [self.rows, self.diagram, self.bytes]
        self.go(panes[(panes.index(self.pane) + by) % len(panes)])

    def go(self, pane: Lines) -> None:
        if pane is not self.rows:
            self.screen_stack[0].set_class(pane is self.bytes, "bytes")
        self.pane = pane
        for one in (self.rows, self.diagram, self.bytes):
            one.active = one is pane
            one.refresh()
        self._heading()
        self.call_after_refresh(self._ask_frame)

    def action_enter(self) -> None:
        if self.pane is self.rows:
            self.go(self.diagram)

    def action_close(self) -> None:
        if self.asking:
            self.asked_enough()
        elif self.pane is not self.rows:
            self.go(self.rows)
        elif self.filter_line:
            self.filter("")

    def action_partner(self) -> None:
        """The other message of the exchange."""
        self.side = 1 - self.side
        if not self.sides[self.side]:
            self.say(f"there is no {('request', 'response')[self.side]}", "note")
            self.side = 1 - self.side
        self._ask_frame()

    def action_elements(self) -> None:
        self._elements = 0 if self._elements else ELEMENTS
        self._ask_frame()

    def action_follow(self) -> None:
        self.rows.follows = not self.rows.follows
        self.rows.grown()
        self._title()

    def action_mark(self) -> None:
        row = self.rows.row
        if row is not None:
            self.rows.marked ^= {row}
            self.rows.step(1)
            self._title()

    def action_help(self) -> None:
        self.push_screen(TextPage("keys of kwire browse", TextPane(help_lines(), id="page")))

    def action_leave(self) -> None:
        self.exit()


def _text(line: Line) -> Text:
    text = Text(no_wrap=True)
    for piece, style in line:
        text.append(piece, style_of(style))
    return text
