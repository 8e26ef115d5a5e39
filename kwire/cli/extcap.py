"""kwire extcap: an interface for Wireshark and tshark, "Kafka (kwire)", whose packets tell what kwire reads in them.

Wireshark asks what there is by options (https://www.wireshark.org/docs/wsdg_html_chunked/ChCaptureExtcap.html), then
starts it with a pipe, into which pcapng goes. A packet waits until its request is answered, for a moment at most.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from kwire import __version__
from kwire.errors import Exit, KwireError

if TYPE_CHECKING:
    from kwire.capture.packets import Packets
    from kwire.session.batch import ExchangeBatch
    from kwire.session.reader import Reader

INTERFACE = "kwire"
MOST_WAITING = 50_000  # packets
FOLDERS = ("Personal Extcap path:", "Extcap path:")  # as tshark -G folders names them, the better one first
PORT = "9092"


@click.command()
@click.option("--install", is_flag=True, help="Make Wireshark and tshark find it, where they look for such interfaces.")
@click.option("--folder", type=click.Path(path_type=Path), metavar="DIR", help="With --install, put it there.")
@click.option("--extcap-interfaces", "listing", is_flag=True, help="Wireshark asks: which interfaces there are.")
@click.option("--extcap-dlts", "links", is_flag=True, help="Wireshark asks: with which link types.")
@click.option("--extcap-config", "config", is_flag=True, help="Wireshark asks: with which settings.")
@click.option("--capture", is_flag=True, help="Wireshark says: begin, into --fifo.")
@click.option("--extcap-version", expose_value=False, help="Wireshark says its version.")
@click.option("--extcap-interface", expose_value=False, help="Wireshark says which interface.")
@click.option("--extcap-capture-filter", "filter", help="Wireshark says the capture filter, in place of --ports.")
@click.option("--fifo", type=click.Path(), metavar="PATH", help="Where the packets go.")
@click.option("--device", default="any", metavar="NAME", show_default=True, help="Where to listen.")
@click.option(
    "--ports", default=PORT, metavar="PORT,…", show_default=True, help="The brokers' ports; empty for all packets."
)
@click.option("--read", "path", type=click.Path(), metavar="FILE", help="Packets of a capture instead of a device's.")
@click.option("--keylog", metavar="FILE", help="A key log, with which TLS is read.")
@click.option("--delay", type=click.IntRange(0, 60_000), default=600, metavar="MS", show_default=True,
              help="How long a request's packets wait for the answer, which their comment tells.")  # fmt: skip
def command(
    install: bool, folder: Path | None, listing: bool, links: bool, config: bool, capture: bool,
    filter: str | None, fifo: str | None, device: str, ports: str, path: str | None, keylog: str | None, delay: int,
) -> int:  # fmt: skip
    """Gives Wireshark and tshark an interface "Kafka (kwire)": packets of a device, or of a capture, with a comment on
    each that says which Kafka messages are in it, what about, how they ended and how long it took. It reads every
    version of every API, also those that Wireshark does not know.

    \b
    kwire extcap --install
    tshark -i kwire -T fields -e frame.number -e frame.comment
    """
    if install:
        return _install(folder)
    if listing:
        print(f"extcap {{version={__version__}}}{{help=https://www.wireshark.org}}")
        print(f"interface {{value={INTERFACE}}}{{display=Kafka (kwire)}}")
    elif links:
        print("dlt {number=1}{name=EN10MB}{display=Packets with comments}")
    elif config:
        sys.stdout.writelines(f"{line}\n" for line in _config())
    elif capture:
        if fifo is None:
            raise click.UsageError("--capture needs --fifo PATH")
        with open(fifo, "wb", buffering=0) as file:
            _capture(file, device, filter, ports, path, keylog, delay * 1_000_000)
    else:
        raise click.UsageError("this is started by Wireshark; kwire extcap --install makes it known there")
    return Exit.OK


def _config() -> Iterator[str]:
    yield "arg {number=0}{call=--device}{display=Interface}{tooltip=Where to listen}{type=selector}"
    yield "arg {number=1}{call=--ports}{display=Brokers' ports}{tooltip=With commas; empty for all}{type=string}" + (
        f"{{default={PORT}}}"
    )
    yield "arg {number=2}{call=--read}{display=Or a capture}{tooltip=Its packets, with comments}{type=fileselect}"
    yield "arg {number=3}{call=--keylog}{display=TLS key log}{type=fileselect}"
    yield "arg {number=4}{call=--delay}{display=Wait for answers, ms}{type=unsigned}{range=0,60000}{default=600}"
    yield "value {arg=0}{value=any}{display=all interfaces}{default=true}"
    try:
        from kwire.capture.live import interfaces

        names = [known.name for known in interfaces()]
    except Exception:  # scapy finds none: all of them it is
        names = []
    for name in names:
        yield f"value {{arg=0}}{{value={name}}}{{display={name}}}"


def _capture(
    file: BinaryIO, device: str, filter: str | None, ports: str, path: str | None, keylog: str | None, delay: int
) -> None:
    from kwire.capture.files import open_capture
    from kwire.cli.keylogs import key_log
    from kwire.session.reader import Reader, Settings

    try:
        wanted = tuple(int(port) for port in ports.replace(",", " ").split())
    except ValueError:
        raise click.UsageError(f"--ports are numbers with commas, and not {ports}") from None
    keys = key_log((keylog,) if keylog else (), path is None)
    reader = Reader("kwire", Settings(keys=keys), tracking=True, ordered=False)
    annotated = Annotated(file, reader, delay)
    if path is not None:
        annotated.run(open_capture(path).blocks())
        return
    from kwire.capture.live import Live, expression
    from kwire.capture.tls.protection import load

    live = Live((device,), filter or (expression(wanted, ()) if wanted else ""))
    load()
    live.drop_privileges()
    try:
        annotated.run(live.blocks())
    finally:
        live.close()


class Annotated:
    """Packets, read and written with comments. delay: ns of the packets' time for which one waits at most."""

    def __init__(self, file: BinaryIO, reader: Reader, delay: int) -> None:
        from kwire.capture.save import PcapngWriter
        from kwire.render.comments import Comments

        self._writer, self._reader, self._delay = PcapngWriter(file), reader, delay
        self._comments = Comments()
        self._waiting: deque[tuple[int, int, bytes, int, int]] = deque()

    def run(self, blocks: Iterable[Packets]) -> None:
        """Until there are no more, or nobody reads."""
        for packets in blocks:
            now = int(packets.time.max()) if len(packets) else time.time_ns()
            self._note(self._reader.feed(packets) if len(packets) else self._reader.tick(now))
            for at, number in enumerate(packets.number.tolist()):
                start = int(packets.start[at])
                data = bytes(packets.buffer[start : start + int(packets.captured[at])])
                self._waiting.append(
                    (number, int(packets.time[at]), data, int(packets.length[at]), int(packets.link[at]))
                )
            self._write(now - self._delay)
        self._note(self._reader.finish())
        self._write(None)

    def _note(self, batches: Iterable[ExchangeBatch]) -> None:
        for batch in batches:
            for exchange in batch:
                self._comments.add(exchange)

    def _write(self, until: int | None) -> None:
        """The packets up to a time; all of them without one."""
        waiting = self._waiting
        while waiting and (until is None or waiting[0][1] <= until or len(waiting) > MOST_WAITING):
            number, moment, data, length, link = waiting.popleft()
            self._writer.write(moment, data, length, link, comment=self._comments.take(number))


