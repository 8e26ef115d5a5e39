"""A broker from the command line while it runs: who is told when clients can connect, and of what happens."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kwire.cli.notices import Notices
from kwire.errors import KwireError, OutputError

if TYPE_CHECKING:
    from kwire.broker.context import BrokerSettings, Happening
    from kwire.broker.server import BrokerServer
    from kwire.outputs import Output


@dataclass(frozen=True, slots=True)
class BrokerRun:
    """What the options say beside the settings. events: a line of JSON for each event, on stdout. ready: a file that is
    there while clients can connect, and says where."""

    rules: tuple[str, ...]
    certificate: Output | None
    capture: Output | None
    quiet: bool
    log: Path | None
    control: str | None
    ready: Path | None
    events: bool


async def run(settings: BrokerSettings, options: BrokerRun) -> None:
    """Until a signal ends it."""
    from kwire.broker.control import ControlSocket, fault_verbs
    from kwire.broker.faults import Faults
    from kwire.broker.process import settle
    from kwire.broker.recorder import Recorder
    from kwire.broker.server import BrokerServer

    faults = Faults()
    for rule in options.rules:
        note = faults.add(rule).note
        if note:
            print(f"kwire: fault {rule}: {note}", file=sys.stderr)
    certificate, capture = options.certificate, options.capture
    context, pem = None, ""
    if any(listener.tls for listener in settings.all_listeners):
        from kwire.broker.tls import context as make
        from kwire.outputs import Output

        certificate = certificate or Output("kwire-broker.pem")
        spare_keys(certificate.path)
        context, pem = make(*_hosts(settings))
        if options.log is not None:
            context.keylog_filename = str(options.log)
    recorder = Recorder(capture, limit=settings.limits.capture) if capture else None
    control = ControlSocket(options.control, fault_verbs(faults)) if options.control else None
    server = BrokerServer(settings, faults, recorder, context, control)
    notices = Notices(sys.stdout if options.events else sys.stderr)
    if options.events:
        server.state.watching.append(lambda happening: notices.put(_json_line(happening)))
    elif not options.quiet:
        server.state.watching.append(lambda happening: notices.put(_line(happening)))
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
    if options.ready is not None:
        _write_ready(options.ready, _where(server, certificate, options))
    if options.events:
        notices.put(json.dumps({"kind": "ready", **_where(server, certificate, options)}))
    else:
        _greet(server, certificate, options)
    try:
        await stop.wait()
    finally:
        server.state.watching.clear()
        await server.stop()
        notices.close()
        if options.ready is not None:
            options.ready.unlink(missing_ok=True)
        seen = len(server.state.requests)
        more = "+" if seen == server.state.requests.maxlen else ""
        print(f"kwire: {seen:,}{more} request{'s' * (seen != 1)}", file=sys.stderr)


def _hosts(settings: BrokerSettings) -> tuple[str, ...]:
    """The names that a certificate must be good for."""
    told = [each.advertised[0] for each in settings.all_listeners if each.advertised]
    return tuple(dict.fromkeys([*(each.host for each in settings.all_listeners), *told]))


def spare_keys(path: Path) -> None:
    """Raises OutputError for a file with a private key: who names one wants it used, not overwritten."""
    if path.is_file() and b"PRIVATE KEY-----" in path.read_bytes()[:1_000_000]:
        raise OutputError(str(path), "holds a private key; kwire makes its own certificate, and would write it here")


def _where(server: BrokerServer, certificate: Output | None, options: BrokerRun) -> dict[str, Any]:
    """How clients get in: bootstrap.servers of each listener, and the files that they need."""
    nodes = server.state.cluster.nodes.values()
    names = [listener.name for listener in server.settings.all_listeners]
    found: dict[str, Any] = {"bootstrap": ",".join(str(node.at()) for node in nodes)}
    found["listeners"] = {name: ",".join(str(node.at(name)) for node in nodes) for name in names}
    if certificate is not None:
        found["certificate"] = str(certificate)
    if options.control is not None:
        found["control"] = options.control
    return found


def _write_ready(path: Path, where: dict[str, Any]) -> None:
    """The file has its name when it is whole, so that its being there is enough to know."""
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_text(json.dumps(where) + "\n", "utf-8")
        part.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def _greet(server: BrokerServer, certificate: Output | None, options: BrokerRun) -> None:
    """What a client must know, on stdout, so that a script can wait for it."""
    several = len(server.settings.all_listeners) > 1
    for node in server.state.cluster.nodes.values():
        for name, endpoint in node.endpoints.items():
            print(f"node {node.id} listens on {endpoint}{f' ({name})' if several else ''}")
    if any(listener.tls for listener in server.settings.all_listeners):
        print(f"clients must trust {certificate}")
    if options.capture:
        print(f"capture in {options.capture}")
    if options.control:
        print(f"kwire fault --control {options.control} changes its faults")
    sys.stdout.flush()


def _json_line(happening: Happening) -> str:
    """An event for programs; time in ns since the epoch."""
    row = {"time": happening.time, "kind": happening.kind, "who": happening.who, "text": happening.text}
    return json.dumps(row)


def _line(happening: Happening) -> str:
    """Nothing for what _greet says; who and what come from the wire."""
    from kwire.render.lines import clean

    if happening.kind == "listening":
        return ""
    moment = time.strftime("%H:%M:%S", time.localtime(happening.time // 1_000_000_000))
    fraction = happening.time // 1_000_000 % 1000
    return f"{moment}.{fraction:03} " + clean(f"{happening.kind:<10} {happening.who}  {happening.text}")
