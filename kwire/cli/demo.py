"""kwire demo: a consumer group's life on an embedded broker, captured and shown, with the command for each part."""

from __future__ import annotations

import shlex
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import click

from kwire.cli.outputs import PACKETS, form_of, packets_option
from kwire.errors import Exit
from kwire.outputs import Output
from kwire.schema import codes
from kwire.staging import staging


@click.command()
@packets_option("-w", "--write", "--capture", name="target", purpose="Keep the capture.")
def command(target: Output | None) -> Exit:
    """Lets two consumers and a producer go through a join, a rebalance, a missed session timeout and a fault,
    and shows how kwire explains it. Needs no Kafka, no root and no network: the broker is kwire's own, on loopback.
    About seven seconds."""
    from kwire.cli.demo_story import play

    form = "pcapng" if target is None else form_of(target.path, PACKETS, None, "pcapng")
    if target is not None and target.is_stdout:
        raise click.UsageError("the demo tells its story on stdout; the capture needs a file")
    begun = time.monotonic()
    _title("kwire broker --capture FILE: a broker in this process, which writes down every byte")
    with staging(tempfile.gettempdir(), private=True) as folder:
        capture = Path(folder, f"demo.{form}")
        shown = target.path if target else Path("demo.pcapng")
        play(capture, lambda turn: _turn(time.monotonic() - begun, turn))
        if target is not None:
            with target as file:
                file.write(capture.read_bytes())
        _run("what went wrong, a line for each request with its answer", capture, shown, "read", "--errors",
             "--api", "Produce", "--api", "Heartbeat")  # fmt: skip
        _run("one frame of it, byte by byte", capture, shown, "decode", "--frame", str(_frame(capture)))
        _run("what that means: why was billing-2 thrown out?", capture, shown, "groups")
    _title("more questions" if target else "to keep the capture, and to ask it more")
    for line in _more(target is not None, shlex.quote(str(shown))):
        _typed(line)
    return Exit.OK


def _more(kept: bool, name: str) -> Iterator[str]:
    """Commands that go on from here, and that work as installed."""
    if not kept:
        yield f"kwire demo -w {name}"
    for command in ("stats", "clients", "trace"):
        yield f"kwire {command} {name}"
    if all(map(find_spec, ("pyarrow", "duckdb"))):
        yield f"kwire sql {name} --report slowest"
    yield "kwire explain UNKNOWN_MEMBER_ID"


def _title(text: str) -> None:
    from kwire.cli.output import show, width
    from kwire.render.lines import paragraph

    show([[], *paragraph(text, width(), style="title")])


def _turn(seconds: float, text: str) -> None:
    from kwire.cli.output import show, width
    from kwire.render.lines import paragraph

    show(paragraph(text, width(), f"  {seconds:4.1f} s  ", hang=" " * 10))
    sys.stdout.flush()


def _typed(text: str) -> None:
    from kwire.cli.output import show

    show([[(f"$ {text}", "name")]])


def _run(title: str, capture: Path, shown: Path, name: str, *arguments: str) -> None:
    """A command on the capture, beneath the line that one would type."""
    from kwire.cli.main import cli

    _title(title)
    _typed(shlex.join(["kwire", name, str(shown), *arguments]))
    print(flush=True)
    cli.main([name, str(capture), *arguments], prog_name="kwire", standalone_mode=False)


def _frame(capture: Path) -> int:
    """The packet with the answer that says UNKNOWN_MEMBER_ID to a heartbeat."""
    import kwire

    found = next(
        each for each in kwire.read(capture, api="Heartbeat", errors=True) if each.error == codes.UNKNOWN_MEMBER_ID
    )
    assert found.response is not None
    return found.response.packet
