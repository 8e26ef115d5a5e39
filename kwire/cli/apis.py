"""kwire apis: all APIs in a table."""

from __future__ import annotations

import click

from kwire.cli.tables import FORMATS, Row, chosen, print_table


@click.command()
@click.argument("words", nargs=-1)
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", help="The output format.")
def command(words: tuple[str, ...], form: str) -> int:
    """All APIs: key, name, versions, since when, and what they belong to.

    WORDS keep the rows that hold each of them: kwire apis share group. What the table leaves out (KIPs, sender, which
    versions brokers take) is searched when nothing shown fits, and stands in json and csv.
    """
    from kwire.render.versions import accepted
    from kwire.schema.registry import builtin

    rows: list[Row] = []
    for definition in builtin().apis():
        request = definition.messages[0]
        about = definition.about.split("\n\n")[0].split(". ")[0].rstrip(".") + "."
        row: Row = {
            "key": definition.key,
            "api": definition.name,
            "versions": str(request.versions),
            "flexible": str(request.flexible),
            "since": definition.since,
            "area": definition.area,
            "what it does": about,
            "brokers": accepted(definition),
            "kips": definition.kips,
            "sender": definition.sender,
            "listeners": definition.listeners,
            "was": " ".join([*(old.name for old in definition.was), *definition.aka]),
        }
        rows.append(row)
    columns = ("key", "api", "versions", "flexible", "since", "area", "what it does")
    styles = {"key": "dim", "api": "name", "versions": "value", "area": "type"}
    rows = chosen(rows, words, (*columns, "was"))
    return print_table(rows, columns if form != "text" else _fitting(columns), form, styles, ("key",))


def _fitting(columns: tuple[str, ...]) -> tuple[str, ...]:
    """On a narrow terminal, the area alone says what an API is."""
    from kwire.cli.output import width

    return columns if width() >= 130 else tuple(c for c in columns if c not in ("what it does", "flexible"))
