"""kwire redact: a capture to share."""

from __future__ import annotations

import os
import secrets
import sys
from typing import TYPE_CHECKING

import click

from kwire.cli.outputs import PACKETS, packets_option
from kwire.counted import counted
from kwire.errors import Exit

if TYPE_CHECKING:
    from kwire.outputs import Output

KEEP = ["topics", "groups", "clients", "members", "transactions", "hosts", "records"]


@click.command("redact")
@click.argument("capture")
@packets_option("-o", "--output", name="target", purpose="The capture to write: .pcapng or .pcap.")
@click.option("--keep", multiple=True, type=click.Choice(KEEP), help="What stays as it is; repeatable.")
@click.option(
    "--salt", metavar="TEXT|@FILE",
    help="Of the same salt, the same names come in other captures; else a new one each time. KWIRE_SALT too.",
)  # fmt: skip
def command(capture: str, target: Output | None, keep: tuple[str, ...], salt: str | None) -> Exit:
    """Writes a capture that can be shared: topics, groups, client ids, members, hosts, record keys and values become
    other bytes of the same length, the same ones everywhere; secrets, compressed records and whatever was not
    read are blanked. Times, sizes, ports, sequence numbers, offsets, versions and error codes stay, so that the
    exchanges and what is wrong with them are the same.

    Link headers, tunnels and packets that are not TCP are left out. Of TLS only the lengths stay.
    """
    from kwire.cli.streams import readable_twice
    from kwire.redact.capture import redact

    if target is None:
        raise click.UsageError("-o names the capture to write")
    form = PACKETS.get(target.path.suffix.lower(), "pcapng")
    with readable_twice((capture,)) as (path,), target as file:
        report = redact(path, file, form, _salt(salt), keep)
    for note in report.notes:
        print(f"kwire: {note}", file=sys.stderr)
    print(
        f"kwire: {counted(report.packets, 'packet')} to {target}: {counted(report.frames, 'frame')}, "
        f"{counted(report.names, 'name')} replaced, {counted(report.blanked, 'byte')} blank",
        file=sys.stderr,
    )
    if report.left_out:
        print(f"kwire: {counted(report.left_out, 'packet')} left out: not TCP, or cut too short", file=sys.stderr)
    if report.sealed:
        print(f"kwire: {counted(report.sealed, 'TLS connection')}: all blank", file=sys.stderr)
    if keep:
        print(f"kwire: kept as they were: {', '.join(keep)}", file=sys.stderr)
    if not report.frames and not report.sealed:
        print("kwire: nothing there was Kafka", file=sys.stderr)
        return Exit.NOT_KAFKA
    return Exit.OK


def _salt(given: str | None) -> bytes:
    """Raises OSError."""
    given = given if given is not None else os.environ.get("KWIRE_SALT")
    if given is None:
        return secrets.token_bytes(32)
    if given.startswith("@"):
        with open(given[1:], "rb") as file:
            return file.read().strip()
    return given.encode()
