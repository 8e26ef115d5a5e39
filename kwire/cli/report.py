"""kwire report: captures as one HTML page.

One pass feeds everything that counts and judges; a second one, which stops at the last frame that it wants, makes the
diagrams of the frames that findings name.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from kwire.cli.captures import Bounds, Captures, Progress, capture_options
from kwire.cli.outputs import output_option
from kwire.errors import Exit

if TYPE_CHECKING:
    from kwire.cli.captures import Pass
    from kwire.outputs import Output
    from kwire.render.html.markup import Markup
    from kwire.render.lines import Line
    from kwire.render.report.material import Material, Packet
    from kwire.session.batch import ExchangeBatch
    from kwire.session.connection_info import ConnectionInfo

WIDTH = 148  # columns of diagrams in the page
ELEMENTS, LINES, LETTERS = 4, 120, 12_000  # of a diagram: elements of an array, lines, letters
BUDGET = 2_000_000  # letters of all diagrams that are kept


@click.command()
@output_option("-o", "--output", name="target", purpose="The page; stdout otherwise.")
@capture_options
def command(captures: Captures, target: Output | None) -> Exit:
    """Makes one HTML page of captures, which opens offline in any browser: what was captured, the findings of kwire
    doctor with the diagrams of the frames that prove them, exchanges, bytes, latencies and errors over time, clients,
    APIs, topics, the timelines of groups, and connections with their problems.

    Nothing is loaded from elsewhere, text from the wire is inert and secrets are withheld. Tables sort and filter;
    numbers lead to the kwire command that shows more. Exit status 1 when a finding is an error."""
    from kwire.render.report.document import document

    if target is None and sys.stdout.isatty():
        raise click.UsageError("a page is not for a terminal; -o report.html says where it goes")
    material, done = collected(captures)
    made = document(material)
    if target is None:
        sys.stdout.write(made + "\n")
    else:
        data = (made + "\n").encode("utf-8")
        with target as file:
            file.write(data)
        print(f"kwire: {len(data):,} bytes to {target}", file=sys.stderr)
    return done.conclude(material.diagnosis.grave, foreign=bool(material.diagnosis.findings))


def collected(captures: Captures) -> tuple[Material, Pass]:
    """What captures hold, and how reading them went."""
    from kwire.analyze.clients import Clients
    from kwire.analyze.doctor import Doctor
    from kwire.analyze.overtime import OverTime
    from kwire.analyze.stats import Stats
    from kwire.render.report.commands import Commands
    from kwire.render.report.material import File, Material

    doctor, stats, clients, over = Doctor(replay=True), Stats(), Clients(), OverTime()

    def add(batch: ExchangeBatch) -> None:
        for take in (doctor.add, stats.add, clients.add, over.add):
            take(batch)

    def close(connection: ConnectionInfo) -> None:
        for take in (doctor.close, stats.close, clients.close):
            take(connection)

    done = captures.each_batch(add, close, tracking=True)
    names = done.reading.names
    files = [
        File(names[str(one.source.path)], one.source.size or 0, one.packets) for one in done.reading.captures
    ]  # fmt: skip
    commands = Commands([names[str(path)] for path in done.reading.paths], bound_words(captures.bounds))
    twice = not done.interrupted and all(map(os.path.isfile, captures.paths))
    material = Material(
        files, doctor.diagnose().gathered(), stats, clients, over, commands, done.reading.notes, twice
    )  # fmt: skip
    if twice:
        material.frames = diagrams(captures, material)
    return material, done


def diagrams(captures: Captures, material: Material) -> dict[Packet, Markup]:
    """The diagrams of the frames that findings name, by packet."""
    from kwire.render.exchange_diagrams import message_lines
    from kwire.render.html.frame import pre
    from kwire.session.packets import Holders

    wanted = {(one.capture, one.packet): one for one in material.evidence()}
    if not wanted:
        return {}
    progress = Progress(True)
    reading = captures.reading(lambda _: None, progress, tracking=True)
    found: dict[Packet, Markup] = {}
    holders, spent = Holders(wanted), 0
    start = material.diagnosis.clock.start
    try:
        for batch in reading.batches():
            for exchange in holders.of(batch):
                places = exchange.connection.places
                for message in (exchange.request, exchange.response):
                    packet = places.of(message.packet) if message is not None else ("", 0)
                    one = wanted.get(packet)
                    if message is None or one is None or packet in found or spent > BUDGET:
                        continue
                    if (one.message, one.connection) != (message.name, message.connection.name):
                        continue
                    lines = message_lines(message, WIDTH, ELEMENTS, False, False, start, exchange=exchange)
                    found[packet] = pre(bounded(lines))
                    spent += len(found[packet])
            if not holders.missing:
                break
    except KeyboardInterrupt:  # those that were found stand
        pass
    finally:
        progress.stop()
    return found


def bounded(lines: Sequence[Line]) -> list[Line]:
    """The first lines, and that there are more."""
    shown: list[Line] = []
    letters = 0
    for line in lines:
        letters += sum(len(text) for text, _ in line)
        if len(shown) == LINES or letters > LETTERS:
            return [*shown, [(f"… {len(lines) - len(shown):,} more lines", "dim")]]
        shown.append(line)
    return shown


def bound_words(bounds: Bounds) -> list[str]:
    """The options with which the captures were read, as every command needs them; key logs and definitions by name."""
    words = [word for port in bounds.ports for word in ("--port", str(port))]
    words += [word for host in bounds.hosts for word in ("--host", host)]
    words += [word for path in bounds.keylogs for word in ("--keylog", os.path.basename(path))]
    return words + (["--schema", bounds.schema.name] if bounds.schema else [])
