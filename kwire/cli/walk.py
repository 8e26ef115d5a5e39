"""kwire walk: a consumer's start, step by step."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from kwire.cli.brokers import DAY, BrokerOptions, broker_options
from kwire.cli.quantities import Duration
from kwire.errors import Exit

if TYPE_CHECKING:
    from kwire.client.walk.step import Step
    from kwire.client.walk.walk import Walk
    from kwire.codec.echo import Echo

MS = 1_000_000
PATIENCE = (
    "How long to wait for a connection, and for an answer; for those to JoinGroup and SyncGroup, which wait for the "
    "group's other members, at least 65 s: max.poll.interval.ms, here 60 s, and 5 s more."
)
PROTOCOLS = {"classic": "classic protocol", "consumer": "consumer protocol (KIP-848)"}


@click.command()
@click.argument("brokers", metavar="BROKER[,BROKER…]")
@click.option("-g", "--group", required=True, metavar="NAME", help="The group to join.")
@click.option("-t", "--topic", required=True, metavar="NAME", help="The topic to read.")
@click.option(
    "--protocol",
    type=click.Choice(["classic", "consumer"]),
    default="classic",
    show_default=True,
    help="The group protocol; consumer is that of KIP-848.",
)
@click.option(
    "--era", type=click.Choice(["0.9"]), help="Speak as that release's consumer did, whatever the broker offers."
)
@click.option("-x", "--diagrams", is_flag=True, help="Every frame of every step as a diagram.")
@click.option(
    "--step",
    "only",
    type=click.IntRange(1, 8),
    multiple=True,
    metavar="N",
    help="Diagrams of this step alone; repeatable.",
)
@click.option(
    "--beats", type=click.IntRange(0, 1_000_000), default=2, metavar="N", show_default=True, help="How many heartbeats."
)
@click.option(
    "--interval",
    type=Duration(),
    default="3s",
    metavar="TIME",
    show_default=True,
    help="From one heartbeat to the next.",
)
@click.option("--stop", is_flag=True, help="Then fall silent past the session timeout, beat once more, and see.")
@click.option(
    "--session-timeout",
    type=Duration(),
    default="10s",
    metavar="TIME",
    show_default=True,
    help="What to ask for; consumers ask for 45 s.",
)
@click.option(
    "--assignor",
    "assignors",
    type=click.Choice(["range", "roundrobin"]),
    multiple=True,
    help="What to offer the group; range otherwise.",
)
@click.option("--instance-id", metavar="TEXT", help="Join as this static member.")
@click.option(
    "--from",
    "reset",
    type=click.Choice(["earliest", "latest"]),
    default="earliest",
    show_default=True,
    help="Where to read without a committed offset; consumers say latest unless told otherwise.",
)
@click.option(
    "--records",
    type=click.IntRange(0),
    default=3,
    metavar="N",
    show_default=True,
    help="Records shown of each partition.",
)
@click.option(
    "--retry", type=click.IntRange(0), default=0, metavar="N", help="Try all addresses N times more when none answers."
)
@click.option("--yes", is_flag=True, help="Join a group that has members: they rebalance.")
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", help="The output format.")
@click.option("--show-secrets", is_flag=True, help="Show passwords, tokens and other secrets.")
@partial(broker_options, patience=PATIENCE)
def command(
    brokers: str, group: str, topic: str, protocol: str, era: str | None, diagrams: bool, only: tuple[int, ...],
    beats: int, interval: int, stop: bool, session_timeout: int, assignors: tuple[str, ...], instance_id: str | None,
    reset: str, records: int, retry: int, yes: bool, output: str, show_secrets: bool, link: BrokerOptions,
) -> Exit:  # fmt: skip
    """Goes through a consumer's start: (1) bootstrap and metadata, (2) the coordinator, (3) join, (4) sync, (5)
    heartbeats, (6) committed offsets, (7) records; then it leaves. Each step is shown with its time and verdict, errors
    with what to do, and where a real client would hang. Nothing is committed, no topic is created."""
    from kwire.client.address import Address
    from kwire.client.consumer import ConsumerConfig
    from kwire.client.walk.settings import WalkSettings
    from kwire.client.walk.walk import Walk

    if max(interval, session_timeout) > DAY:
        raise click.UsageError("--interval and --session-timeout are at most a day")
    if era and protocol == "consumer":
        raise click.UsageError(f"--protocol consumer came long after {era}")
    options = ConsumerConfig(
        session_timeout_ms=session_timeout // MS, assignors=tuple(dict.fromkeys(assignors)) or ("range",),
        instance_id=instance_id, earliest=reset == "earliest",
    )  # fmt: skip
    waiting = _Waiting()
    walk = Walk(
        WalkSettings(
            Address.parse_all(brokers), group, topic, options, protocol=protocol, era=era, interval_ms=interval // MS,
            beats=beats, stop=stop, retry=retry, records=records, busy=yes, client_id=link.client_id,
            timeout=link.timeout, security=link.security,
        ),
        waits=waiting.show,
    )  # fmt: skip
    shown = _Shown(diagrams, only, show_secrets, link.security.echo)
    about = {"brokers": brokers, "group": group, "topic": topic, "protocol": protocol, "era": era}
    with waiting:
        return _document(walk, about, shown, waiting) if output == "json" else _told(walk, about, shown, waiting)


class _Shown:
    """Which steps' frames are drawn, and with what."""

    def __init__(self, everything: bool, only: tuple[int, ...], show_secrets: bool, echo: Echo) -> None:
        self.show_secrets, self.echo, self._only = show_secrets, echo, only
        self._any = everything

    def row(self, step: Step) -> dict[str, Any]:
        """The step as plain data."""
        row = step.row()
        return row if self.show_secrets else dict(self.echo.plain(row))

    def __contains__(self, number: int) -> bool:
        return number in self._only or (self._any and not self._only)