def _install(folder: Path | None) -> int:
    """Writes a script that calls this kwire."""
    from kwire.outputs import Output

    place = folder or _folder()
    script = place / ("kwire.bat" if os.name == "nt" else "kwire")
    call = f'"{sys.executable}" -m kwire extcap'
    lines = f"@echo off\r\n{call} %*\r\n" if os.name == "nt" else f'#!/bin/sh\nexec {call} "$@"\n'
    try:
        place.mkdir(parents=True, exist_ok=True)
        with Output(script) as file:
            file.write(lines.encode())
        script.chmod(0o755)
    except PermissionError:
        raise KwireError(
            f"{place} is not yours to write: with sudo, or --folder DIR and WIRESHARK_EXTCAP_DIR=DIR"
        ) from None
    print(f"kwire: {script}: Wireshark and tshark list Kafka (kwire) from their next start on", file=sys.stderr)
    return Exit.OK


def _folder() -> Path:
    """Where tshark looks for interfaces of others: a user's own place, or where it has none, the system's."""
    try:
        told = subprocess.run(["tshark", "-G", "folders"], capture_output=True, timeout=60, check=False).stdout.decode()
    except (OSError, subprocess.TimeoutExpired):
        told = ""
    lines = [line.partition("\t") for line in told.splitlines()]
    for wanted in FOLDERS:
        for name, _, path in lines:
            if name.strip() == wanted and path.strip():
                return Path(path.strip())
    raise KwireError(
        "no tshark tells where such interfaces belong: --folder DIR, as Wireshark's Help, About, Folders has it"
    )
