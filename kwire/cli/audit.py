"""kwire audit: what an upgrade breaks."""

from __future__ import annotations

from functools import partial

import click

from kwire.cli.captures import Captures, capture_options
from kwire.errors import Exit


@click.command()
@click.option(
    "--to", "to", default="4.0", show_default=True, metavar="RELEASE", help="Brokers of this release are to come."
)
@click.option("--from", "new", metavar="RELEASE",
              help="The reverse: clients of this release are to come, to the brokers that are there.")  # fmt: skip
@click.option(
    "--brokers", "old", metavar="RELEASE", help="With --from: brokers of this release, not those of the capture."
)
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", help="The output format.")
@partial(capture_options, times=False)
def command(captures: Captures, to: str, new: str | None, old: str | None, output: str) -> Exit:
    """Says which clients a planned upgrade breaks, judged by their requests: blocked (which APIs at which
    versions, and what fixes it), ready, or unproven.

    Kafka 4.0 removes old versions (KIP-896) and batches of magic 0 and 1. JSON has one client per line. Exit status 1
    when a client is blocked."""
    from kwire.analyze.audit import BLOCKED, Audit
    from kwire.cli.output import show, width
    from kwire.render.audit import audit_lines
    from kwire.render.jsonform import dumps

    if old and not new:
        raise click.UsageError("--brokers goes with --from")
    audit = Audit()
    done = captures.each_batch(audit.add, lambda _: None)
    if new:
        verdicts = audit.reverse(_release(new), _release(old) if old else None)
        question = f"clients of {new} to {f'brokers of {old}' if old else 'the present brokers'}"
    else:
        verdicts = audit.verdicts(_release(to))
        question = f"to {to}"
    if output == "json":
        for verdict in verdicts:
            print(dumps(verdict.row(), indent=None))
    elif verdicts:
        show(audit_lines(audit, verdicts, question, width()))
    return done.conclude(any(one.verdict == BLOCKED for one in verdicts))


def _release(text: str) -> tuple[int, int]:
    from kwire.analyze.offers import known_releases, release_named

    try:
        found = release_named(text)
    except ValueError:
        found = (0, 0)
    if not (0, 8) <= found <= known_releases()[-1]:
        newest = ".".join(map(str, known_releases()[-1]))
        raise click.UsageError(f"{text} is no Kafka release that kwire knows (0.8 to {newest})")
    return found
