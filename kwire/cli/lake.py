"""kwire pipeline report, compact, vacuum: what is done with the tables of runs, without Spark."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kwire.counted import counted
from kwire.errors import Exit

if TYPE_CHECKING:
    from kwire.pipeline.report import RollupReport
    from kwire.render.lines import Line, Piece

CELL = 40  # columns of a text in a table


class Local(click.Path):
    """A path, as file: addresses give it too."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from kwire.pipeline.paths import local

        return super().convert(local(value), param, ctx)


class SourceParam(Local):
    """A path, or the address of one in another file system."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from kwire.pipeline.paths import is_elsewhere

        return value if is_elsewhere(value) else super().convert(value, param, ctx)


@click.command(name="report", short_help="What the rollups of a run say.")
@click.argument("folder", metavar="DIR", type=SourceParam(exists=True, file_okay=False))
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Tables to read, or a line of JSON for each row.",
)
@click.option("--rows", type=click.IntRange(1), default=15, show_default=True, metavar="N", help="Of each table.")
def report_command(folder: str, names: tuple[str, ...], form: str, rows: int) -> int:
    """Prints what runs summed up: latency, errors, topics, clients, rebalances, quality, over all days. No Spark."""
    from kwire.cli.arrow import need
    from kwire.cli.output import show, width
    from kwire.pipeline.report import reports

    need("pyarrow", command="kwire pipeline report", extra="spark")
    first = True
    for found in reports(folder, names, rows):
        if form == "json":
            for row in found.rows:
                click.echo(json.dumps({"report": found.name} | dict(zip(found.columns, row, strict=True))))
            continue
        show([*([] if first else [[]]), *_lines(found, width())])
        first = False
    return Exit.OK


@click.command(name="compact", short_help="Merges small Parquet files of a run's tables into few large ones.")
@click.argument("folder", metavar="DIR", type=Local(exists=True, file_okay=False, path_type=Path))
@click.option("--dry-run", is_flag=True, help="Only say what would be merged.")
def compact_command(folder: Path, dry_run: bool) -> int:
    """Merges small files of DIR's tables into files of up to 128 MiB, from Parquet of kwire's own, and prints a line
    for each partition. Without Spark. A partition changes in one step: whoever is killed leaves the old files or the
    new ones. Not while a run or a stream writes to DIR."""
    from kwire.cli.arrow import need

    need("pyarrow", command="kwire pipeline compact", extra="spark")
    from kwire.pipeline.compact import rewrite, rewrites
    from kwire.pipeline.ledger import alone

    before = after = 0
    with nullcontext() if dry_run else alone(str(folder)):
        for found in rewrites(folder):
            where = found.place.relative_to(folder)
            before, after = before + found.files, after + len(found.merges)
            size = found.size if dry_run else rewrite(found, folder)
            click.echo(f"{where}: {found.size:,} bytes in {counted(found.files, 'file')}"
                       f" -> {'' if dry_run else f'{size:,} bytes in '}{len(found.merges):,}")  # fmt: skip
    said = "would become" if dry_run else "became"
    print(f"kwire: {counted(before, 'file')} {said} {after:,} in {folder}", file=sys.stderr)
    return Exit.OK


@click.command(name="vacuum", short_help="Removes what is older than so many days from a run's tables.")
@click.argument("folder", metavar="DIR", type=Local(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--older-than", "days", type=click.IntRange(0, 100_000), required=True, metavar="DAYS", help="Days to keep, in UTC."
)
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
def vacuum_command(folder: Path, days: int, dry_run: bool) -> int:
    """Removes the days of DIR's tables that are older, from Parquet of kwire's own, and prints a line for each. Without
    Spark. Rollups lose the same days; captures stay known to --incremental."""
    from datetime import UTC, datetime

    from kwire.pipeline.vacuum import old_days, remove

    found = list(old_days(folder, days, datetime.now(UTC).date()))
    for old in found:
        if not dry_run:
            remove(old)
        click.echo(f"{old.day} {old.table:<14} {old.size:>14,} bytes in {counted(old.files, 'file')}")
    size = sum(old.size for old in found)
    said = "would be removed" if dry_run else "removed"
    print(f"kwire: {size:,} bytes {said} from {folder}", file=sys.stderr)
    return Exit.OK


def _lines(found: RollupReport, columns: int) -> list[Line]:
    from kwire.render.lines import table

    title: Line = [(found.about, "title")]
    if not found.rows:
        return [title, [("nothing", "dim")]]
    units = [_unit(name) for name in found.columns]
    heads = [name.removesuffix("_ns").replace("_", " ") + (" ms" if unit == "ms" else "")
             for name, unit in zip(found.columns, units, strict=True)]  # fmt: skip
    rows = [[_piece(value, unit) for value, unit in zip(row, units, strict=True)] for row in found.rows]
    right = frozenset(at for at, value in enumerate(found.rows[0]) if isinstance(value, int) and units[at] != "time")
    lines = [title, *table(heads, rows, columns, right)]
    if found.total > len(found.rows):
        lines.append([(f"and {found.total - len(found.rows):,} more", "dim")])
    return lines


def _unit(name: str) -> str:
    if name == "minute" or name.endswith("_time"):
        return "time"
    return "ms" if name.endswith("_ns") else ""


def _piece(value: Any, unit: str) -> Piece:
    from datetime import UTC, datetime

    from kwire.render.lines import clean

    if value is None:
        return "·", "dim"
    if unit == "time":
        return datetime.fromtimestamp(value // 1_000_000_000, UTC).strftime("%m-%d %H:%M:%S"), ""
    if unit == "ms":
        return f"{value / 1e6:,.1f}", ""
    if isinstance(value, list):
        return clean(", ".join(map(str, value))), ""
    if isinstance(value, bool):
        return "yes" if value else "no", ""
    if isinstance(value, int):
        return f"{value:,}", ""
    text = clean(str(value))
    return (text if len(text) <= CELL else text[: CELL - 1] + "…"), "name"
