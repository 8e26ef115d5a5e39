"""kwire errors: all error codes in a table."""

from __future__ import annotations

import click

from kwire.cli.options import WithCodes
from kwire.cli.tables import FORMATS, Row, chosen, print_table


@click.command(name="errors", cls=WithCodes)
@click.argument("words", nargs=-1)
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", help="The output format.")
def command(words: tuple[str, ...], form: str) -> int:
    """All error codes: number, name, whether a client may retry, and what to do in a line.

    WORDS keep the rows that hold each of them: kwire errors group epoch. What the table leaves out (meaning, cause,
    cure) is searched when nothing shown fits, and stands in json and csv.
    """
    from kwire.schema.errorcodes import errors

    rows: list[Row] = []
    for error in errors:
        row: Row = {
            "code": error.code,
            "name": error.name,
            "retriable": error.retriable,
            "in short": error.short,
            "means": error.means,
            "cause": error.cause,
            "cure": error.cure,
            "was": " ".join(error.was),
        }
        rows.append(row)
    styles = {"code": "dim", "name": "name", "retriable": "dim"}
    columns = ("code", "name", "retriable", "in short")
    return print_table(chosen(rows, words, (*columns, "was")), columns, form, styles, ("code",))
