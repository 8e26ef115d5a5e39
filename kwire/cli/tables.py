"""A table in the form that was asked for: text, json, csv or markdown."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Sequence
from difflib import get_close_matches

from kwire.cli.output import show, width
from kwire.errors import Exit
from kwire.render.lines import table
from kwire.render.results import markdown

FORMATS = ("text", "json", "csv", "markdown")
Row = dict[str, str | int | bool | None]


def chosen(rows: Sequence[Row], words: Sequence[str], columns: Sequence[str]) -> list[Row]:
    """The rows that hold every word in these columns; when none does, in whatever column. A number is the first column
    of a row, or else a whole one in any: 11 is not in 0.11."""
    numbered = [row for row in rows if str(next(iter(row.values()))) in words]
    if numbered and len(words) == len(numbered):
        return numbered
    found = _holding(rows, words, columns) or _holding(rows, words, list(rows[0]))
    if not found:
        complain(rows, words)
    return found


def complain(rows: Sequence[Row], words: Sequence[str]) -> None:
    """Says on stderr that no row holds the words, and which names are like one of them."""
    names = {str(value).lower(): str(value) for row in rows for value in list(row.values())[:2]}
    near = [names[name] for word in words for name in get_close_matches(word.lower(), names, 2, 0.6)]
    hint = f"; did you mean {' or '.join(dict.fromkeys(near))}?" if near else ""
    print(f"kwire: no row holds {' and '.join(words)}{hint}", file=sys.stderr)


def _holding(rows: Sequence[Row], words: Sequence[str], columns: Sequence[str]) -> list[Row]:
    patterns = [
        re.compile(rf"(?<![\w.]){word}(?![\w.])" if word.isdecimal() else re.escape(word), re.IGNORECASE)
        for word in words
    ]
    texts = (" ".join(_text(row[column]) for column in columns) for row in rows)
    return [row for row, text in zip(rows, texts, strict=True) if all(word.search(text) for word in patterns)]


def print_table(
    rows: Sequence[Row], columns: Sequence[str], form: str, styles: dict[str, str], right: Sequence[str]
) -> Exit:
    """Prints rows; text and markdown show only columns, json and csv all that a row has."""
    if form == "json":
        print(json.dumps(rows, indent=2, ensure_ascii=False))
    elif form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(rows[0] if rows else columns)
        writer.writerows([_text(value) for value in row.values()] for row in rows)
    elif form == "markdown":
        for line in markdown(columns, ([_text(row[column]) for column in columns] for row in rows), right):
            print(line)
    elif rows:
        cells = [[(_text(row[column]), styles.get(column, "")) for column in columns] for row in rows]
        aligned = frozenset(columns.index(column) for column in right)
        show(table(columns, cells, width(), aligned))
    return Exit.OK if rows else Exit.MALFORMED


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
