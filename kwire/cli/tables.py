"""A table in the form that was asked for: text, json, csv or markdown."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Sequence

from kwire.cli.output import show, width
from kwire.render.lines import Line, table

FORMATS = ("text", "json", "csv", "markdown")
Row = dict[str, str | int | bool | None]


def print_table(rows: Sequence[Row], columns: Sequence[str], form: str, styles: dict[str, str], right: Sequence[str]) -> None:
    """Prints rows; text and markdown show only columns, json and csv all that a row has."""
    if form == "json":
        print(json.dumps(rows, indent=2, ensure_ascii=False))
    elif form == "csv":
        writer = csv.DictWriter(sys.stdout, list(rows[0]) if rows else list(columns))
        writer.writeheader()
        writer.writerows(rows)
    elif form == "markdown":
        print("| " + " | ".join(columns) + " |")
        print("|" + "|".join(" ---: " if column in right else " --- " for column in columns) + "|")
        for row in rows:
            print("| " + " | ".join(_text(row[column]).replace("|", "\\|") for column in columns) + " |")
    else:
        cells = [[(_text(row[column]), styles.get(column, "")) for column in columns] for row in rows]
        aligned = frozenset(columns.index(column) for column in right)
        lines: list[Line] = table(columns, cells, width(), aligned)
        show(lines)


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
