"""kwire schema: the protocol definitions themselves."""

from __future__ import annotations

from pathlib import Path

import click


@click.group(name="schema")
def command() -> None:
    """The protocol definitions: text files, a page for each API."""


@command.command(name="import", short_help="Brings a Kafka release's facts into the definitions.")
@click.argument("source", type=click.Path(exists=True, path_type=Path), metavar="JAR|DIR")
@click.option("--release", metavar="X.Y", help="The Kafka release; a jar's name tells it.")
@click.option(
    "--into",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where apis/ and data/ are; kwire's own otherwise.",
)
def import_(source: Path, release: str | None, into: Path | None) -> None:
    """Merges the fields and versions of a Kafka release into the definitions, and keeps their explanations.

    They come from the .json files inside an official jar (kafka-clients, kafka-metadata, …) or in a folder.
    """
    from kwire.schema.importer import import_source
    from kwire.schema.official import read
    from kwire.schema.registry import HERE

    read_source = read(source, release)
    done = import_source(read_source, into or HERE)
    for word, paths in (("new", done.made), ("changed", done.changed)):
        for path in paths:
            click.echo(f"{word:<8} {path.parent.name}/{path.name}")
    count, new, changed = len(read_source.found), len(done.made), len(done.changed)
    click.echo(f"Kafka {read_source.release}: {count} definitions read, {new} new, {changed} changed")
