"""kwire diff: what changed between two captures, or two clients of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kwire.cli.captures import Captures, capture_options
from kwire.errors import Exit

if TYPE_CHECKING:
    from kwire.analyze.changes import ComparedSide
    from kwire.analyze.findings import Finding
    from kwire.cli.captures import Pass
    from kwire.session.batch import ExchangeBatch


@click.command()
@click.option("--client-a", metavar="ID", help="Of A only this client id (* and ?).")
@click.option("--client-b", metavar="ID", help="Of B only this client id; with one capture, the other client of it.")
@click.option("--no-findings", is_flag=True, help="Do not compare what kwire doctor finds.")
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", help="The output format.")
@capture_options
def command(captures: Captures, client_a: str | None, client_b: str | None, no_findings: bool, output: str) -> Exit:
    """Says what changed from capture A to capture B, or from one client to another, the largest first: versions,
    settings that show on the wire, rates, latencies, errors, findings. What follows from a changed setting stands
    beneath it.

    \b
    kwire diff before.pcapng after.pcapng
    kwire diff trouble.pcapng --client-a billing-1 --client-b billing-2
    kwire diff before.pcapng after.pcapng --topic orders
    """
    from kwire.analyze.changes import changes
    from kwire.cli.output import show, width
    from kwire.render.changes import changes_lines, document
    from kwire.render.jsonform import dumps

    paths = captures.paths
    if len(paths) > 2:
        raise click.UsageError("diff takes two captures, or one with --client-a and --client-b")
    if len(paths) == 1 and not (client_a and client_b):
        raise click.UsageError("diff takes two captures; of one capture, two clients: --client-a ID --client-b ID")
    if paths[0] == "-" and len(paths) == 1:
        raise click.UsageError("the capture is read twice: - cannot be")
    chosen = (paths[0], client_a), (paths[-1], client_b)
    first, last = (_side(captures, path, client, not no_findings) for path, client in chosen)
    sides = first[0], last[0]
    names = _names(chosen)
    found = changes(*sides, alone=bool(client_a and client_b))
    if output == "json":
        print(dumps(document(found, names)))
    else:
        show(changes_lines(found, names, sides, width()))
    return max(first[1].conclude(), last[1].conclude())


def _names(chosen: tuple[tuple[str, str | None], tuple[str, str | None]]) -> tuple[str, str]:
    """What each side is called: the captures, or where they are one, the clients."""
    (one, client), (other, second) = chosen
    if one == other and client and second:
        return client, second
    return tuple(f"{path} {name}" if name else path for path, name in chosen)  # type: ignore[return-value]


def _side(captures: Captures, path: str, client: str | None, findings: bool) -> tuple[ComparedSide, Pass]:
    from kwire.analyze.changes import ComparedSide
    from kwire.analyze.doctor import Doctor
    from kwire.analyze.profiles import Profiles

    profiles, doctor = Profiles(), Doctor() if findings else None
    wanted = captures.wanted._replace(client_ids=(client,)) if client else captures.wanted
    mine = captures._replace(paths=(path,), wanted=wanted)

    def add(batch: ExchangeBatch) -> None:
        profiles.add(batch)
        if doctor is not None:
            doctor.add(batch)

    done = mine.each_batch(add, doctor.close if doctor is not None else lambda _: None, tracking=findings)
    found: list[Finding] = doctor.diagnose().findings if doctor is not None else []
    return ComparedSide(profiles, found), done
