"""kwire broker: a Kafka in this process, for clients to work against and to fail against."""

from __future__ import annotations

import asyncio
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kwire.cli.broker_options import (
    Advertised,
    BrokerSettingParam,
    Era,
    ListenerText,
    NodeParam,
    TopicParam,
    UsersParam,
)
from kwire.cli.keylogs import keylog_output, written
from kwire.cli.outputs import PACKETS, form_of, output_option, packets_option
from kwire.errors import Exit

if TYPE_CHECKING:
    from kwire.broker.context import BrokerSettings
    from kwire.outputs import Output


@click.command()
@click.option("--host", default="127.0.0.1", metavar="ADDRESS", help="Where to listen; loopback unless told otherwise.")
@click.option("--port", type=click.IntRange(0, 65535), default=9092, help="Of the first node; 0 takes any free one.")
@click.option("--nodes", type=click.IntRange(1, 16), metavar="N", help="Brokers, on ports one after another.")
@click.option(
    "--node", "setups", type=NodeParam(), multiple=True, metavar="ID[,port=N][,rack=NAME]",
    help="A node of its own; repeatable, instead of --nodes. With racks, consumers are sent to replicas in theirs.",
)  # fmt: skip
@click.option(
    "--listener", "listeners", type=ListenerText(), multiple=True,
    metavar="[NAME=]PROTOCOL://HOST:PORT[,advertise=HOST:PORT]",
    help="Of every node, the ports in a row; repeatable, instead of --host and --port. PLAINTEXT, SSL, SASL_PLAINTEXT, "
    "SASL_SSL.",
)  # fmt: skip
@click.option(
    "--advertise", type=Advertised(), metavar="HOST[:PORT]", help="What clients are told instead of --host and --port."
)
@click.option(
    "--topic", "topics", type=TopicParam(), multiple=True, metavar="NAME[:PARTITIONS]",
    help="Made at the start; repeatable. Others are created when they are first named.",
)  # fmt: skip
@click.option("--partitions", type=click.IntRange(1, 1000), default=1, metavar="N", help="Of a topic created so.")
@click.option("--fault", "faults", multiple=True, metavar="RULE", help="Fail on purpose, WHO:ACTION; repeatable.")
@click.option(
    "--sasl", "users", type=UsersParam(), multiple=True, metavar="USER:PASSWORD|@FILE", envvar="KWIRE_SASL",
    help="Who may log in, with PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; repeatable. @FILE, and KWIRE_SASL in the "
    "environment, hold such lines.",
)  # fmt: skip
@click.option(
    "--super-user", "supers", multiple=True, metavar="NAME",
    help="Who may do everything, while others need ACLs; repeatable. ANONYMOUS is who has not logged in.",
)  # fmt: skip
@click.option(
    "--config", "config", type=BrokerSettingParam(), multiple=True, metavar="NAME=VALUE",
    help="A broker's configuration, as message.max.bytes=1000; repeatable. What has no effect here is refused.",
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
@click.option(
    "--data", type=click.Path(file_okay=False), metavar="DIR",
    help="Keep topics, records and offsets in DIR, in Kafka's own format, and go on from there.",
)  # fmt: skip
@click.option(
    "--control", type=click.Path(), metavar="PATH", help="A socket, made at PATH, by which kwire fault changes faults."
)
@click.option(
    "--ready-file", "ready", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="Is there while clients can connect, and says where, in JSON.",
)  # fmt: skip
@click.option("--events", type=click.Choice(["text", "json"]), default="text", help="json: a line each, on stdout.")
@click.option("-q", "--quiet", is_flag=True, help="No line for each connection and group event.")
def command(
    host: str, port: int, nodes: int | None, setups: tuple[Any, ...], listeners: tuple[Any, ...],
    advertise: tuple[str, int] | None, topics: tuple[tuple[str, int], ...], partitions: int, faults: tuple[str, ...],
    users: tuple[tuple[tuple[str, str], ...], ...], supers: tuple[str, ...], config: tuple[tuple[str, str], ...],
    tls: bool, certificate: Output | None, keylog: Output | None, capture: Output | None, era: tuple[int, int] | None,
    rebalance_delay: int, capture_limit: int, log_limit: int, data: str | None, control: str | None,
    ready: Path | None, events: str, quiet: bool,
) -> int:  # fmt: skip
    """Speaks Kafka to real clients, in memory unless --data says otherwise, and fails where it is told to. Ctrl-C ends
    it.

    \b
    kwire broker --topic orders:3 --capture said.pcapng
    kwire broker --fault Heartbeat:error=UNKNOWN_MEMBER_ID,after=5,times=1
    kwire broker --nodes 3 --fault coordinator:move,after=20
    kwire broker --nodes 3 --fault Produce,topic=orders:down=5s,after=100
    kwire broker --node 1,rack=a --node 2,rack=b --config default.replication.factor=2

    A fault is WHO:ACTION. WHO is an API, several with +, coordinator, leader or any; then client=, group=, topic=,
    node=, version= to say whose. Actions, several with a comma:

    \b
    error=NAME      that error            drop      no answer (drop=after: carried out)
    delay=2s        so much later         cut       connection closed (cut=after: carried out)
    throttle=2s     says ThrottleTimeMs   short=20  only so many bytes of the answer
    unsupported     UNSUPPORTED_VERSION   flip=3    so many bytes of the answer wrong
    versions=0-3    serves only these     forget    group or transaction forgotten
    pause=10s       node says nothing     expire    session or transaction over
    down=5s         node down, others     move      coordinator or leader moves on
                    lead meanwhile        loading=2s   coordinator loads the group
    half-open       connection neither    advertise=HOST:PORT   sends clients there
                    heard nor closed
    after=N times=N chance=0.1            when

    error= changes the answer alone: after Heartbeat:error=UNKNOWN_MEMBER_ID the member is still in its group, after
    Heartbeat:expire it is not. coordinator:advertise changes what FindCoordinator says, leader:advertise what Metadata
    says, advertise both.
    """
    if setups and nodes is not None:
        raise click.UsageError("--nodes counts nodes and --node names them: give one of them")
    if capture is not None:
        form_of(capture.path, PACKETS, None, "pcapng")
    from kwire.broker.context import BrokerLimits, BrokerSettings, MiB
    from kwire.broker.nodes import setups_of
    from kwire.broker.static_configs import configured
    from kwire.cli.broker_run import BrokerRun, run
    from kwire.coordinator.types import GroupSettings

    groups = GroupSettings(era=era or (4, 3), group_initial_rebalance_delay_ms=rebalance_delay)
    settings = BrokerSettings(
        host=host, port=port, setups=setups_of(setups or nodes or 1), listeners=listeners, advertise=advertise,
        topics=topics, partitions=partitions, era=era,
        users=tuple(user for found in users for user in found), tls=tls,
        super_users=supers or None, data=data,
        groups=groups, limits=BrokerLimits(log=log_limit * MiB, capture=capture_limit * MiB),
    )  # fmt: skip
    settings = configured(settings, dict(config))
    _know_what_is_open(settings)
    if not settings.users and any(listener.sasl for listener in settings.all_listeners):
        raise click.UsageError("a listener with SASL needs --sasl, which says who may log in")
    with written(keylog, any(listener.tls for listener in settings.all_listeners)) as log:
        options = BrokerRun(faults, certificate, capture, quiet, log, control, ready, events == "json")
        asyncio.run(run(settings, options))
    return Exit.OK


def _know_what_is_open(settings: BrokerSettings) -> None:
    """Says which ports are open to all networks; clients must be told another address then. Raises UsageError."""
    from kwire.broker.nodes import ANY_ADDRESS

    for listener in settings.all_listeners:
        if listener.host not in ANY_ADDRESS:
            continue
        who = "who logs in" if listener.sasl else "anybody there"
        where = f"port {listener.port}" if listener.port else "a port"
        opened = (
            f"{listener.host or 'no host'} opens {where} to every network of this machine, and {who} may use the broker"
        )
        if listener.advertised is None:
            raise click.UsageError(
                f"{opened}; --advertise HOST says under which name clients reach it (--advertise "
                f"{socket.gethostname()}, or --advertise localhost from a container)"
            )
        print(f"kwire: {opened}", file=sys.stderr)
