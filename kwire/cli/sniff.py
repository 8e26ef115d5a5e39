"""kwire sniff: the exchanges on an interface, as they happen."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

import click

from kwire.cli.captures import Bounds, connection_options, exchange_options, fewer_collections
from kwire.cli.detecting import Detecting, detector_options
from kwire.cli.exchange_output import Shown, shown_options
from kwire.cli.filters import Filter
from kwire.cli.following import Following, patient
from kwire.cli.keylogs import with_secrets
from kwire.cli.monitoring import Monitoring, monitoring_options
from kwire.cli.outputs import PACKETS, form_of, packets_option
from kwire.cli.quantities import Duration
from kwire.cli.wanted import Wanted
from kwire.counted import counted
from kwire.errors import Exit, OutputError

if TYPE_CHECKING:
    from kwire.analyze.live import LiveDoctor
    from kwire.capture.live import Live
    from kwire.capture.packets import Packets
    from kwire.outputs import Output


@click.command()
@click.option(
    "-i",
    "--interface",
    "names",
    multiple=True,
    default=["any"],
    metavar="NAME",
    help="Where to listen; repeatable; any is all interfaces, which is the default.",
)
@click.option("--list", "listing", is_flag=True, help="Name the interfaces.")
@click.option("-c", "--count", type=click.IntRange(1), metavar="N", help="End after so many exchanges.")
@click.option("--duration", type=Duration(), metavar="TIME", help="End after so long: 30s, 5m.")
@packets_option(
    "-w", "--write", name="target",
    purpose="Also write the packets, as pcapng or, x.pcap, as pcap; readable while it grows. - is stdout, which "
    "then shows nothing else.",
)  # fmt: skip
@with_secrets
@click.option("--stats", is_flag=True, help="Counts and times, refreshed in place, instead of lines.")
@click.option(
    "--doctor", is_flag=True, help="What kwire doctor finds, as it becomes certain, and all of it at the end."
)
@detector_options
@click.option("--browse", "browsing", is_flag=True, help="As kwire browse shows it, with its keys; needs kwire[tui].")
@click.option("-q", "--quiet", is_flag=True, help="Show no exchanges.")
@monitoring_options
@shown_options
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", help="The output format.")
@exchange_options
@connection_options
def command(
    names: tuple[str, ...], listing: bool, bounds: Bounds, wanted: Wanted, count: int | None, duration: int | None,
    target: Output | None, secrets: bool, stats: bool, doctor: bool, detecting: Detecting, browsing: bool,
    quiet: bool, monitoring: Monitoring, shown: Shown, output: str,
) -> int:  # fmt: skip
    """Listens on interfaces and shows Kafka's conversations as they happen. Times are of the day, UTC.

    \b
    kwire sniff -i eth0 --port 9092
    kwire sniff --port 9092 --errors -w trouble.pcapng
    kwire sniff --port 9092 --quiet --metrics :9469      for Prometheus
    """
    from kwire.capture.live import Live, expression
    from kwire.capture.tls.protection import load
    from kwire.session.reader import Reader

    if listing:
        return _list()
    if stats and doctor:
        raise click.UsageError("--stats or --doctor, not both")
    detecting.needs(doctor)
    diagnosed = _doctor(detecting) if doctor else None
    if browsing and (stats or doctor or quiet or count or secrets or output != "text"):
        raise click.UsageError("--browse goes with -i, -w, --duration and with what chooses, not with other views")
    chosen = Filter(wanted.selection(time.time_ns, lambda: sys.maxsize), wanted)
    limits = bounds.settings(growing=True)
    form = form_of(target.path, PACKETS, None, "pcapng") if target else ""
    live = Live(names, expression(bounds.ports, bounds.hosts))
    if secrets and form != "pcapng":
        raise click.UsageError("--with-secrets belongs to -w FILE as pcapng")
    saved = SavedCapture(target, form, live) if target else None  # before the right to is gone
    load()
    if browsing:
        return _browse(live, saved, bounds, wanted, duration)
    live.drop_privileges()
    grave = False
    with monitoring.started() as monitors:
        reader = Reader(
            ",".join(live.names) if len(live.names) < 4 else "any", patient(limits), tracking=True, ordered=doctor,
            ended=monitors.beside(diagnosed.close) if diagnosed else monitors.close,
        )  # fmt: skip
        if sys.stderr.isatty():
            where = f"{', '.join(live.names)}{f', port {chr(44).join(map(str, bounds.ports))}' if bounds.ports else ''}"
            print(f"kwire: listening on {where}; Ctrl-C ends it", file=sys.stderr)
        fewer_collections()
        until = None if duration is None else time.monotonic() + duration / 1e9
        following = Following(live.blocks(until), reader, chosen, count)
        following.told = monitors.add
        if saved is not None:
            following.each = lambda packets: saved.add(packets, reader.tls.take_secrets())
        try:
            reader.tls.noting = secrets
            if quiet or (target is not None and target.is_stdout):
                following.run()
            elif diagnosed is not None:
                grave = following.show_diagnosis(diagnosed, output)
            elif stats:
                following.show_stats()
            else:
                following.show(output, shown)
        except KeyboardInterrupt:
            pass
        finally:
            dropped = live.count_drops()
            live.close()
            if saved is not None:
                saved.close()
    for note in reader.notes:
        print(f"kwire: {note}", file=sys.stderr)
    lost = f", {dropped:,} dropped by the kernel" if dropped else ""
    print(f"kwire: {counted(reader.packets, 'packet')}{lost}, {counted(following.seen, 'exchange')}", file=sys.stderr)
    chosen.say()
    if grave:
        return Exit.MALFORMED
    return Exit.OK if following.seen or reader.tls.sealed or not reader.packets else Exit.NOT_KAFKA


def _browse(live: Live, saved: SavedCapture | None, bounds: Bounds, wanted: Wanted, duration: int | None) -> int:
    from kwire.cli.browse_live import prepare, temporary_capture, watch
    from kwire.outputs import Output

    try:
        prepare()
        with temporary_capture(live) as path:
            shown = SavedCapture(Output(path, private=True), "pcapng", live)
            if os.geteuid() == 0:
                os.chown(path, *live.becomes)
            live.drop_privileges()
            keep = [one.record for one in (shown, saved) if one is not None]
            until = None if duration is None else time.monotonic() + duration / 1e9
            return watch(live, path, bounds, wanted, keep, until)
    finally:
        live.close()
        if saved is not None:
            saved.close()


def _doctor(detecting: Detecting) -> LiveDoctor:
    """With all that it takes to show what it finds: who has no rights any more may not be able to read it later."""
    import kwire.render.findings  # noqa: F401
    from kwire.analyze.live import LiveDoctor

    return LiveDoctor(*detecting.chosen())


class SavedCapture:
    """The capture that grows meanwhile: it has its name with its first bytes, and each block of packets whole."""

    def __init__(self, target: Output, form: str, live: Live) -> None:
        from kwire.capture.save import writer_of

        links = set(live.links)
        if form == "pcap" and len(links) > 1:
            raise OutputError(str(target), "these interfaces have several link types, which only pcapng holds")
        self._target = target
        self._file = target.open()
        try:
            self._writer = writer_of(self._file, form, min(links, default=None))
            self._file.flush()
            if os.geteuid() == 0 and live.user is not None:
                target.hand_over(*live.user)
            target.place()
        except BaseException:
            target.abandon()
            raise

    def add(self, packets: Packets, secrets: list[str]) -> None:
        """secrets: of TLS connections among them, as lines of a key log."""
        from kwire.capture.save import PcapngWriter

        if secrets and isinstance(self._writer, PcapngWriter):
            self._writer.secrets(secrets)
        for at in range(len(packets)):
            start, size = int(packets.start[at]), int(packets.captured[at])
            data = bytes(packets.buffer[start : start + size])
            self._writer.write(int(packets.time[at]), data, int(packets.length[at]), int(packets.link[at]))
        if len(packets):
            self._file.flush()

    def record(self, packets: Packets) -> None:
        """As add, of packets without secrets."""
        self.add(packets, [])

    def close(self) -> None:
        self._target.close()


def _list() -> int:
    from kwire.capture.live import interfaces
    from kwire.cli.output import show, width
    from kwire.render.lines import clean, table

    rows = [
        [(clean(known.name), ""), ("up" if known.up else "down", "good" if known.up else "dim"),
         (", ".join(known.addresses), "")]
        for known in interfaces()
    ]  # fmt: skip
    show(table(["interface", "state", "addresses"], rows, width()))
    return Exit.OK
