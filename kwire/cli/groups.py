"""kwire groups: what consumer groups lived through, and why members were thrown out."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from kwire.cli.captures import Captures, capture_options
from kwire.cli.filters import AskedValues
from kwire.counted import counted
from kwire.errors import Exit

if TYPE_CHECKING:
    from kwire.analyze.findings import TimeFormat
    from kwire.cli.captures import Pass
    from kwire.session.connection_info import ConnectionInfo

FORMATS = ("text", "json", "svg", "html")


@click.command()
@click.option("--all", "everything", is_flag=True, help="All groups, members, generations and findings.")
@click.option(
    "--timeline/--no-timeline", default=None, help="Draw members as lanes over time; by default where it fits."
)
@click.option("--format", "output", type=click.Choice(FORMATS), default="text", help="The output format.")
@capture_options
def command(captures: Captures, everything: bool, timeline: bool | None, output: str) -> Exit:
    """Judges the groups in captures: who joined, left or was evicted, what made each group rebalance, how long that
    took, which partitions moved, and why requests were refused, with the frames that prove it.

    Classic, consumer (KIP-848), share and streams groups. The findings come first, worst first; each names its frames,
    which kwire decode CAPTURE --frame N shows. Exit status 1 when one of them is an error.
    """
    from kwire.analyze.coverage import Coverage
    from kwire.analyze.groups import GroupHistories
    from kwire.analyze.verdicts import judge
    from kwire.cli.output import show, width
    from kwire.render.groups import document, groups_lines
    from kwire.render.jsonform import dumps
    from kwire.session.select import fits

    patterns = captures.wanted.groups
    asked = AskedValues("group", patterns, fits)

    def wanted(name: str) -> bool:
        asked.see([name])
        return any(fits(name, one) for one in patterns)

    groups = GroupHistories(wanted if patterns else None)
    chosen = captures._replace(wanted=captures.wanted._replace(groups=()))
    sealed, coverage = Sealed(), Coverage()

    def ended(connection: ConnectionInfo) -> None:
        groups.activity.close(connection, connection.coverage)
        coverage.close(connection)
        sealed.add(connection)

    done = chosen.each(groups.add, ended, tracking=True)
    groups.finish()
    judged = judge(groups, clock_of(done), coverage=coverage)
    if output == "json":
        print(dumps(document(judged.groups, judged.clock)))
    elif output == "text":
        show(groups_lines(judged.groups, judged.clock, width(), everything, timeline))
    else:
        from kwire.cli.page_facts import of_pass
        from kwire.render.timeline_svg import page, picture

        shown = judged.groups, judged.clock, everything
        print(picture(*shown) if output == "svg" else page(*shown, of_pass(done)))
    if not judged.groups:
        sealed.tell()
    if done.filter.held:
        for line in asked.complaints():
            print(f"kwire: {line}", file=sys.stderr)
    if groups.unkept:
        print(
            f"kwire: {counted(groups.unkept, 'request')} of more groups than can be kept are left out", file=sys.stderr
        )
    return done.conclude(judged.grave)


class Sealed:
    """Counts connections in TLS as they end: a group may be in there."""

    def __init__(self) -> None:
        self.count = self.refused = 0

    def add(self, connection: ConnectionInfo) -> None:
        found = connection.verdict
        if found is not None and found.is_tls:
            self.refused += found.is_refused
            self.count += not found.is_refused

    def tell(self) -> None:
        """On stderr, where there are any."""
        if self.count:
            said = f"{counted(self.count, 'connection')} {'speak' if self.count > 1 else 'speaks'}"
            print(f"kwire: {said} TLS and cannot be read; kwire clients tells of them", file=sys.stderr)
        if self.refused:
            said = f"{self.refused:,} connections" if self.refused > 1 else "1 connection"
            print(f"kwire: {said} sent a TLS ClientHello and got no ServerHello: not encrypted", file=sys.stderr)


def clock_of(done: Pass) -> TimeFormat:
    """Times count from the first packet that was read."""
    from kwire.analyze.findings import TimeFormat

    return TimeFormat(
        min((reader.first_time for reader in done.reading.readers if reader.first_time is not None), default=0)
    )
