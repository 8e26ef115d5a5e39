"""kwire trace: how far a consumer came, and what it waits for."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from fnmatch import fnmatchcase

import click

from kwire.cli.captures import Captures, capture_options
from kwire.errors import Exit


@click.command()
@capture_options
@click.option("--all", "everything", is_flag=True, help="All consumers that match, not only the first ten.")
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", help="What comes out.")
def command(captures: Captures, everything: bool, output: str) -> Exit:
    """Follows consumers through their seven steps: metadata, coordinator, join, assignment, heartbeat, offsets, fetch.
    Says which each one reached and when, which it repeats, and what it waits for at the end.

    --client-id X or --group NAME says whose; all without it. Exit status 1 when one of them is stuck with errors.
    """
    from kwire.analyze.findings import SEVERITIES
    from kwire.analyze.trace import Trace, verdict
    from kwire.analyze.verdicts import some
    from kwire.cli.groups import Sealed, clock_of
    from kwire.cli.output import show, width
    from kwire.render.jsonform import dumps
    from kwire.render.lines import clean
    from kwire.render.trace import document, trace_lines

    trace = Trace()
    groups, ids = captures.wanted.groups, captures.wanted.client_ids
    chosen = captures._replace(wanted=captures.wanted._replace(groups=(), client_ids=()))  # all say how late it is
    sealed = Sealed()
    done = chosen.each(trace.add, sealed.add, tracking=True)
    clock = clock_of(done)
    consumers = trace.consumers()
    found = [
        (consumer, verdict(consumer, trace.end, clock)) for consumer in consumers
        if _any(groups, consumer.groups) and _any(ids, [consumer.client_id])
    ]  # fmt: skip
    found.sort(key=lambda item: SEVERITIES.index(item[1].severity))
    if output == "json":
        print(dumps(document(found, clock)))
    else:
        show(trace_lines(found, clock, width(), everything))
    if not consumers:
        sealed.tell()
    if consumers and not found:
        said = some([f"{one.client_id} of {some(list(one.groups)) or 'no group'}" for one in consumers], 6)
        print(f"kwire: none matches; there is {clean(said)}", file=sys.stderr)
    if trace.unkept:
        print(f"kwire: {trace.unkept:,} requests of more clients than can be kept are left out", file=sys.stderr)
    return done.conclude(any(one.severity == SEVERITIES[0] for _, one in found))


def _any(patterns: tuple[str, ...], names: Iterable[str]) -> bool:
    """Whether a name is wanted; without patterns all are."""
    return not patterns or any(fnmatchcase(name, pattern) for name in names for pattern in patterns)
