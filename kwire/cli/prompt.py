"""The prompt of kwire sql: statements that end with ;, history, completion, and commands as psql has them: \\d, \\x."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from kwire.cli.output import show, width
from kwire.errors import KwireError
from kwire.render.lines import clean, joined, table

if TYPE_CHECKING:
    from kwire.session.reading import Reading
    from kwire.tables.query import QuerySession, Result

COMMANDS = [
    ("SQL;", "a statement, over as many lines as it takes; Ctrl-C gives up what is typed or run"),
    (r"\d  \dt", "the tables"),
    (r"\d NAME", "a table's columns and what they are"),
    (r"\r", "the reports that come with kwire"),
    (r"\r NAME", "runs one of them"),
    (r"\x", "rows as blocks, a line a column, or as a table again"),
    (r"\timing", "how long each statement takes, or no more"),
    (r"\?  help", "this"),
    (r"\q  quit  exit", "the end; Ctrl-D too"),
]
BANNER = ["statements end with ;", r"\d tables", r"\d NAME its columns", r"\r reports", r"\? help", r"\q ends"]
# as psql, duckdb and sqlite3 call them
ALIASES = {
    "help": "\\?", "\\h": "\\?", "\\help": "\\?", ".help": "\\?", "?": "\\?",
    "quit": "\\q", "exit": "\\q", "\\quit": "\\q", "\\exit": "\\q", ".quit": "\\q", ".exit": "\\q", ".q": "\\q",
    "\\dt": "\\d", "\\d+": "\\d", "\\dt+": "\\d", "\\dv": "\\d", ".tables": "\\d", ".schema": "\\d",
    ".timer": "\\timing",
}  # fmt: skip
REMEMBERED = 1000  # lines of history
FIRST, NEXT = "kwire> ", "   ... "
Ask = Callable[["QuerySession", str], "tuple[Result | None, Reading | None, int]"]


class Prompt:
    """run() asks until \\q or the end of input. ask runs a statement, print shows its result, as blocks
    when it is told so. Errors are a line, and
    Ctrl-C only ends what is being typed or run."""

    def __init__(self, session: QuerySession, ask: Ask, print: Callable[[Result, bool], None]) -> None:
        self._session, self._ask, self._print = session, ask, print
        self._expanded = self._timing = self._strict = False
        self._words: list[str] = []
        self._matches: list[str] = []
        self._notes: set[str] = set()

    def run(self) -> None:
        """Asks and answers."""
        history = self._begin()
        show(joined([(part, "dim") for part in BANNER], width()))
        typed = ""
        try:
            while True:
                try:
                    typed = self._line(typed, input(NEXT if typed else FIRST))
                except KeyboardInterrupt:
                    print("^C" if typed else "^C (\\q ends)")
                    typed = ""
                except EOFError:
                    print()
                    return
                except _Ended:
                    return
        finally:
            if history is not None:
                _remember(history)

    def script(self, text: str) -> None:
        """Answers lines that come from a pipe. Raises what the first of them raises that fails."""
        self._strict = True
        typed = ""
        with contextlib.suppress(_Ended):
            for line in text.splitlines():
                typed = self._line(typed, line)
            if typed.strip():
                self._statement(typed)

    def _line(self, typed: str, line: str) -> str:
        """Takes a line; what still lacks its ;."""
        from kwire.tables.sqltext import split

        if _is_command(line, typed):
            self._guarded(self._command, line.strip())
            return typed
        statements, rest = split(f"{typed}\n{line}" if typed else line)
        for statement in statements:
            self._guarded(self._statement, statement)
        return rest

    def _guarded(self, action: Callable[[str], None], text: str) -> None:
        try:
            action(text)
        except (KwireError, OSError) as error:
            if self._strict:
                raise
            print(f"kwire: {clean(str(error))}", file=sys.stderr)

    def _statement(self, statement: str) -> None:
        begun = time.monotonic()
        result, reading, _ = self._ask(self._session, statement)
        took = time.monotonic() - begun
        for note in reading.notes if reading is not None else ():
            if note not in self._notes:
                self._notes.add(note)
                print(f"kwire: {clean(note)}", file=sys.stderr)
        if result is not None:
            self._print(result, self._expanded)
        if self._timing:
            print(f"{took * 1000:,.1f} ms")

    def _command(self, line: str) -> None:
        from kwire.tables.sqltext import report, reports

        word, _, name = line.rstrip("; ").partition(" ")
        word, name = ALIASES.get(word.lower(), word), name.strip()
        if word == "\\q":
            raise _Ended
        if word == "\\d" and name:
            rows = [[(clean(column), "name"), (kind, "type"), (what, "")]
                    for column, kind, what in self._session.describe(name)]  # fmt: skip
            show(table(["column", "type", "what"], rows, width()))
        elif word == "\\d":
            named = [[(clean(known), "name"), (", ".join(column for column, _, _ in self._session.describe(known)), "")]
                     for known in self._session.tables()]  # fmt: skip
            show(table(["table", "columns"], named, width()))
        elif word == "\\r" and name:
            self._statement(report(name))
        elif word == "\\r":
            show(
                table(["report", "what"], [[(known, "name"), (what, "")] for known, what in reports().items()], width())
            )
        elif word == "\\x":
            self._expanded = _switched(self._expanded, name)
            print(f"rows as {'blocks' if self._expanded else 'a table'}")
        elif word == "\\timing":
            self._timing = _switched(self._timing, name)
            print(f"timing {'on' if self._timing else 'off'}")
        elif word == "\\?":
            show(table(["command", "what"], [[(known, "name"), (what, "")] for known, what in COMMANDS], width()))
        else:
            raise KwireError(f"no command {word}; \\? lists them")

    def _begin(self) -> Path | None:
        """Completion and history, where Python has readline."""
        try:
            import readline
        except ImportError:
            return None
        from kwire.tables.columns import COLUMNS

        columns = {column for found in COLUMNS.values() for column, _, _ in found}
        self._words = sorted({*columns, *self._session.keywords()} - COLUMNS.keys())
        readline.set_completer(self._complete)
        readline.set_completer_delims(" \t\n,;()=<>+-*/'\".")
        libedit = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if libedit else "tab: complete")
        history = history_file()
        with contextlib.suppress(OSError):
            readline.read_history_file(history)
        return history

    def _complete(self, text: str, state: int) -> str | None:
        if state == 0:
            import readline

            before = readline.get_line_buffer()[: readline.get_begidx()]
            self._matches = self.completions(before, text)
        return self._matches[state] if state < len(self._matches) else None

    def completions(self, before: str, text: str) -> list[str]:
        """What text could become behind before: tables behind FROM, JOIN and \\d, else columns and keywords too."""
        tables = self._session.tables()
        if re.search(r"(\b(from|join|describe|summarize|table)|\\d)\s+$", before, re.IGNORECASE):
            known = tables
        elif re.search(r"\\r\s+$", before):
            from kwire.tables.sqltext import reports

            known = list(reports())
        else:
            known = [*tables, *self._words]
        found = [word for word in known if word.startswith(text.lower())]
        return [word.upper() for word in found] if text.isupper() and known is not tables else found


def _is_command(line: str, typed: str) -> bool:
    """Whether the line is a command and no SQL: in a statement that is begun only one with a backslash, and no line of
    a text in quotes."""
    words = line.rstrip("; ").split()
    if not words:
        return False
    if words[0].startswith("\\"):
        return typed.count("'") % 2 == 0
    return not typed and (words[0].startswith(".") or (len(words) == 1 and words[0].lower() in ALIASES))


def has_commands(text: str) -> bool:
    """Whether some of its lines are the prompt's commands."""
    from kwire.tables.sqltext import split

    lines, typed = text.splitlines(), ""
    if not any(_is_command(line, "") for line in lines):
        return False
    for line in lines:
        if _is_command(line, typed):
            return True
        _, typed = split(f"{typed}\n{line}" if typed else line)
    return False


def _switched(now: bool, word: str) -> bool:
    """On, off, or the other one."""
    return {"on": True, "off": False}.get(word.lower(), not now)


class _Ended(Exception):
    """The user is done."""


def history_file() -> Path:
    """Where history is kept: in the XDG state folder."""
    state = os.environ.get("XDG_STATE_HOME", "")
    return (Path(state) if os.path.isabs(state) else Path.home() / ".local/state") / "kwire" / "sql_history"


def _remember(history: Path) -> None:
    """Writes history; a folder that cannot be written is no reason to fail."""
    import readline

    with contextlib.suppress(OSError):
        history.parent.mkdir(parents=True, exist_ok=True)
        readline.set_history_length(REMEMBERED)
        readline.write_history_file(history)