class _Waiting:
    """On a terminal, a line that says what is waited for, until it came."""

    def __init__(self) -> None:
        self._there = False

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self.clear()

    def show(self, what: str, seconds: float) -> None:
        if sys.stderr.isatty():
            self.clear()
            print(f"{what}: at most {seconds:g} s", end="", file=sys.stderr, flush=True)
            self._there = True

    def clear(self) -> None:
        if self._there:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        self._there = False


def _living(walk: Walk, waiting: _Waiting) -> Iterator[Step]:
    """The steps; whatever ends their telling, a closed pipe too, the group is left."""
    with closing(walk.steps()) as steps:
        for step in steps:
            waiting.clear()
            yield step


def _told(walk: Walk, about: dict[str, Any], shown: _Shown, waiting: _Waiting) -> Exit:
    """Each step as soon as it is over."""
    from kwire.cli.output import show, width
    from kwire.render.asked import frame_lines
    from kwire.render.walk import head_line, step_lines

    kind = f"as Kafka {about['era']}" if about["era"] else PROTOCOLS[about["protocol"]]
    show(head_line(about["brokers"], about["group"], about["topic"], kind, width()))
    start: int | None = None
    interrupted = False
    try:
        for step in _living(walk, waiting):
            start = step.time if start is None else start
            asked = [(exchange.name, exchange.took if exchange.answered else None) for exchange in step.exchanges]
            show(step_lines(shown.row(step), asked, start, width()))
            if step.number in shown:
                for exchange in step.exchanges:
                    for frame, data in exchange.frames():
                        lines = frame_lines(
                            frame, data, exchange.library, "text", width(), show_secrets=shown.show_secrets,
                            echo=shown.echo,
                        )  # fmt: skip
                        show([[], *lines])
                show([[]])
            sys.stdout.flush()
    except KeyboardInterrupt:
        interrupted = True
        waiting.clear()
    return _status(walk, interrupted)


def _document(walk: Walk, about: dict[str, Any], shown: _Shown, waiting: _Waiting) -> Exit:
    from kwire.render.jsonform import dumps

    rows: list[dict[str, Any]] = []
    interrupted = False
    try:
        rows += (_row(step, shown) for step in _living(walk, waiting))
    except KeyboardInterrupt:
        interrupted = True
        waiting.clear()
    print(dumps(about | {"failed": walk.failed, "interrupted": interrupted, "steps": rows}))
    return _status(walk, interrupted)


def _row(step: Step, shown: _Shown) -> dict[str, Any]:
    from kwire.render.asked import frame_record

    exchanges = []
    for exchange in step.exchanges:
        row: dict[str, Any] = {"api": exchange.api, "api_version": exchange.version, "time": exchange.time}
        row |= {"took_ns": exchange.took if exchange.answered else None, "client": exchange.client}
        row |= {"broker": exchange.broker, "request": None, "response": None}
        for frame, data in exchange.frames():
            record = frame_record(frame, data, exchange.library, show_secrets=shown.show_secrets, echo=shown.echo)
            row[frame.kind] = record if step.number in shown else record["body"]
        exchanges.append(row)
    return shown.row(step) | {"exchanges": exchanges}


def _status(walk: Walk, interrupted: bool) -> Exit:
    if not interrupted:
        return Exit.MALFORMED if walk.failed else Exit.OK
    said = f"; left group {walk.settings.group}" if walk.left else ""
    print(f"kwire: interrupted{said}", file=sys.stderr)
    return Exit.INTERRUPTED
