"""kwire demo: a consumer group's life on an embedded broker, captured and shown, with the command for each part."""

from __future__ import annotations

import shlex
import sys
import tempfile
import time
from pathlib import Path

import click

from kwire.cli.outputs import PACKETS, form_of, packets_option
from kwire.errors import Exit
from kwire.outputs import Output

UNKNOWN_MEMBER_ID = 25


@click.command()
@packets_option("-w", "--write", "--capture", name="target", purpose="Keep the capture.")
def command(target: Output | None) -> Exit:
    """Lets two consumers and a producer live through a join, a rebalance, a missed session timeout and a fault, and
    shows what kwire says of it. Needs no Kafka, no root and no network: the broker is kwire's own, on loopback. About
    ten seconds."""
    from kwire.cli.demo_story import play

    if target is not None:
        form_of(target.path, PACKETS, None, "pcapng")
    begun = time.monotonic()
    _title("kwire broker: a broker in this process, which writes down every byte (--capture FILE)")
    with tempfile.TemporaryDirectory() as folder:
        output = target or Output(Path(folder, "demo.pcapng"), private=True)
        capture = output.path
        play(output, lambda turn: print(f"  {time.monotonic() - begun:4.1f} s  {turn}", flush=True))
        _run("what went wrong, a line for each request with its answer", "read", capture, "--errors")
        frame = _frame(capture)
        _run("one frame of it, byte by byte", "decode", capture, "--frame", str(frame))
        _run("what that means: why was billing-2 thrown out?", "groups", capture)
    kept = f"the capture is {target}" if target else "-w FILE keeps the capture"
    _title(f"{kept}; more questions: kwire stats, clients, trace, sql; kwire explain UNKNOWN_MEMBER_ID")
    return Exit.OK


def _title(text: str) -> None:
    from kwire.cli.output import show

    show([[], [(text, "title")]])


def _run(title: str, name: str, capture: Path, *arguments: str) -> None:
    """A command on the capture, beneath the line that one would type."""
    from kwire.cli.main import cli
    from kwire.cli.output import show

    _title(title)
    typed = ["kwire", name, capture.name, *arguments]
    show([[(f"$ {shlex.join(typed)}", "name")], []])
    sys.stdout.flush()
    cli.main([name, str(capture), *arguments], prog_name="kwire", standalone_mode=False)


def _frame(capture: Path) -> int:
    """The packet with the answer that says UNKNOWN_MEMBER_ID to a heartbeat."""
    import kwire

    found = next(each for each in kwire.read(capture, api="Heartbeat", errors=True) if each.error == UNKNOWN_MEMBER_ID)
    assert found.response is not None
    return found.response.packet
