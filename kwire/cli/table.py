"""kwire table: captures to Parquet, Arrow or CSV files, or one table as a stream of Arrow."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

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
from kwire.cli.outputs import ELSEWHERE, inputs, raw_option
from kwire.errors import Exit, OutputError

if TYPE_CHECKING:
    from kwire.session.reader import Settings
    from kwire.tables.build import BodyTexts


@click.command()
@click.argument("paths", metavar="CAPTURE...", nargs=-1)
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where the files go: DIR/messages.parquet and so on.",
)
@click.option("--table", "streamed", metavar="NAME", help="This table alone, as a stream of Arrow, to stdout.")
@click.option("--tables", "chosen", metavar="NAMES", help="Only these, with commas between them.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["parquet", "arrow", "csv"]),
    default="parquet",
    show_default=True,
    help="The form of the files.",
)
@click.option("--bodies", is_flag=True, help="The table bodies too: every body as JSON.")
@click.option("--findings", is_flag=True, help="The tables findings and audit too: what kwire doctor and audit say.")
@jobs_option
@click.option("--columns", "listing", is_flag=True, help="The tables and their columns, and no files.")
@raw_option
@click.option("--show-secrets", is_flag=True, help="In bodies, show what is withheld otherwise.")
@connection_options
def command(
    paths: tuple[str, ...], folder: Path | None, streamed: str | None, chosen: str | None, form: str, bodies: bool,
    findings: bool, jobs: int | None, listing: bool, raw: bool, show_secrets: bool, bounds: Bounds,
) -> int:  # fmt: skip
    """Writes what captures hold as tables: messages, exchanges, partitions, batches, group_events, clients,
    connections, quality; on request bodies, findings, audit. A file gets its name only when it is complete."""
    if listing:
        return _list()
    if not paths or (folder is None) == (streamed is None):
        raise click.UsageError("needs captures, and -o DIR or --table NAME")
    if folder == Path("-"):
        raise click.UsageError("-o is a folder; --table NAME writes one table to stdout, as Arrow")
    if streamed is not None and (chosen or bodies or findings or raw or form != "parquet"):
        raise click.UsageError("--table writes one table, as Arrow")
    if streamed is not None and sys.stdout.isatty():
        raise click.UsageError("--table writes Arrow to stdout: it needs a pipe, or > FILE")
    if folder is not None and folder.suffix.lower() in ELSEWHERE and not folder.is_dir():
        raise OutputError(str(folder), "becomes a folder, with a file for each table; kwire sql -o writes one file")
    names = names_of(streamed or chosen, bodies, findings)
    limits, texts = bounds.settings(), None
    if "bodies" in names:
        from kwire.render.bodies import BESIDE_TABLES, BodyRenderer

        texts = BodyRenderer(show_secrets, inflate=BESIDE_TABLES)
    need("pyarrow", command="kwire table")
    fewer_collections()
    there = open_captures(paths)
    if folder is None:
        return _stream(there, names[0], limits, processes(there, jobs), texts)
    form = "raw csv" if raw and form == "csv" else form
    return _write(there, folder, names, form, limits, processes(there, jobs), texts)


def _write(
    paths: list[str | Path], folder: Path, names: list[str], form: str, bounds: Settings, jobs: int,
    texts: BodyTexts | None,
) -> int:  # fmt: skip
    from kwire.tables.jobs import build_with_jobs
    from kwire.tables.writer import Files

    read = inputs(click.get_current_context())
    files, progress = Files(folder, names, form, read), Progress(True)
    try:
        reading, exchanges = build_with_jobs(paths, names, files.write, bounds, jobs, texts, progress, coded=True)
        files.close()
    except BaseException:
        files.abandon()
        raise
    finally:
        progress.stop()
    status = conclude(reading, exchanges > 0, False)
    said = ", ".join(f"{count:,} {name}" for name, count in files.rows.items())
    print(f"kwire: {said} to {folder}", file=sys.stderr)
    return status


def _stream(
    paths: list[str | Path], name: str, bounds: Settings, jobs: int, texts: BodyTexts | None
) -> int:  # fmt: skip
    """Writes a table to stdout as its rows come."""
    from kwire.tables.jobs import build_with_jobs
    from kwire.tables.writer import ArrowStream

    stream, progress = ArrowStream(name, sys.stdout.buffer), Progress(True)
    try:
        reading, exchanges = build_with_jobs(paths, [name], stream.write, bounds, jobs, texts, progress, coded=True)
        stream.close()
    finally:
        progress.stop()
    return conclude(reading, exchanges > 0, False)


def names_of(chosen: str | None, bodies: bool, findings: bool) -> list[str]:
    """The tables that are wanted. Raises UnknownName."""
    from kwire.errors import UnknownName
    from kwire.tables.columns import COLUMNS, DEFAULT, JUDGEMENTS

    names = [name.strip() for name in chosen.split(",")] if chosen else list(DEFAULT)
    for name in names:
        if name not in COLUMNS:
            import difflib

            raise UnknownName("table", name, tuple(difflib.get_close_matches(name, COLUMNS, 2)))
    asked = [*(["bodies"] if bodies else []), *(JUDGEMENTS if findings else [])]
    return names + [name for name in asked if name not in names]


def _list() -> int:
    from kwire.cli.output import show, width
    from kwire.render.lines import table
    from kwire.tables.columns import COLUMNS

    for number, (name, columns) in enumerate(COLUMNS.items()):
        rows = [[(column, "name"), (kind, "type"), (what, "")] for column, kind, what in columns]
        show([*([[]] if number else []), [(name, "title")]])
        show(table(["column", "type", "what"], rows, width()))
    return Exit.OK
