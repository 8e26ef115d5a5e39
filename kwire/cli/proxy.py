"""kwire proxy: between clients and a cluster, for those who cannot capture."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

import click

from kwire.cli.brokers import FILE
from kwire.cli.captures import exchange_options, fewer_collections
from kwire.cli.detecting import Detecting, detector_options
from kwire.cli.exchange_output import Shown, shown_options
from kwire.cli.filters import Filter
from kwire.cli.following import Following, patient
from kwire.cli.keylogs import SECRETS, written
from kwire.cli.monitoring import Monitoring, Monitors, monitoring_options
from kwire.cli.notices import Notices
from kwire.cli.outputs import PACKETS, form_of, output_option, packets_option
from kwire.cli.wanted import Wanted
from kwire.errors import Exit, KwireError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator
    from pathlib import Path

    from kwire.analyze.live import LiveDoctor
    from kwire.outputs import Output
    from kwire.proxy.tap import Feed
    from kwire.proxy.types import Notice
    from kwire.session.reader import Settings

SHOWN = 64 << 20  # bytes of frames that are not whole yet and shall be shown; what is more is forwarded and not shown
SWITCH = 0.0005  # seconds that the forwarding thread waits at most for the one that shows
SAID = ("listening", "refused", "unreachable", "fault", "capture", "bug")  # connections are seen by their exchanges


@click.command()
@click.argument("upstream")
@click.option(
    "--listen", default="127.0.0.1:19092", metavar="HOST:PORT", show_default=True,
    help="The first port, with which clients begin; brokers get those behind it. Loopback unless told otherwise; "
    "port 0 takes any free ones.",
)  # fmt: skip
@click.option("--advertise", metavar="HOST", help="Under which name clients reach this machine; that of --listen.")
@packets_option(
    "--capture", name="capture",
    purpose="Write what is said on both sides as pcapng or, x.pcap, as pcap, in plain; secrets are blanked without "
    "--show-secrets. Readable at any time.",
)  # fmt: skip
@click.option(
    "--capture-limit", type=click.IntRange(1), default=1024, metavar="MB",
    help="How large the capture may grow; then it ends, and a line says so. 1024.",
)  # fmt: skip
@click.option("--max-connections", "most", type=click.IntRange(1), default=1000, metavar="N", show_default=True,
              help="How many clients' connections there may be at once.")  # fmt: skip
@click.option("--tls", is_flag=True, help="TLS towards clients, with --cert or a certificate made on the spot.")
@click.option("--cert", type=FILE, help="With --tls, the certificate that clients are shown (PEM).")
@click.option("--key", type=FILE, help="Its private key, when it is not in the same file.")
@output_option(
    "--certificate", name="certificate",
    purpose="With --tls and no --cert, where the certificate goes that clients must trust; kwire-proxy.pem.",
)  # fmt: skip
@click.option("--upstream-tls", is_flag=True, help="TLS towards brokers.")
@click.option(
    "--ca", type=FILE, help="Believe the brokers' certificates that these sign (PEM); the system's otherwise."
)
@click.option("--client-cert", type=FILE, help="The proxy's own certificate towards brokers (PEM).")
@click.option("--client-key", type=FILE, help="Its private key, when it is not in the same file.")
@click.option("--insecure", is_flag=True, help="With --upstream-tls, any certificate, whatever name it bears.")
@output_option(
    "--keylog", name="keylog", private=True, keeps=True,
    purpose=f"With --tls or --upstream-tls, {SECRETS} Both sides.",
)  # fmt: skip
@click.option(
    "--fault", "faults", multiple=True, metavar="RULE",
    help="Fail on purpose, as kwire broker --help says, without forget, move, expire, loading and down; repeatable.",
)  # fmt: skip
@click.option(
    "--control", type=click.Path(), metavar="PATH",
    help="A Unix socket, made here, through which kwire fault changes the rules.",
)  # fmt: skip
@click.option("--stats", is_flag=True, help="Counts and times, refreshed in place, instead of lines.")
@click.option(
    "--doctor", is_flag=True, help="What kwire doctor finds, as it becomes certain, and all of it at the end."
)
@detector_options
@click.option("-q", "--quiet", is_flag=True, help="Show no exchanges.")
@monitoring_options
@shown_options
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", help="The output format.")
@exchange_options
def command(
    upstream: str, listen: str, advertise: str | None, capture: Output | None, capture_limit: int, most: int,
    tls: bool, cert: Path | None, key: Path | None, certificate: Output | None, upstream_tls: bool, ca: Path | None,
    client_cert: Path | None, client_key: Path | None, insecure: bool, keylog: Output | None,
    faults: tuple[str, ...], control: str | None, stats: bool, doctor: bool, detecting: Detecting, quiet: bool,
    monitoring: Monitoring, shown: Shown, output: str, wanted: Wanted,
) -> int:  # fmt: skip
    """Forwards to the cluster of UPSTREAM (host:port, several with commas) and shows the traffic. Every broker gets a
    port of its own, and clients are told these instead of the brokers' addresses. Ctrl-C ends it.

    \b
    kwire proxy broker:9092                  clients then use 127.0.0.1:19092
    kwire proxy broker:9092 --capture said.pcapng --errors
    kwire proxy broker:9092 --fault Fetch:delay=2s,chance=0.1
    kwire proxy broker:9093 --upstream-tls --ca cluster.pem     in plain here

    Logins pass through untouched. Mechanisms that bind to the TLS channel (SCRAM-SHA-256-PLUS) cannot.
    """
    if not tls and (cert or certificate):
        raise click.UsageError("--cert and --certificate belong to --tls")
    if stats + doctor + quiet > 1:
        raise click.UsageError("one of --stats, --doctor and --quiet")
    detecting.needs(doctor)
    diagnosed = _doctor(detecting) if doctor else None
    if (key and not cert) or (client_key and not client_cert):
        raise click.UsageError("--key belongs to --cert, and --client-key to --client-cert")
    if not upstream_tls and (ca or client_cert or insecure):
        raise click.UsageError("--ca, --client-cert and --insecure belong to --upstream-tls")
    if capture is not None:
        form_of(capture.path, PACKETS, None, "pcapng")
    from kwire.broker.process import map_large_pieces
    from kwire.client.address import Address
    from kwire.client.security import Security
    from kwire.proxy.handle import Proxy
    from kwire.proxy.tap import Feed
    from kwire.proxy.types import MiB, ProxyLimits, ProxySettings

    how = "stats" if stats else "quiet" if quiet else "lines"
    settings = ProxySettings(
        tuple(Address.parse_all(upstream)), _listen(listen), advertise,
        ProxyLimits(connections=most, capture=capture_limit * MiB),
    )  # fmt: skip
    feed, shows = Feed(), not quiet or monitoring.wanted
    context, pem = _towards_clients(settings.listen.host, cert, key) if tls else (None, "")
    outward = Security(True, ca, client_cert, client_key, insecure).context() if upstream_tls else None
    if pem:
        from kwire.cli.broker_run import spare_keys
        from kwire.outputs import Output as Written

        certificate = certificate or Written("kwire-proxy.pem")
        spare_keys(certificate.path)
        with certificate as file:
            file.write(pem.encode())
        print(f"kwire: clients must trust {certificate}", file=sys.stderr)
    proxy = Proxy(
        settings=settings, faults=faults, capture=capture, show_secrets=shown.show_secrets,
        feed=feed if shows else None, tls=context, upstream_tls=outward, control=control,
    )  # fmt: skip
    proxy.seen = None
    map_large_pieces()
    told = NoticePrinter(Notices(sys.stderr))
    proxy.watching.append(told)
    chosen = Filter(wanted.selection(time.time_ns, lambda: sys.maxsize), wanted)
    with _ending_with_signals(feed), written(keylog, tls or upstream_tls, "--tls or --upstream-tls") as log:
        for each in (context, outward):
            if each is not None and log is not None:
                each.keylog_filename = str(log)
        grave = False
        with contextlib.closing(told), monitoring.started() as monitors, proxy.start():
            if shows:
                grave = _show(feed, chosen, monitors, how, diagnosed, shown, output)
            while not feed.closed:
                time.sleep(0.1)
    if feed.dropped:
        print(f"kwire: {feed.dropped:,} packets came too fast to be shown", file=sys.stderr)
    if not quiet:
        chosen.say()
    return Exit.MALFORMED if grave else Exit.OK


def _show(
    feed: Feed, chosen: Filter, monitors: Monitors, how: str, doctor: LiveDoctor | None, shown: Shown, output: str
) -> bool:
    """Until the feed ends; whether a finding is an error. how, without a doctor: lines, stats or quiet."""
    from kwire.session.reader import Reader

    fewer_collections()
    settings = shown_settings()
    sys.setswitchinterval(SWITCH)
    if doctor is not None:
        reader = Reader("proxy", patient(settings), tracking=True, ended=monitors.beside(doctor.close))
        following = Following(feed.blocks(), reader, chosen)
        following.told = monitors.add
        return following.show_diagnosis(doctor, output)
    reader = Reader("proxy", settings, tracking=True, ordered=False, ended=monitors.close)
    following = Following(feed.blocks(), reader, chosen)
    following.told = monitors.add
    if how == "stats":
        following.show_stats()
    elif how == "quiet":
        following.run()
    else:
        following.show(output, shown)
    return False


def shown_settings() -> Settings:
    """How what is shown is read."""
    from kwire.session.reader import Settings

    return Settings(memory=SHOWN)


def _doctor(detecting: Detecting) -> LiveDoctor:
    from kwire.analyze.live import LiveDoctor

    return LiveDoctor(*detecting.chosen())


def _towards_clients(host: str, cert: Path | None, key: Path | None) -> tuple[ssl.SSLContext, str]:
    """How the proxy speaks TLS with clients, and the certificate that they must trust if it was made for it."""
    import ssl

    if cert is None:
        from kwire.broker.tls import context

        return context(host)
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        made.load_cert_chain(cert, key, password="")
    except ssl.SSLError as error:
        raise KwireError(f"{cert}: no certificate with its key, unencrypted: {error.reason}") from error
    return made, ""


def _listen(text: str) -> Any:
    """HOST:PORT, where the port may be 0."""
    from kwire.client.address import Address

    host, colon, port = text.rpartition(":")
    if colon and port == "0":
        return Address(host.strip("[]"), 0)
    return Address.parse(text)


@contextlib.contextmanager
def _ending_with_signals(feed: Feed) -> Iterator[None]:
    """The first one ends the proxy with all that was said shown, the second one at once."""

    def end(number: int, _: Any) -> None:
        signal.signal(number, signal.SIG_DFL)
        feed.closed = True  # no lock: whoever waits looks soon

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    for number, known in before.items():
        if known is not signal.SIG_IGN:
            signal.signal(number, end)
    try:
        yield
    finally:
        for number, known in before.items():
            signal.signal(number, known)


class NoticePrinter:
    """What a person sees of the notices, a line each. A broker that stays unreachable is two: when it begins, and how
    often it was tried when it is over."""

    def __init__(self, notices: Notices) -> None:
        self._notices = notices
        self._away: dict[str, tuple[Notice, int]] = {}  # and how many more times, by broker

    def __call__(self, notice: Notice) -> None:
        if notice.kind == "connected":
            self._over(notice.text.removeprefix("to "))
        if notice.kind == "unreachable":
            before, more = self._away.get(notice.who, (None, 0))
            if before == notice:
                self._away[notice.who] = notice, more + 1
                return
            self._over(notice.who)
            self._away[notice.who] = notice, 0
        if notice.kind in SAID:
            self._say(notice)

    def close(self) -> None:
        for who in list(self._away):
            self._over(who)
        self._notices.close()

    def _over(self, who: str) -> None:
        notice, more = self._away.pop(who, (None, 0))
        if notice is not None and more:
            self._say(notice, f" ({more:,} more time{'s' * (more != 1)})")

    def _say(self, notice: Notice, more: str = "") -> None:
        """Who and what come from the wire."""
        from kwire.render.lines import clean

        self._notices.put(clean(f"kwire: {notice.kind}: {notice.who} {notice.text}") + more)
