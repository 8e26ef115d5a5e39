"""kwire groups: what consumer groups lived through, and why members were thrown out."""

from __future__ import annotations

import sys
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import click

from kwire.cli.captures import Captures, capture_options
from kwire.errors import Exit

if TYPE_CHECKING:
    from kwire.analyze.findings import Clock
    from kwire.cli.captures import Pass

FORMATS = ("text", "json", "svg", "html")


@click.command()
@capture_options
@click.option("--all", "everything", is_flag=True, help="All groups, members, generations and findings.")
@click.option(
    "--timeline/--no-timeline", default=None, help="Draw members as lanes over time; by default where it fits."
)
@click.option("--format", "output", type=click.Choice(FORMATS), default="text", help="What comes out.")
def command(captures: Captures, everything: bool, timeline: bool | None, output: str) -> Exit:
    """Judges the groups in captures: who joined, left or was evicted, what made each group rebalance, how long that
    took, which partitions moved, and why requests were refused, with the frames that prove it.

    Classic, consumer (KIP-848), share and streams groups. The findings come first, worst first; each names its frames,
    which kwire decode CAPTURE --frame N shows. Exit status 1 when one of them is an error.
    """
    from kwire.analyze.groups import Groups
    from kwire.analyze.verdicts import judge
    from kwire.cli.output import show, width
    from kwire.render.groups import document, groups_lines
    from kwire.render.jsonform import dumps

    patterns = captures.wanted.groups
    groups = Groups((lambda name: any(fnmatchcase(name, one) for one in patterns)) if patterns else None)
    chosen = captures._replace(wanted=captures.wanted._replace(groups=()))
    done = chosen.each(groups.add, lambda _: None, tracking=True)
    groups.finish()
    judged = judge(groups, clock_of(done))
    if output == "json":
        print(dumps(document(judged.groups, judged.clock)))
    elif output == "text":
        show(groups_lines(judged.groups, judged.clock, width(), everything, timeline))
    else:
        from kwire.render.timeline_svg import page, picture

        make = picture if output == "svg" else page
        print(make(judged.groups, judged.clock, everything))
    if groups.unkept:
        print(f"kwire: {groups.unkept:,} requests of more groups than can be kept are left out", file=sys.stderr)
    return done.conclude(judged.grave)


def clock_of(done: Pass) -> Clock:
    """Times count from the first packet that was read."""
    from kwire.analyze.findings import Clock

    return Clock(
        min((reader.first_time for reader in done.reading.readers if reader.first_time is not None), default=0)
    )
