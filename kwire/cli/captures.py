"""What commands that read captures share: which connections and exchanges, how much memory, the last words."""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import reduce, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from kwire.cli.options import Name, library
from kwire.errors import Exit

if TYPE_CHECKING:
    from kwire.capture.files import Capture
    from kwire.session.conversation import Conversation
    from kwire.session.reader import Settings
    from kwire.session.reading import Reading
    from kwire.session.select import Selection

UNITS = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "m": 60_000_000_000}
SIZES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
Command = Callable[..., Any]


class Duration(click.ParamType[int]):
    """100ms, 1.5s, 250us: nanoseconds. A bare number is seconds."""

    name = "duration"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        found = re.fullmatch(r"(\d{1,12}(?:\.\d+)?)\s*(ns|us|µs|ms|s|m)?", str(value).strip())
        if found is None:
            self.fail(f"{value} is no duration; as 100ms, 1.5s", param, ctx)
        return round(float(found[1]) * UNITS[found[2] or "s"])


class Size(click.ParamType[int]):
    """64m, 512k: bytes."""

    name = "size"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        found = re.fullmatch(r"(\d+)\s*([kmg]?)i?b?", str(value).strip(), re.IGNORECASE)
        if found is None:
            self.fail(f"{value} is no size; as 512k, 64m", param, ctx)
        return int(found[1]) * SIZES[found[2].lower()]


class Moment(click.ParamType[tuple[bool, int]]):
    """Seconds since the capture's start (12.5), or a time, UTC (2026-11-21T14:03:22.5): (absolute, ns)."""

    name = "time"

    def convert(
        self, value: str | tuple[bool, int], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[bool, int]:
        if isinstance(value, tuple):
            return value
        if re.fullmatch(r"\+?\d{1,12}(\.\d+)?s?", value):
            return False, round(float(value.strip("+s")) * 1e9)
        try:
            parsed = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value} is no time; as 12.5 (seconds from the start) or 2026-11-21T14:03:22.5", param, ctx)
        moment = parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
        whole = int(moment.replace(microsecond=0).timestamp())
        return True, whole * 1_000_000_000 + moment.microsecond * 1000


def connection_options(command: Command) -> Command:
    """Which connections are looked at, and within which bounds: the command gets them as bounds."""
    options = [
        click.option("--port", "ports", type=click.IntRange(1, 65535), multiple=True, metavar="PORT",
                     help="Only connections with this port, which is a broker's; repeatable."),
        click.option("--host", "hosts", multiple=True, metavar="ADDRESS", help="Only connections of this address."),
        click.option("--max-frame", type=Size(), default="100m", metavar="SIZE", show_default=True,
                     help="A size prefix is believed up to here."),
        click.option("--memory", type=Size(), default="1g", metavar="SIZE", show_default=True,
                     help="What may wait in all: for the rest of frames, and a quarter of it behind missing packets."),
        click.option("--hold", type=Size(), default="4m", metavar="SIZE", show_default=True,
                     help="What may wait behind missing packets, for each direction of a connection."),
    ]  # fmt: skip
    return _all(_bounded(command), options)


class Bounds(NamedTuple):
    """What connection_options gave. Sizes are bytes."""

    ports: tuple[int, ...]
    hosts: tuple[str, ...]
    max_frame: int
    hold: int
    memory: int

    def settings(self, schema: Path | None = None) -> Settings:
        """How captures are to be read. Raises click.UsageError for a host that is no address and no name."""
        from kwire.session.reader import Settings

        chosen = library(schema) if schema else None
        hosts = frozenset(_addresses(self.hosts))
        return Settings(frozenset(self.ports), hosts, self.hold, self.max_frame, chosen, memory=self.memory)


def _bounded(command: Command) -> Command:
    """The command with one argument, bounds, in place of those options."""

    @wraps(command)
    def call(**given: Any) -> Any:
        return command(bounds=Bounds(*(given.pop(name) for name in Bounds._fields)), **given)

    return call


