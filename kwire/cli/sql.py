"""kwire sql: captures, asked in SQL."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import IO, TYPE_CHECKING, Any

import click

from kwire.cli import pager
from kwire.cli.arrow import need
from kwire.cli.captures import (
    Bounds,
    Progress,
    conclude,
    connection_options,
    fewer_collections,
    jobs_option,
    open_captures,
    processes,
)
from kwire.cli.outputs import form_of, output_option, raw_option
from kwire.errors import Exit

if TYPE_CHECKING:
    from kwire.outputs import Output
    from kwire.session.reading import Reading
    from kwire.tables.query import QuerySession, Result

FORMATS = ("table", "json", "csv", "markdown", "parquet", "arrow")
BINARY = ("parquet", "arrow")
SUFFIXES = {".json": "json", ".jsonl": "json", ".csv": "csv", ".md": "markdown", ".parquet": "parquet",
            ".arrow": "arrow", ".txt": "table"}  # fmt: skip
SHOWN = 100  # rows of a table on a terminal


@click.command()
@click.argument("words", metavar="CAPTURE... [QUERY]", nargs=-1)
@click.option("--report", metavar="NAME", help="One of the queries that come with kwire.")
@click.option("--reports", "listing", is_flag=True, help="What these are; with --report its SQL.")
@click.option(
    "--format", "form", type=click.Choice(FORMATS), help="What comes out; table unless the output's name tells."
)
@output_option("-o", "--output", name="output", purpose="Where it goes; .json, .csv, .md, … tell the form.")
@click.option(
    "--rows", type=click.IntRange(0), metavar="N", help="At most N rows of a table; 0 all, as a pipe gets them anyway."
)
@click.option("--lake", metavar="DIR", help="Ask the tables that kwire pipeline run wrote there, and no capture.")
@raw_option
@click.option("--show-secrets", is_flag=True, help="In bodies, show what is withheld otherwise.")
@jobs_option
@connection_options
def command(
    words: tuple[str, ...], report: str | None, listing: bool, form: str | None, output: Output | None,
    lake: str | None, raw: bool, rows: int | None, show_secrets: bool, jobs: int | None, bounds: Bounds,
) -> int:  # fmt: skip
    """Queries captures in SQL: messages, exchanges, partitions, batches, group_events, clients, connections, quality,
    bodies, findings and audit are tables, as kwire table --columns describes them. The SQL is DuckDB's.

    With --lake these are the tables of a run of kwire pipeline, with a column date: where date = '2026-11-21' opens
    that day's files only.

    Without QUERY and --report it comes from stdin, or a prompt asks for it; both take \\d, \\x and so on: \\? lists
    them.
    """
    if listing:
        return _list(report)
    paths, query = _split(words, report, lake is not None)
    form = form_of(output.path, SUFFIXES, form, None if output.path.suffix else "table") if output else form or "table"
    if form in BINARY and (output is None or output.is_stdout) and sys.stdout.isatty():
        raise click.UsageError(f"--format {form} needs -o FILE, or a pipe")
    if query is None and sys.stdin.isatty() and (output is not None or not sys.stdout.isatty()):
        raise click.UsageError("needs a QUERY or --report NAME, or a terminal to ask at")
    if "-" in paths and query is None:
        raise click.UsageError("stdin is the capture: needs a QUERY or --report NAME")
    need("pyarrow", "duckdb", command="kwire sql")
    fewer_collections()  # before DuckDB comes, which complains at exit of what was not collected
    from kwire.render.bodies import BESIDE_TABLES, BodyRenderer
    from kwire.tables.query import QuerySession

    if lake is None:
        there = open_captures(paths)
        bodies = BodyRenderer(show_secrets, inflate=BESIDE_TABLES)
        session = QuerySession(there, bounds.settings(), bodies, processes(there, jobs))
    else:
        from kwire.tables.lake import lake_tables

        session = QuerySession((), lake=lake_tables(lake))
    if query is None:
        from kwire.cli.prompt import Prompt, has_commands

        asked = Prompt(session, ask, lambda result, expanded: _table(result, sys.stdout, rows, expanded))
        if sys.stdin.isatty():
            pager.end()
            for path in paths:
                os.stat(path)  # says so now when there is none
            asked.run()
            return Exit.OK
        query = sys.stdin.read()
        if has_commands(query):
            if output is not None or form != "table":
                raise click.UsageError(
                    "\\d, \\x and the prompt's other commands go to the terminal or a pipe, as a table"
                )
            asked.script(query)
            return Exit.OK
    result, reading, exchanges = ask(session, query)
    if result is not None:
        if output is not None and "bodies" in session.loaded:
            output.private = True
        _write(result, form, output, rows, raw)
    return Exit.OK if reading is None else conclude(reading, exchanges > 0, False)


def _split(words: tuple[str, ...], report: str | None, lake: bool) -> tuple[tuple[str, ...], str | None]:
    """The captures and the query: the last word is one when it is no file and more than a word. lake: there are no
    captures."""
    from kwire.tables.sqltext import report as sql_of

    query = sql_of(report) if report is not None else None
    paths = words
    if words and words[-1] != "-" and len(words[-1].split()) > 1 and not _exists(words[-1]):
        if query is not None:
            raise click.UsageError("a QUERY or --report NAME, not both")
        *before, query = words
        paths = tuple(before)
    if lake and paths:
        raise click.UsageError(f"--lake or captures, not both: {paths[0]} is no query")
    if not paths and not lake:
        raise click.UsageError("needs a CAPTURE, or --lake DIR")
    if len(paths) > 1 and query is None and paths[-1] != "-" and not _exists(paths[-1]):
        raise click.UsageError(f"{paths[-1]} is no file, and no query")
    return paths, query


def _exists(path: str) -> bool:
    try:
        return os.path.exists(path)
    except ValueError:  # a zero byte
        return False


def ask(session: QuerySession, query: str) -> tuple[Result | None, Reading | None, int]:
    """The query's result; how the captures were read for it, None when they were not, and how many exchanges they
    hold."""
    reading, exchanges = None, 0
    missing = session.missing(query)
    if missing:
        progress = Progress(True)
        try:
            reading, exchanges = session.load(missing, progress)
        finally:
            progress.stop()
    return session.run(query), reading, exchanges


def _list(report: str | None) -> int:
    from kwire.cli.output import show, width
    from kwire.render.lines import table
    from kwire.tables.sqltext import report as sql_of
    from kwire.tables.sqltext import reports

    if report is not None:
        print(sql_of(report), end="")
    else:
        show(table(["report", "what"], [[(name, "name"), (what, "")] for name, what in reports().items()], width()))
    return Exit.OK


def _write(result: Result, form: str, output: Output | None, rows: int | None, raw: bool) -> None:
    if form in BINARY:
        with output or nullcontext(sys.stdout.buffer) as binary:
            result.write(binary, form, stream=output is None or output.is_stdout)
        return
    with _text(output) as file:
        if form == "table":
            _table(result, file, rows)
        elif form == "json":
            _json(result, file)
        elif form == "csv":
            _csv(result, file, raw)
        else:
            _markdown(result, file)


@contextmanager
def _text(output: Output | None) -> Iterator[IO[str]]:
    """The output for text; else stdout."""
    if output is None or output.is_stdout:
        yield sys.stdout
        return
    with output as file:
        text = io.TextIOWrapper(file, "utf-8", newline="")
        yield text
        text.detach()


def _table(result: Result, file: IO[str], rows: int | None, expanded: bool = False) -> None:
    from kwire.cli.output import show, width
    from kwire.render.lines import plain
    from kwire.render.results import result_lines

    here = file is sys.stdout
    bounded = here and (sys.stdout.isatty() or "COLUMNS" in os.environ)
    most = rows if rows is not None else SHOWN if here and sys.stdout.isatty() else 0
    found = list(result.rows(most or None))
    lines = result_lines(result.columns, result.kinds, found, len(result), width() if bounded else None, expanded)
    if here:
        show(lines)
    else:
        file.writelines(f"{plain(line)}\n" for line in lines)


def _json(result: Result, file: IO[str]) -> None:
    from kwire.render.jsonform import dumps

    columns = result.columns
    for row in _with_instants(result):
        file.write(dumps(dict(zip(columns, map(_finite, row), strict=True)), indent=None) + "\n")


def _with_instants(result: Result) -> Iterator[tuple[Any, ...]]:
    """The rows with times as ISO text."""
    from kwire.wire.times import instant

    times = {at for at, kind in enumerate(result.kinds) if kind == "time"}
    for row in result.rows():
        yield tuple(instant(value) if at in times and isinstance(value, int) else value for at, value in enumerate(row))


def _finite(value: Any) -> Any:
    """JSON has no infinity, and no NaN."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [_finite(inner) for inner in value]
    return {key: _finite(inner) for key, inner in value.items()} if isinstance(value, dict) else value


def _csv(result: Result, file: IO[str], raw: bool) -> None:
    from kwire.render.jsonform import to_jsonable
    from kwire.wire.visible import cell

    def text(value: Any) -> Any:
        value = to_jsonable(value)
        if isinstance(value, list | dict):
            value = json.dumps(value, ensure_ascii=False)
        elif isinstance(value, bool):
            value = str(value).lower()
        return cell(value) if isinstance(value, str) and not raw else value

    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(map(text, result.columns))
    writer.writerows([text(value) for value in row] for row in _with_instants(result))


def _markdown(result: Result, file: IO[str]) -> None:
    from kwire.render.results import markdown, texts

    kinds, columns = result.kinds, result.columns
    numbers = [column for column, kind in zip(columns, kinds, strict=True) if kind == "number"]
    file.writelines(f"{line}\n" for line in markdown(columns, texts(kinds, list(result.rows())), numbers))
