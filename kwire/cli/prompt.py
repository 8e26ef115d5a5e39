"""The prompt of kwire sql: statements that end with ;, history, completion, and \\d to see what there is."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from kwire.cli.output import show, width
from kwire.errors import KwireError
from kwire.render.lines import clean, table

if TYPE_CHECKING:
    from kwire.session.reading import Reading
    from kwire.tables.query import Result, Session

HELP = "\\d tables · \\d NAME its columns · \\r reports · \\r NAME runs one · \\q ends · statements end with ;"
REMEMBERED = 1000  # lines of history
FIRST, NEXT = "kwire> ", "   ... "
Ask = Callable[["Session", str], "tuple[Result | None, Reading | None, int]"]


class Prompt:
    """run() asks until \\q or the end of input. ask runs a statement, print shows its result. Errors are a line, and
    Ctrl-C only ends what is being typed or run."""

    def __init__(self, session: Session, ask: Ask, print: Callable[[Result], None]) -> None:
        self._session, self._ask, self._print = session, ask, print
        self._words: list[str] = []
        self._matches: list[str] = []
        self._notes: set[str] = set()

    def run(self) -> None:
        """Asks and answers."""
        history = self._begin()
        print(HELP)
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

    def _line(self, typed: str, line: str) -> str:
        """Takes a line; what still lacks its ;."""
        from kwire.tables.sqltext import split

        if not typed and line.lstrip().startswith("\\"):
            self._guarded(self._command, line.strip())
            return ""
        statements, rest = split(f"{typed}\n{line}" if typed else line)
        for statement in statements:
            self._guarded(self._statement, statement)
        return rest

    def _guarded(self, action: Callable[[str], None], text: str) -> None:
        try:
            action(text)
        except (KwireError, OSError) as error:
            print(f"kwire: {clean(str(error))}", file=sys.stderr)

    def _statement(self, statement: str) -> None:
        result, reading, _ = self._ask(self._session, statement)
        for note in reading.notes if reading is not None else ():
            if note not in self._notes:
                self._notes.add(note)
                print(f"kwire: {clean(note)}", file=sys.stderr)
        if result is not None:
            self._print(result)

    def _command(self, line: str) -> None:
        from kwire.tables.sqltext import report, reports

        word, _, name = line.rstrip(";").partition(" ")
        name = name.strip()
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
        else:
            print(HELP)

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
