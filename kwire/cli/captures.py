"""What commands that read captures share: which connections and exchanges, how much memory, the last words."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import reduce, wraps
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from kwire.cli import pager
from kwire.cli.filters import Filter
from kwire.cli.keylogs import key_log, keylog_option
from kwire.cli.options import Name, library, schema_option
from kwire.cli.quantities import Duration, Moment, Size
from kwire.cli.wanted import Wanted
from kwire.counted import counted
from kwire.errors import Exit

if TYPE_CHECKING:
    from kwire.capture.files import Capture
    from kwire.session.batch import ExchangeBatch
    from kwire.session.connection_info import ConnectionInfo
    from kwire.session.exchange import Exchange
    from kwire.session.reader import Settings
    from kwire.session.reading import Reading
    from kwire.session.select import Selection

Command = Callable[..., Any]
BEGINNING = 10_000  # exchanges that are looked at for where there is Kafka at all
LITTLE = 16 << 20  # bytes of captures that are not worth a second process
jobs_option = click.option(
    "--jobs", type=click.IntRange(1, 64), metavar="N",
    help="Processes that follow connections; as many as there are cores otherwise, one for captures below 16 MiB.",
)  # fmt: skip


def connection_options(command: Command) -> Command:
    """Which connections are looked at, within which bounds and with which definitions: the command gets them as
    bounds."""
    options = [
        click.option("--port", "ports", type=click.IntRange(1, 65535), multiple=True, metavar="PORT",
                     help="Only connections with this port, which is a broker's; repeatable."),
        click.option("--host", "hosts", multiple=True, metavar="ADDRESS", help="Only connections of this address."),
        click.option("--max-frame", type=Size(), default="100m", metavar="SIZE", show_default=True,
                     help="The largest size prefix that is believed."),
        click.option("--memory", type=Size(), default="1g", metavar="SIZE", show_default=True,
                     help="Memory for waiting data: for incomplete frames, a quarter of it behind missing packets."),
        click.option("--hold", type=Size(), default="4m", metavar="SIZE", show_default=True,
                     help="Memory for data behind missing packets, in each direction of a connection."),
        keylog_option,
        schema_option,
    ]  # fmt: skip
    return with_options(bundled(command, "bounds", Bounds), options)


class Bounds(NamedTuple):
    """What connection_options gave. Sizes are bytes."""

    ports: tuple[int, ...]
    hosts: tuple[str, ...]
    max_frame: int
    hold: int
    memory: int
    schema: Path | None
    keylogs: tuple[str, ...] = ()

    def settings(self, growing: bool = False) -> Settings:
        """How captures are to be read. growing: packets, and the keys of TLS, are still to come. Raises
        click.UsageError for a host that is no address and no name, OSError for a key log that cannot be read."""
        from kwire.session.reader import Settings

        chosen = library(self.schema) if self.schema else None
        hosts = frozenset(_addresses(self.hosts))
        return Settings(
            frozenset(self.ports), hosts, self.hold, self.max_frame, chosen, memory=self.memory,
            keys=key_log(self.keylogs, growing),
        )  # fmt: skip


def bundled(command: Command, name: str, kind: type[Any]) -> Command:
    """The command with one argument, a NamedTuple of kind, in place of those that its fields name."""

    @wraps(command)
    def call(**given: Any) -> Any:
        fields = [given.pop(field) for field in kind._fields]
        return command(**{name: kind(*fields)}, **given)

    return call


def exchange_options(command: Command, times: bool = True) -> Command:
    """Which exchanges are wanted: the command gets them as wanted. times: with --from and --to."""
    options = [
        click.option("--api", "apis", type=Name(), multiple=True, metavar="NAME",
                     help="Only this API: a name (* and ?) or a key."),
        click.option("--client-id", "client_ids", multiple=True, metavar="ID",
                     help="Only of this client id (* and ?)."),
        click.option("--client", "clients", multiple=True, metavar="ADDRESS", help="Only from this address, or :port."),
        click.option("--broker", "brokers", multiple=True, metavar="ADDRESS", help="Only to this address, or :port."),
        click.option("--topic", "topics", multiple=True, metavar="NAME", help="Only about this topic (* and ?)."),
        click.option("--group", "groups", multiple=True, metavar="NAME", help="Only about this group (* and ?)."),
        click.option("--errors", is_flag=True, help="Only what went wrong: an error, no answer, a damaged frame."),
        click.option("--error", "error_names", multiple=True, metavar="NAME",
                     help="Only answers with this error: a name (* and ?) or a number."),
        click.option("--slower", type=Duration(), metavar="TIME", help="Answers that took at least so long: 100ms."),
        click.option("--id", "ids", type=int, multiple=True, metavar="N", help="Only this correlation id."),
        click.option("--connection", "connections", multiple=True, metavar="TEXT",
                     help="Only connections whose name holds this: 10.0.0.7:51522, or #2."),
        click.option("--not", "unless", nargs=2, multiple=True, metavar="FILTER VALUE",
                     help="Before one of these filters: what fits it is left out; repeatable."),
        click.option("--settled", is_flag=True,
                     help="Without errors that are normal at start-up: MEMBER_ID_REQUIRED and the like."),
    ]  # fmt: skip
    made = bundled(command, "wanted", Wanted)
    if times:
        options[9:9] = [
            click.option("--from", "start", type=Moment(), metavar="TIME",
                         help="Only what began at or after 12.5 or +12.5s from the capture's start, 14:03:22.5, or "
                         "2026-11-21T14:03:22.5 (UTC)."),
            click.option("--to", "end", type=Moment(), metavar="TIME",
                         help="Only what began at or before this time; 14:03:22 is all of that second."),
        ]  # fmt: skip
        return with_options(made, options)

    @wraps(made)
    def timeless(**given: Any) -> Any:
        return made(**given, start=None, end=None)

    return with_options(timeless, options)


def capture_options(command: Command, times: bool = True) -> Command:
    """Captures, and which of their exchanges are wanted: the command gets them as captures. times: with --from and
    --to."""
    paths = click.argument("paths", metavar="CAPTURE...", nargs=-1, required=True)
    return paths(exchange_options(connection_options(bundled(command, "captures", Captures)), times))


class Captures(NamedTuple):
    """What capture_options gave."""

    paths: tuple[str, ...]
    bounds: Bounds
    wanted: Wanted

    def selection(self) -> Selection:
        """Raises click.UsageError for times that stdin would have to be read for."""
        return self.wanted.selection(lambda: start_of(self.paths), lambda: end_of(self.paths))

    def filter(self) -> Filter:
        """The selection that notes what there is, for where it matches nothing."""
        return Filter(self.selection(), self.wanted)

    def reading(
        self, ended: Callable[[ConnectionInfo], None] | None, progress: Progress, tracking: bool, follow: bool = False,
        ledger: bool = False,
    ) -> Reading:  # fmt: skip
        """A pass over the captures, not yet begun. ledger: where the records of TLS lie is remembered."""
        from dataclasses import replace

        from kwire.session.reading import Reading

        fewer_collections()
        return Reading(
            open_captures(self.paths), replace(self.bounds.settings(growing=follow), ledger=ledger),
            tracking=tracking, follow=follow, ended=ended, progress=progress,
        )  # fmt: skip

    def each(
        self, add: Callable[[Exchange], None], ended: Callable[[ConnectionInfo], None], tracking: bool = False
    ) -> Pass:
        """As each_batch, one exchange after the other."""

        def one_by_one(batch: ExchangeBatch) -> None:
            for exchange in batch:
                add(exchange)

        return self.each_batch(one_by_one, ended, tracking)

    def each_batch(
        self, add: Callable[[ExchangeBatch], None], ended: Callable[[ConnectionInfo], None], tracking: bool = False
    ) -> Pass:
        """Adds the exchanges that are wanted, and the connections as they end, until all are read or Ctrl-C comes.
        tracking: add asks what exchanges are about."""
        chosen = self.filter()
        tracking = tracking or chosen.selection.needs_about
        progress = Progress(True)
        reading = self.reading(ended, progress, tracking)
        kafka = interrupted = False
        try:
            for batch in reading.batches():
                kafka = kafka or len(batch) > 0
                add(chosen.wanted(batch, tracking))
        except KeyboardInterrupt:  # what was found so far is shown
            interrupted = True
        finally:
            progress.stop()
        return Pass(reading, kafka, interrupted, chosen)


class Pass(NamedTuple):
    """A pass over captures that is over. kafka: whether they hold any."""

    reading: Reading
    kafka: bool
    interrupted: bool
    filter: Filter

    def conclude(self, malformed: bool = False, foreign: bool = False) -> Exit:
        """Says on stderr what was damaged or is missing, and gives the exit status. malformed: something in the
        input was, or a finding is an error; foreign: what is not Kafka was shown too."""
        if self.interrupted:
            print("kwire: interrupted: this is what was found until then", file=sys.stderr)
            return Exit.INTERRUPTED
        self.filter.say()
        status = conclude(self.reading, self.kafka or (foreign and not self.reading.encrypted), malformed)
        told = self.kafka or self.reading.encrypted or (foreign and malformed)
        return status if told else Exit.NOT_KAFKA


def with_options(command: Command, options: Sequence[Callable[[Command], Command]]) -> Command:
    return reduce(lambda made, option: option(made), reversed(options), command)


def _addresses(hosts: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    import socket
    from ipaddress import ip_address

    from kwire.capture.ip import MAPPED

    for host in hosts:
        try:
            found = {info[4][0] for info in socket.getaddrinfo(host, None)}
        except (OSError, UnicodeError):
            raise click.UsageError(f"no address {host}") from None
        for text in found:
            address = ip_address(str(text).partition("%")[0])
            number = int(address) | (MAPPED if address.version == 4 else 0)
            yield number >> 64, number & (1 << 64) - 1


def start_of(paths: tuple[str, ...]) -> int:
    """The time of the first packet of all captures, ns."""
    from kwire.capture.files import open_capture

    if "-" in paths:
        raise click.UsageError(
            "times from the start, and of the day without a date, need files; stdin can be read only once"
        )
    firsts = []
    for path in paths:
        block = next((packets for packets in open_capture(path).blocks() if len(packets)), None)
        if block is not None:
            firsts.append(int(block.time.min()))
    return min(firsts, default=0)


def end_of(paths: tuple[str, ...]) -> int:
    """The time of the last packet of all captures, ns. All of them are read for it."""
    from kwire.session.reading import span_of

    return max((span_of(path)[1] for path in paths), default=0)


def fewer_collections() -> None:
    """A capture makes objects by the million and no cycles: looking for those takes a sixth of the time."""
    gc.freeze()
    gc.set_threshold(1_000_000, 20, 50)


def processes(paths: Sequence[str | Path], asked: int | None) -> int:
    """How many processes read captures: as many as were asked for; by default one a core, and one for small captures.

    A stream that cannot be read a second time is read by one: a topic's name may stand in another process's part."""
    if not hasattr(os, "fork") or not all(map(os.path.isfile, paths)):
        return 1
    return asked or (1 if sum(map(os.path.getsize, paths)) < LITTLE else os.cpu_count() or 1)


class Progress:
    """How far a capture is read: a line on stderr when it is a terminal and stdout is not one that shows the lines."""

    def __init__(self, wanted: bool) -> None:
        import time

        self._bar: Any = None
        self._tasks: dict[str, Any] = {}
        self._wanted = wanted and sys.stderr.isatty()
        self._clock = time.monotonic
        self._begun = time.monotonic()
        pager.before(self.stop)

    def __call__(self, capture: Capture) -> None:
        self.show(capture.name, capture.source.done, capture.source.size)

    def show(self, name: str, done: int, size: int | None) -> None:
        """So many bytes of a capture are read."""
        if not self._wanted or self._clock() - self._begun < 1:
            return
        if self._bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

            columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn()
            self._bar = Progress(
                *columns, console=Console(stderr=True), transient=True, redirect_stdout=False, redirect_stderr=False
            )
            self._bar.start()
        if name not in self._tasks:
            self._tasks[name] = self._bar.add_task(name, total=size)
        self._bar.update(self._tasks[name], completed=done)

    def stop(self) -> None:
        self._wanted = False
        if self._bar is not None:
            self._bar.stop()


def conclude(reading: Reading, kafka: bool, malformed: bool) -> Exit:
    """Says on stderr what was damaged, and gives the exit status."""
    from kwire.render.lines import clean

    joined = sum(len(chain) for chain in reading.chains if len(chain) > 1)
    if joined:
        print(f"kwire: {joined} captures follow each other and are read as one", file=sys.stderr)
    notes = reading.notes
    for note in notes[:20]:
        print(f"kwire: {clean(note)}", file=sys.stderr)
    if len(notes) > 20:
        print(f"kwire: and {len(notes) - 20:,} more of the kind", file=sys.stderr)
    if not kafka and reading.encrypted:
        some = counted(reading.encrypted, "TLS connection")
        print(f"kwire: {some} that only keys can open: --keylog FILE (kwire explain keylog)", file=sys.stderr)
        return Exit.MALFORMED if malformed or reading.damaged else Exit.OK
    if not kafka:
        where = elsewhere(reading) or " in it (kwire read --not-kafka shows what there is)"
        print(f"kwire: no Kafka{where}", file=sys.stderr)
        return Exit.NOT_KAFKA
    return Exit.MALFORMED if malformed or reading.damaged else Exit.OK


def elsewhere(reading: Reading) -> str:
    """Where only some ports or hosts were looked at: what they are, and where the files' beginnings have Kafka."""
    from dataclasses import replace

    from kwire.cli.filters import there_are
    from kwire.session.reading import Reading

    ports, hosts = reading.settings.ports, reading.settings.hosts
    if not (ports or hosts) or not all(map(os.path.isfile, reading.paths)):
        return ""
    everything = Reading(reading.paths, replace(reading.settings, ports=frozenset(), hosts=frozenset()))
    brokers = {one.connection.ends[1] for one in islice(everything.exchanges(), BEGINNING)}
    if not brokers:
        return ""
    numbers = " or ".join(map(str, sorted(ports)))
    where = f"port {numbers}{' of these hosts' if hosts else ''}" if ports else "these hosts"
    return f" on {where}; brokers elsewhere in it: {there_are(brokers, numbers).partition(': ')[2]}"


def open_captures(paths: tuple[str, ...]) -> list[str | Path]:
    """The paths, of which stdin may be one, once."""
    if paths.count("-") > 1:
        raise click.UsageError("stdin can be read only once")
    return list(paths)
