"""kwire trace: how far a consumer came, and what it waits for."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from kwire.cli.captures import Captures, capture_options
from kwire.cli.filters import AskedValues
from kwire.counted import counted
from kwire.errors import Exit

if TYPE_CHECKING:
    from kwire.session.connection_info import ConnectionInfo


@click.command()
@click.option("--all", "everything", is_flag=True, help="All consumers that match, not only the first ten.")
@click.option(
    "--format", "output", type=click.Choice(["text", "json", "html"]), default="text", help="The output format."
)
@capture_options
def command(captures: Captures, everything: bool, output: str) -> Exit:
    """Follows consumers through their seven steps: metadata, coordinator, join, assignment, heartbeat, offsets, fetch.
    Says which each one reached and when, which it repeats, and what it waits for at the end.

    --client-id X or --group NAME chooses them; all without it. Exit status 1 when one of them is stuck with errors.
    """
    from kwire.analyze.coverage import Coverage
    from kwire.analyze.findings import SEVERITIES
    from kwire.analyze.standing import verdict
    from kwire.analyze.trace import Trace
    from kwire.analyze.verdicts import some
    from kwire.cli.groups import Sealed, clock_of
    from kwire.cli.output import DOCUMENT_WIDTH, export, show, width
    from kwire.cli.page_facts import of_pass
    from kwire.render.jsonform import dumps
    from kwire.render.lines import clean
    from kwire.render.trace import document, trace_lines
    from kwire.session.select import fits

    trace = Trace()
    groups, ids = captures.wanted.groups, captures.wanted.client_ids
    chosen = captures._replace(wanted=captures.wanted._replace(groups=(), client_ids=()))  # all say how late it is
    sealed, coverage = Sealed(), Coverage()

    def ended(connection: ConnectionInfo) -> None:
        coverage.close(connection)
        sealed.add(connection)

    done = chosen.each(trace.add, ended, tracking=True)
    clock = clock_of(done)
    consumers = trace.consumers()
    found = [
        (consumer, verdict(consumer, trace.end, clock, coverage)) for consumer in consumers
        if _any(groups, consumer.groups) and _any(ids, [consumer.client_id])
    ]  # fmt: skip
    found.sort(key=lambda item: SEVERITIES.index(item[1].severity))
    if output == "json":
        print(dumps(document(found, clock)))
    elif output == "html":
        print(export(trace_lines(found, clock, DOCUMENT_WIDTH, everything), output, "kwire trace", of_pass(done)))
    else:
        show(trace_lines(found, clock, width(), everything))
    if not consumers:
        sealed.tell()
    asked = [AskedValues("consumer in a group", groups, fits), AskedValues("consumer with client id", ids, fits)]
    for one in consumers:
        asked[0].see(one.groups)
        asked[1].see([one.client_id])
    complaints = [line for kind in asked for line in kind.complaints()] if done.filter.held else []
    if consumers and not found and not complaints:
        said = some([f"{one.client_id} of {some(list(one.groups)) or 'no group'}" for one in consumers], 6)
        complaints.append(f"no consumer is both; there is {clean(said)}")
    for line in complaints:
        print(f"kwire: {line}", file=sys.stderr)
    if trace.unkept:
        print(
            f"kwire: {counted(trace.unkept, 'request')} of more clients than can be kept are left out", file=sys.stderr
        )
    return done.conclude(any(one.severity == SEVERITIES[0] for _, one in found))


def _any(patterns: tuple[str, ...], names: Iterable[str]) -> bool:
    """Whether a name is wanted; without patterns all are."""
    from kwire.session.select import fits

    return not patterns or any(fits(name, pattern) for name in names for pattern in patterns)
