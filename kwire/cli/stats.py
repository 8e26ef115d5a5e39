"""kwire stats: a capture in numbers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from kwire.cli.captures import Captures, capture_options
from kwire.codec.quality import Quality
from kwire.errors import Exit

if TYPE_CHECKING:
    from kwire.render.lines import Line


@click.command()
@click.option("--all", "everything", is_flag=True, help="All rows, not only the busiest of each table.")
@click.option("--quorum", is_flag=True, help="Instead, KRaft's quorum over time: leaders, epochs, votes.")
@click.option(
    "--format", "output", type=click.Choice(["text", "json", "html"]), default="text", help="The output format."
)
@capture_options
def command(captures: Captures, everything: bool, quorum: bool, output: str) -> Exit:
    """Counts what captures hold: by API and version, client, broker and topic how often, how many bytes, which errors
    and how long the answers took; who was throttled, which clients got which errors for what, and the
    connections that were refused or could not be read completely.

    With --errors only errors, each with its times and the broker's message."""
    from kwire.analyze.stats import MOST_FAILED, Stats
    from kwire.cli.groups import clock_of
    from kwire.cli.output import DOCUMENT_WIDTH, export, show, width
    from kwire.cli.page_facts import of_pass
    from kwire.render.failures import failures_lines
    from kwire.render.jsonform import dumps
    from kwire.render.stats import document, stats_lines

    if quorum:
        return _quorum(captures, everything, output)
    detailed = captures.wanted.errors
    stats = Stats(sys.maxsize if detailed else MOST_FAILED)
    done = captures.each_batch(stats.add, stats.close, tracking=True)
    if output == "json":
        print(dumps(document(stats)))
    else:
        fits = "nothing went wrong" if detailed else "no exchanges that fit"
        nothing = fits if done.kafka else "no exchanges"
        wide = width() if output == "text" else DOCUMENT_WIDTH
        lines = stats_lines(stats, wide, everything, nothing=nothing, failures=not detailed)
        if detailed and stats.failures.kinds:
            lines += [[], [("which error, for whom, on what", "head")]]
            lines += failures_lines(stats.failures, clock_of(done), wide, everything)
        if output == "text":
            show(lines)
        else:
            print(export(lines, output, "kwire stats", of_pass(done)))
    return done.conclude(any(quality == Quality.MALFORMED for quality, _ in stats.oddities))


def _quorum(captures: Captures, everything: bool, output: str) -> Exit:
    from kwire.analyze.quorum import Quorums, quorums_of
    from kwire.cli.groups import clock_of
    from kwire.cli.output import DOCUMENT_WIDTH, export, show, width
    from kwire.cli.page_facts import of_pass
    from kwire.render.jsonform import dumps
    from kwire.render.quorum import quorum_lines

    quorums = Quorums()
    done = captures.each_batch(quorums.add, lambda _: None, tracking=True)
    found = quorums_of(quorums.known.values())
    wide = width() if output == "text" else DOCUMENT_WIDTH
    lines: list[Line] = []
    for at, one in enumerate(found):
        if output == "json":
            print(dumps(one.row(), indent=None))
        else:
            lines += [*([[]] if at else []), *quorum_lines(one, clock_of(done), wide, everything)]
    lines = lines or [[("no messages of a KRaft quorum", "dim")]]
    if output == "html":
        print(export(lines, output, "kwire stats --quorum", of_pass(done)))
    elif output == "text":
        show(lines)
    return done.conclude()