def exchange_options(command: Command) -> Command:
    """Which exchanges are wanted."""
    options = [
        click.option("--api", "apis", type=Name(), multiple=True, metavar="NAME", help="Of this API, by name or key."),
        click.option("--client-id", "client_ids", multiple=True, metavar="ID", help="Of this client id (* and ?)."),
        click.option("--client", "clients", multiple=True, metavar="ADDRESS", help="From this address, or :port."),
        click.option("--broker", "brokers", multiple=True, metavar="ADDRESS", help="To this address, or :port."),
        click.option("--topic", "topics", multiple=True, metavar="NAME", help="About this topic; * and ? match."),
        click.option("--group", "groups", multiple=True, metavar="NAME", help="About this group; * and ? match."),
        click.option("--errors", is_flag=True, help="That went wrong: an error, no answer, a damaged frame."),
        click.option("--slower", type=Duration(), metavar="TIME", help="Whose answer took at least so long: 100ms."),
        click.option("--from", "start", type=Moment(), metavar="TIME",
                     help="Begun at or after: seconds from the capture's start, or 2026-11-21T14:03:22 (UTC)."),
        click.option("--to", "end", type=Moment(), metavar="TIME", help="Begun at or before."),
        click.option("--id", "ids", type=int, multiple=True, metavar="N", help="With this correlation id."),
        click.option("--connection", "connections", multiple=True, metavar="TEXT",
                     help="On a connection whose name holds this: 10.0.0.7:51522, or #2."),
    ]  # fmt: skip
    return _all(command, options)


def _all(command: Command, options: Sequence[Callable[[Command], Command]]) -> Command:
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


def selection(first_time: Callable[[], int], **given: Any) -> Selection:
    """From what exchange_options gave. first_time: the start of the capture, asked only when a time counts from it."""
    from kwire.session.select import Selection

    def moment(value: tuple[bool, int] | None) -> int | None:
        if value is None:
            return None
        return value[1] if value[0] else first_time() + value[1]

    return Selection.of(
        api=given["apis"], client_id=given["client_ids"], client=given["clients"], broker=given["brokers"],
        topic=given["topics"], group=given["groups"], errors=given["errors"], slower=given["slower"],
        start=moment(given["start"]), end=moment(given["end"]), id=given["ids"], connection=given["connections"],
    )  # fmt: skip


def start_of(paths: tuple[str, ...]) -> int:
    """The time of the first packet of all captures, ns."""
    from kwire.capture.files import open_capture

    if "-" in paths:
        raise click.UsageError("times that count from the start need files; stdin can be read only once")
    firsts = []
    for path in paths:
        block = next((packets for packets in open_capture(path).blocks() if len(packets)), None)
        if block is not None:
            firsts.append(int(block.time[0]))
    return min(firsts, default=0)


def fewer_collections() -> None:
    """A capture makes objects by the million and no cycles: looking for those takes a sixth of the time."""
    gc.freeze()
    gc.set_threshold(200_000, 20, 50)


class Progress:
    """How far a capture is read: a line on stderr when it is a terminal and stdout is not one that shows the lines."""

    def __init__(self, wanted: bool) -> None:
        import time

        self._bar: Any = None
        self._tasks: dict[str, Any] = {}
        self._wanted = wanted and sys.stderr.isatty()
        self._clock = time.monotonic
        self._begun = time.monotonic()

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
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
        if name not in self._tasks:
            self._tasks[name] = self._bar.add_task(name, total=size)
        self._bar.update(self._tasks[name], completed=done)

    def stop(self) -> None:
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
    if not kafka:
        print("kwire: no Kafka in it (kwire read --not-kafka shows what there is)", file=sys.stderr)
        return Exit.NOT_KAFKA
    return Exit.MALFORMED if malformed or reading.damaged else Exit.OK


def open_captures(paths: tuple[str, ...]) -> list[str | Path]:
    """The paths, of which stdin may be one, once."""
    if paths.count("-") > 1:
        raise click.UsageError("stdin can be read only once")
    return list(paths)


def not_kafka(conversation: Conversation) -> bool:
    """Whether the connection was of another protocol."""
    return conversation.verdict is not None
