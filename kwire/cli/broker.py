"""kwire broker: a Kafka in this process, for clients to work against and to fail against."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kwire.cli.keylogs import keylog_output, written
from kwire.cli.outputs import PACKETS, form_of, output_option, packets_option
from kwire.errors import Exit, KwireError, OutputError

if TYPE_CHECKING:
    from kwire.broker.context import Happening, Settings
    from kwire.broker.server import Server
    from kwire.outputs import Output


class Topic(click.ParamType[tuple[str, int]]):
    """NAME or NAME:PARTITIONS."""

    name = "topic"

    def convert(
        self, value: str | tuple[str, int], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value
        name, _, count = value.partition(":")
        if count and not (count.isdecimal() and 0 < int(count) <= 10_000):
            self.fail(f"{count} is no number of partitions", param, ctx)
        return name, int(count or 1)


class Users(click.ParamType[tuple[tuple[str, str], ...]]):
    """USER:PASSWORD, or @FILE with such lines; in the environment such lines too."""

    name = "users"
    envvar_list_splitter = "\n"

    def convert(
        self, value: str | tuple[tuple[str, str], ...], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[tuple[str, str], ...]:
        if isinstance(value, tuple):
            return value
        lines = [value]
        if value.startswith("@"):
            try:
                lines = [line for line in Path(value[1:]).read_text("utf-8").splitlines() if line.strip()]
            except (OSError, ValueError) as error:
                why = error.strerror if isinstance(error, OSError) else "is not UTF-8"
                self.fail(f"{value[1:]}: {why}", param, ctx)
        found = []
        for number, line in enumerate(lines, 1):
            name, colon, password = line.partition(":")
            if not (name and colon and password):  # the line itself may be a password
                where = f"{value[1:]}, line {number}: " if value.startswith("@") else ""
                self.fail(f"{where}write USER:PASSWORD", param, ctx)
            found.append((name, password))
        return tuple(found)


class Era(click.ParamType[tuple[int, int]]):
    """A Kafka release, as 4.3."""

    name = "release"

    def convert(
        self, value: str | tuple[int, int], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value
        parts = value.split(".")
        if len(parts) < 2 or not all(part.isdecimal() for part in parts):
            self.fail(f"{value} is no release; write 4.3, 3.9 or 0.11", param, ctx)
        from kwire.schema.registry import builtin

        release = int(parts[0]), int(parts[1])
        known = builtin().releases()
        if release not in known:
            majors = [[one for one in known if one[0] == major] for major in dict(known)]
            spans = ", ".join(_span(same[0], same[-1]) for same in majors)
            self.fail(f"kwire knows no Kafka {value}; there are {spans}", param, ctx)
        return release


def _span(first: tuple[int, int], last: tuple[int, int]) -> str:
    low, high = (f"{major}.{minor}" for major, minor in (first, last))
    return low if low == high else f"{low} to {high}"


@click.command()
@click.option("--host", default="127.0.0.1", metavar="ADDRESS", help="Where to listen; loopback unless told otherwise.")
@click.option("--port", type=click.IntRange(0, 65535), default=9092, help="Of the first node; 0 takes any free one.")
@click.option(
    "--nodes", type=click.IntRange(1, 16), default=1, metavar="N", help="Brokers, on ports one after another."
)
@click.option(
    "--topic", "topics", type=Topic(), multiple=True, metavar="NAME[:PARTITIONS]",
    help="Made at the start; repeatable. Others are created when they are first named.",
)  # fmt: skip
@click.option("--partitions", type=click.IntRange(1, 1000), default=1, metavar="N", help="Of a topic created so.")
@click.option("--fault", "faults", multiple=True, metavar="RULE", help="Fail on purpose, as below; repeatable.")
@click.option(
    "--sasl", "users", type=Users(), multiple=True, metavar="USER:PASSWORD|@FILE", envvar="KWIRE_SASL",
    help="Who may log in, with PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; repeatable. @FILE, and KWIRE_SASL in the "
    "environment, hold such lines.",
)  # fmt: skip
@click.option(
    "--super-user", "supers", multiple=True, metavar="NAME",
    help="Who may do everything, while others need ACLs; repeatable. ANONYMOUS is who has not logged in.",
)  # fmt: skip
@click.option("--tls", is_flag=True, help="TLS with a certificate made on the spot.")
@output_option(
    "--certificate", name="certificate",
    purpose="With --tls, where the certificate goes that clients must trust; kwire-broker.pem.",
)  # fmt: skip
@keylog_output
@packets_option(
    "--capture", name="capture",
    purpose="Write what is said as pcapng or, x.pcap, as pcap; the plain text also with --tls. Readable at any time.",
)  # fmt: skip
@click.option("--era", type=Era(), metavar="RELEASE", help="Serve what this Kafka release serves, as 3.9; else all.")
@click.option(
    "--rebalance-delay", type=click.IntRange(0), default=0, metavar="MS",
    help="group.initial.rebalance.delay.ms; 3000 in Kafka, 0 here.",
)  # fmt: skip
@click.option(
    "--capture-limit", type=click.IntRange(1), default=1024, metavar="MB",
    help="How large the capture may grow; then it ends, and a line says so. 1024.",
)  # fmt: skip
@click.option(
    "--log-limit", type=click.IntRange(1), default=256, metavar="MB",
    help="What all records together may take; the oldest go first. 256.",
)  # fmt: skip
@click.option("-q", "--quiet", is_flag=True, help="No line for each connection and group event.")
def command(
    host: str, port: int, nodes: int, topics: tuple[tuple[str, int], ...], partitions: int, faults: tuple[str, ...],
    users: tuple[tuple[tuple[str, str], ...], ...], supers: tuple[str, ...], tls: bool, certificate: Output | None,
    keylog: Output | None, capture: Output | None, era: tuple[int, int] | None, rebalance_delay: int,
    capture_limit: int, log_limit: int, quiet: bool,
) -> int:  # fmt: skip
    """Speaks Kafka to real clients, keeps everything in memory, and fails where it is told to. Ctrl-C ends it.

    \b
    kwire broker --topic orders:3 --capture said.pcapng
    kwire broker --fault Heartbeat:error=UNKNOWN_MEMBER_ID,after=5,times=1
    kwire broker --nodes 3 --fault coordinator:move,after=20

    A fault is WHO:ACTION. WHO is an API, several with +, coordinator, leader or any; then client=, group=, topic=,
    node=, version= to say whose. Actions, several with a comma:

    \b
    error=NAME      that error            drop      no answer (drop=after: carried out)
    delay=2s        so much later         cut       connection closed (cut=after: carried out)
    throttle=2s     says ThrottleTimeMs   short=20  only so many bytes of the answer
    unsupported     UNSUPPORTED_VERSION   flip=3    so many bytes of the answer wrong
    versions=0-3    serves only these     forget    group or transaction forgotten
    advertise=HOST:PORT  sends clients    expire    session or transaction over
                    there                 move      coordinator or leader moves on
    pause=10s       node says nothing     half-open  connection neither heard nor closed
    after=N times=N chance=0.1            when

    error= changes the answer alone: after Heartbeat:error=UNKNOWN_MEMBER_ID the member is still in its group, after
    Heartbeat:expire it is not. coordinator:advertise changes what FindCoordinator says, leader:advertise what Metadata
    says, advertise both.
    """
    if capture is not None:
        form_of(capture.path, PACKETS, None, "pcapng")
    from kwire.broker.context import Limits, MiB, Settings
    from kwire.coordinator.types import Settings as GroupSettings

    groups = GroupSettings(era=era or (4, 3), group_initial_rebalance_delay_ms=rebalance_delay)
    settings = Settings(
        host=host, port=port, nodes=nodes, topics=topics, partitions=partitions, era=era,
        users=tuple(user for found in users for user in found), tls=tls,
        super_users=supers or None,
        groups=groups, limits=Limits(log=log_limit * MiB, capture=capture_limit * MiB),
    )  # fmt: skip
    with written(keylog, tls) as log:
        asyncio.run(_run(settings, faults, certificate, capture, quiet, log))
    return Exit.OK


async def _run(
    settings: Settings,
    rules: tuple[str, ...],
    certificate: Output | None,
    capture: Output | None,
    quiet: bool,
    log: Path | None,
) -> None:
    from kwire.broker.faults import Faults
    from kwire.broker.process import settle
    from kwire.broker.recorder import Recorder
    from kwire.broker.server import Server

    faults = Faults()
    for rule in rules:
        note = faults.add(rule).note
        if note:
            print(f"kwire: fault {rule}: {note}", file=sys.stderr)
    context, pem = None, ""
    if settings.tls:
        from kwire.broker.tls import context as make
        from kwire.outputs import Output

        certificate = certificate or Output("kwire-broker.pem")
        spare_keys(certificate.path)
        context, pem = make(settings.host)
        if log is not None:
            context.keylog_filename = str(log)
    server = Server(settings, faults, Recorder(capture, limit=settings.limits.capture) if capture else None, context)
    if not quiet:
        server.state.watching.append(_line)
    try:
        await server.start()
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        raise KwireError(f"{error.strerror}; --port 0 takes a free one") from error
    try:
        if certificate is not None and context is not None:
            with certificate as file:
                file.write(pem.encode())
    except BaseException:
        await server.stop()
        raise
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with contextlib.suppress(NotImplementedError):  # not everywhere can a loop do that
            server.loop.add_signal_handler(number, stop.set)
    settle(server.loop)
    _greet(server, certificate, capture)
    try:
        await stop.wait()
    finally:
        server.state.watching.clear()
        await server.stop()
        seen = len(server.state.requests)
        more = "+" if seen == server.state.requests.maxlen else ""
        print(f"kwire: {seen:,}{more} request{'s' * (seen != 1)}", file=sys.stderr)


def spare_keys(path: Path) -> None:
    """Raises OutputError for a file with a private key: who names one wants it used, not overwritten."""
    if path.is_file() and b"PRIVATE KEY-----" in path.read_bytes()[:1_000_000]:
        raise OutputError(str(path), "holds a private key; kwire makes its own certificate, and would write it here")


def _greet(server: Server, certificate: Output | None, capture: Output | None) -> None:
    """What a client must know, on stdout, so that a script can wait for it."""
    for node in server.state.cluster.nodes.values():
        print(f"node {node.id} listens on {node}")
    if server.settings.tls:
        print(f"clients must trust {certificate}")
    if capture:
        print(f"capture in {capture}")
    sys.stdout.flush()


def _line(happening: Happening) -> None:
    """One line on stderr; who and what come from the wire."""
    from kwire.render.lines import clean

    if happening.kind == "listening":
        return
    moment = time.strftime("%H:%M:%S", time.localtime(happening.time // 1_000_000_000))
    fraction = happening.time // 1_000_000 % 1000
    text = clean(f"{happening.kind:<10} {happening.who}  {happening.text}")
    with contextlib.suppress(BrokenPipeError):
        print(f"{moment}.{fraction:03} {text}", file=sys.stderr, flush=True)
