"""kwire stats: a capture in numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from kwire.cli.captures import Captures, capture_options
from kwire.errors import Exit

if TYPE_CHECKING:
    from kwire.analyze.failures import Failures
    from kwire.analyze.stats import Stats
    from kwire.session.batch import ExchangeBatch


@click.command()
@click.option("--all", "everything", is_flag=True, help="All rows, not only the busiest of each table.")
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", help="What comes out.")
@capture_options
def command(captures: Captures, everything: bool, output: str) -> Exit:
    """Counts what captures hold: by API and version, client, broker and topic how often, how many bytes, which errors
    and how long the answers took; and the connections that could not be read as they should.

    With --errors also which error met whom on what, when, and what the broker said."""
    from kwire.analyze.failures import Failures
    from kwire.analyze.stats import Stats
    from kwire.cli.groups import clock_of
    from kwire.cli.output import show, width
    from kwire.render.failures import failures_lines
    from kwire.render.jsonform import dumps
    from kwire.render.stats import document, stats_lines

    stats = Stats()
    failures = Failures() if captures.wanted.errors else None
    done = captures.each_batch(adding(stats, failures), stats.close, tracking=True)
    if output == "json":
        print(dumps(document(stats) | ({} if failures is None else {"failures": failures.rows()})))
    else:
        show(stats_lines(stats, width(), everything))
        if failures is not None and failures.kinds:
            show([[], [("which error, for whom, on what", "head")]])
            show(failures_lines(failures, clock_of(done), width(), everything))
    return done.conclude(any(quality == "malformed" for quality, _ in stats.oddities))


def adding(stats: Stats, failures: Failures | None) -> Callable[[ExchangeBatch], None]:
    """What takes the exchanges: the counts alone, or the failures too."""
    if failures is None:
        return stats.add

    def add(batch: ExchangeBatch) -> None:
        stats.add(batch)
        for row in batch.failed:
            failures.add(batch[row])

    return add
