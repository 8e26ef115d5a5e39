"""What is typed at the bottom line: filters, searches, names of files, commands; and what comes of it.

Other kwire commands run as processes of their own on the same captures: what is shown and written is theirs.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text
from textual.app import App
from textual.widgets import Input, Static

from kwire.browse.pages import FindingsPane, TextPage, TextPane
from kwire.browse.reader import AllRead, AskText, FrameText
from kwire.browse.view import RowsView, Search
from kwire.capture.packet_numbers import reference
from kwire.counted import counted
from kwire.errors import KwireError
from kwire.render.lines import clean

if TYPE_CHECKING:
    from kwire.browse.exchanges import ExchangeList
    from kwire.browse.index import Index
    from kwire.browse.link import ReaderLink
    from kwire.browse.panes import Lines
    from kwire.browse.setting import BrowseSetting

PROMPTS = {
    "filter": "filter: ", "search": "/", "command": ":kwire ", "save": "save packets to: ",
    "export": "export to (x.json, x.html; - for a kwire call): ",
}  # fmt: skip
FORMS = {".json": "json", ".html": "html", ".svg": "svg", ".txt": "text"}
READING = ("stats", "groups", "audit", "doctor", "trace", "clients", "read", "decode", "sql")  # commands on captures
TELLING = ("explain", "apis", "errors", "help")  # and those that need none
MOST_OUTPUT = 8 << 20  # bytes of another command that are shown
MOST_SAVED = 2000  # exchanges that are written at once
SLICE = 0.02  # seconds that a filter may keep the keys waiting


class Prompted(App[None]):
    """What asks: mixed into the application."""

    setting: BrowseSetting
    link: ReaderLink
    index: Index
    rows: ExchangeList
    side: int

    ended: AllRead | None
    asking = ""
    filter_line = ""
    search: Search | None = None
    _before: str = ""  # the filter before one key narrowed it
    _export: str = ""
    _busy = False
    running = 0  # other commands

    def say(self, text: str, style: str = "") -> None:
        raise NotImplementedError

    def go(self, pane: Lines) -> None:
        """Gives a pane the keys."""
        raise NotImplementedError

    def _title(self) -> None:
        raise NotImplementedError

    # ---------------------------------------------------------------- the line

    def action_ask(self, what: str) -> None:
        prompt = self.query_one("#prompt", Input)
        self.asking = what
        prompt.value = self.filter_line if what == "filter" else ""
        if what == "save" and self.rows.row is None:
            self.asking = ""
            return
        self.query_one("#question", Static).update(PROMPTS[what])
        self.query_one("#asking").add_class("asked")
        self.query_one("#status").display = False
        prompt.focus()

    def asked_enough(self) -> None:
        """Nothing is asked any longer."""
        self.asking = ""
        self.query_one("#asking").remove_class("asked")
        self.query_one("#status").display = True
        self.rows.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        what, text = self.asking, event.value.strip()
        self.asked_enough()
        if what == "filter":
            self.filter(text)
        elif what == "search":
            self.search = Search(self.index, text) if text else self.search
            self.action_again(True)
        elif what == "command" and text:
            self._command(text)
        elif what == "save" and text:
            self._save(text)
        elif what == "export" and text:
            self._ask_export(text)

    # ---------------------------------------------------------------- what is listed

    def filter(self, line: str) -> None:
        """Lists what fits a line of filters; nothing on it: all."""
        try:
            selection = self.setting.choose(line) if line else None
        except KwireError as error:
            self.say(str(error), "error")
            return
        self.filter_line = line
        self.rows.show(RowsView(self.index, selection))
        self._title()
        self.look_on()

    def look_on(self) -> None:
        """Goes on looking for what fits, without keeping keys waiting."""
        if not self._busy:
            self._busy = True
            self.run_worker(self._look_on())

    async def _look_on(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self.rows.view.behind:
                until, before = loop.time() + SLICE, len(self.rows.view)
                while self.rows.view.behind and loop.time() < until:
                    self.rows.view.advance()
                if len(self.rows.view) != before:
                    self.rows.grown()
                    self.rows.post_message(self.rows.Moved(self.rows))
                await asyncio.sleep(0)
        finally:
            self._busy = False
        if self.filter_line and self.ended and not len(self.rows.view):
            self.say(self.setting.absent(self.index.names) or "no exchange fits all of it at once", "error")

    def action_only(self, what: str) -> None:
        """Narrows the filter to the connection, or to the correlation id; a second time widens it again."""
        row = self.rows.row
        if row is None:
            return
        words = [word for word in self.filter_line.split() if not word.startswith(f"{what}=")]
        if len(words) == len(self.filter_line.split()):
            found = self.index.row(row)
            name = self.index.names.connections[found["connection"]].name
            words.append(f"{what}={name if what == 'connection' else int(found['correlation'])}")
        self.filter(" ".join(words))

    def action_again(self, forward: bool) -> None:
        """The next place of what was searched."""
        if self.search is None:
            self.say("/ searches", "note")
            return
        found = self.search.found(self.rows.view, self.rows.cursor, forward)
        if found is None:
            self.say(f"not found: {self.search.words}", "note")
        else:
            self.rows.put(found)

    # ---------------------------------------------------------------- other commands

    def action_findings(self) -> None:
        self.run_worker(self._findings(), exclusive=True, group="command")

    async def _findings(self) -> None:
        self.say("kwire doctor is reading…", "note")
        status, out, err = await self._run(
            "doctor", "--format", "json", *self.setting.options, *self.setting.paths, color=False
        )
        findings = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        if not findings:
            said = err.strip().splitlines() if status > 1 else []
            self.say(said[-1] if said else "kwire doctor finds nothing", "note" if said else "good")
            return
        self.say("")
        title = f"{counted(len(findings), 'finding')} · Enter goes to the packet"
        pane = FindingsPane(findings, self.size.width, id="page")
        self.push_screen(TextPage(title, pane), self._go_to)

    def _go_to(self, packet: Any) -> None:
        """Goes to the exchange of a packet, which a page named."""
        if packet is None:
            return
        file, _, number = str(packet).rpartition(":")
        counted_number = self.index.counted(file, int(number))
        row = None if counted_number is None else self.index.holding(counted_number)
        if row is None:
            self.say(f"no exchange begins or is answered in packet {packet}", "note")
            return
        if not self.rows.view.has(row):
            self.filter("")
        self.side = int(int(self.index.row(row)["answered"]) == counted_number)
        self.go(self.rows)
        self.rows.put(self.rows.view.place(row))

    def action_timeline(self) -> None:
        row = self.rows.row
        if row is None:
            return
        groups = self.index.names.abouts[self.index.row(row)["about"]].groups
        chosen = [word for name in groups[:1] for word in ("--group", name)]
        if not groups:
            self.say("no group in this exchange: all groups", "note")
        self._command(shlex.join(["groups", "--timeline", *chosen]))

    def _command(self, text: str) -> None:
        try:
            words = shlex.split(text)
        except ValueError as error:
            self.say(str(error), "error")
            return
        if words and words[0] in ("q", "quit"):
            self.exit()
        elif words and words[0] not in READING + TELLING:
            self.say(f"no command {words[0]} here; there are {', '.join(READING + TELLING)}", "error")
        elif words:
            self.run_worker(self._show(words), exclusive=True, group="command")

    async def _show(self, words: list[str]) -> None:
        """Runs a kwire command, on the captures if it reads some, and shows what it says."""
        self.say(f"kwire {shlex.join(words)} …", "note")
        where = [*self.setting.options, *self.setting.paths] if words[0] in READING else []
        if words[0] == "sql":  # the captures stand before the question
            words, where = [words[0], *self.setting.paths, *words[1:]], []
        status, out, err = await self._run(*words, *where)
        lines = [Text.from_ansi(line) for line in (out + err).splitlines()]
        self.say("" if status in (0, 1) else f"kwire {words[0]} ended with {status}")
        self.push_screen(TextPage(f"kwire {shlex.join(words)}", TextPane(lines, id="page")))

    async def _run(self, *words: str, color: bool = True) -> tuple[int, str, str]:
        """A kwire command's exit status, and what it says. color: for eyes, where there is color at all."""
        when = "always" if color and self.setting.color else "never"
        environ = {**os.environ, "COLUMNS": str(self.size.width - 1)}
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "kwire", *words, "--color", when, stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env=environ,
            )  # fmt: skip
        except OSError as error:  # who gave up rights may not start what it was started from
            return 126, "", f"kwire cannot be started: {error.strerror}"
        self.running += 1
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            out, err = await asyncio.gather(_bounded(process.stdout), _bounded(process.stderr))
            return await process.wait(), out, err
        finally:
            self.running -= 1
            if process.returncode is None:
                process.kill()
                await process.wait()

    # ---------------------------------------------------------------- files

    def _packets(self, rows: Iterable[int]) -> list[str]:
        """References to packets that hold these exchanges, as kwire read --frame takes them."""
        found = []
        places = self.index.names.places
        for row in rows:
            record = self.index.row(row)
            packet = int(record["asked"]) or int(record["answered"])
            name, before = max((one for one in places if one[1] < packet), key=lambda one: one[1])
            found.append(reference(name, packet - before, len(self.setting.paths) > 1))
        return found

    def _save(self, path: str) -> None:
        rows = sorted(self.rows.marked) or [row for row in (self.rows.row,) if row is not None]
        if len(rows) > MOST_SAVED:
            self.say(f"{len(rows):,} exchanges are too many for this; kwire read -w takes filters", "error")
            return
        self.run_worker(self._saved(rows, path), exclusive=True, group="command")

    async def _saved(self, rows: list[int], path: str) -> None:
        self.say(f"writing {path}…", "note")
        frames = [word for packet in self._packets(rows) for word in ("--frame", packet)]
        status, _, err = await self._run("read", *frames, *self.setting.options, *self.setting.paths, "-w", path)
        said = err.strip().splitlines() or [f"kwire read ended with {status}"]
        self.say("; ".join(line.removeprefix("kwire: ") for line in said), "good" if status in (0, 1) else "error")

    def _ask_export(self, path: str) -> None:
        form = "call" if path == "-" else FORMS.get(Path(path).suffix.lower(), "call")
        row = self.rows.row
        if row is not None:
            self._export = path
            kind = "request" if form == "call" else ("request", "response")[self.side]
            self.link.ask(AskText(self.index.row(row).copy(), kind, form, self.setting.secrets))

    def exported(self, found: FrameText) -> None:
        """The text of a frame came."""
        if found.problem:
            self.say(found.problem, "error")
        elif self._export == "-":
            self.push_screen(TextPage("kwire call", TextPane(clean(found.text.rstrip("\n")), id="page")))
        else:
            try:
                with open(self._export, "x", encoding="utf-8") as file:
                    file.write(found.text)
            except OSError as error:
                self.say(f"{self._export}: {error.strerror}", "error")
            else:
                self.say(f"{self._export}: {counted(len(found.text), 'character')}", "good")


async def _bounded(stream: asyncio.StreamReader) -> str:
    """What comes of it, as far as it is shown."""
    parts: list[bytes] = []
    size = 0
    while piece := await stream.read(1 << 16):
        if size < MOST_OUTPUT:
            parts.append(piece)
        size += len(piece)
    more = f"\n… and {size - MOST_OUTPUT:,} more bytes" if size > MOST_OUTPUT + (1 << 16) else ""
    return b"".join(parts).decode(errors="replace") + more
