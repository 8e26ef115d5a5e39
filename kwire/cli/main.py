"""The kwire command: its subcommands, each in its own file and imported when it is called; errors become one line."""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

import click

from kwire import __version__
from kwire.cli import pager
from kwire.cli.every_command import finish
from kwire.errors import Exit, KwireError

COMMANDS = {  # name: (module, what it does)
    "demo": ("demo", "A consumer group on an embedded broker, captured and explained."),
    "explain": ("explain", "The reference: a message, an API key, an error, a field, a type."),
    "apis": ("apis", "All APIs in a table."),
    "errors": ("errors_table", "All error codes in a table."),
    "decode": ("decode", "Bytes to a diagram: a file or stdin, in whatever form they were pasted."),
    "encode": ("encode", "A message's JSON to bytes."),
    "read": ("read", "A capture's exchanges, a line each."),
    "browse": ("browse", "A capture in the terminal: exchanges, diagrams, bytes."),
    "sniff": ("sniff", "The same, live from an interface."),
    "stats": ("stats", "A capture in numbers: APIs, clients, brokers, topics, connections."),
    "groups": ("groups", "Consumer groups: who joined, left, was evicted and why; rebalances; verdicts."),
    "audit": ("audit", "Which clients a planned upgrade breaks."),
    "doctor": ("doctor", "What is wrong in a capture, with proof; and what is not."),
    "trace": ("trace", "How far a consumer came: its seven steps, and what it waits for."),
    "clients": ("clients", "The clients in a capture: software, versions, addresses, logins."),
    "diff": ("diff", "What changed between two captures, or between two clients."),
    "report": ("report", "Captures as one HTML page: findings, plots, tables, groups."),
    "what-if": ("what_if", "What other compression, batching or fetch sizes would change."),
    "table": ("table", "Captures to Parquet, Arrow or CSV files."),
    "sql": ("sql", "Captures, queried in SQL."),
    "pipeline": ("pipeline", "Captures to tables on Spark; reports on them."),
    "redact": ("redact", "A capture to share: names, data and secrets replaced."),
    "call": ("call", "One request to a broker, and both frames."),
    "walk": ("walk", "A consumer's start against a broker, step by step."),
    "check": ("check", "Whether a broker, or a client, behaves as Kafka's do."),
    "broker": ("broker", "A Kafka in this process, to test clients against; fails on purpose."),
    "proxy": ("proxy", "Between clients and a cluster: shows, saves and rewrites the traffic."),
    "extcap": ("extcap", "An interface for Wireshark and tshark, with comments on packets."),
    "fault": ("fault", "Faults of a broker or proxy that runs: add, list, clear."),
    "schema": ("schema", "The protocol definitions: import a new release's."),
    "site": ("site", "The reference and the guide as static pages, with a playground."),
    "help": ("help", "The guide: pages to read, and the options of commands."),
    "completion": ("completion", "Completion of commands and options in bash, zsh, fish."),
}

HELP = {"-h", "--help"}
SECTIONS = {  # of the front page: what people do most stands first
    "I have a capture": ("doctor", "read", "stats", "groups", "trace", "clients", "audit", "browse", "diff", "what-if"),
    "I have bytes, or a question": ("decode", "explain", "encode", "errors", "apis", "help"),
    "Live": ("sniff", "proxy", "extcap", "call", "walk", "check"),
    "Tables and pages": ("sql", "table", "report", "site", "pipeline", "redact"),
    "To test a client": ("broker", "fault", "demo"),
    "Besides": ("schema", "completion"),
}


class LazyCommands(click.Group):
    """Finds subcommands by name without importing the others."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"kwire.cli.{COMMANDS[cmd_name][0]}")
        command = module.command
        assert isinstance(command, click.Command)
        finish(command, cmd_name)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # which click would take for a failure
            return _closed_stdout()

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        for heading, names in SECTIONS.items():
            with formatter.section(heading):
                formatter.write_dl([(name, COMMANDS[name][1]) for name in names])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, 2, 0.6)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            ctx.fail(f"no command {args[0]}{hint}")
        return super().resolve_command(ctx, args)


@click.group(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="kwire", message="%(prog)s %(version)s")
def cli() -> None:
    """Shows what Kafka says on the wire: every byte named, sized, valued and explained.

    \b
    kwire read trouble.pcap --errors      what went wrong on the wire
    kwire groups trouble.pcap             why a consumer was thrown out
    kwire decode < bytes.bin              name every byte of a frame
    kwire explain FetchResponse -v 16     the reference page, in the same layout
    kwire explain 27                      what an error code means, and what to do
    """


def main() -> None:
    """Runs the command line and exits with a status of kwire.errors.Exit; no traceback reaches the user."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy starts threads for matrices, and there are none here
    gc.set_threshold(50_000, 20, 50)  # what is imported makes objects by the thousand, and no garbage
    try:
        _run()
    finally:
        pager.end()


def _run() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that is not UTF-8 lacks some characters
    try:
        if HELP & set(sys.argv) and "--no-pager" not in sys.argv:
            pager.begin()
        with _ended_by_signals():
            status = cli.main(standalone_mode=False, prog_name="kwire")
        sys.stdout.flush()
        _leave(int(status) if isinstance(status, int) else Exit.OK)
    except click.exceptions.Abort:
        _leave(Exit.INTERRUPTED)
    except KeyboardInterrupt:
        _leave(Exit.INTERRUPTED)
    except BrokenPipeError:
        _leave(_closed_stdout())
    except click.UsageError as error:
        error.show()
        _leave(Exit.USAGE)
    except click.ClickException as error:
        _complain(error.format_message())
        _leave(Exit.USAGE)
    except KwireError as error:
        _complain(str(error))
        _leave(getattr(error, "status", Exit.USAGE))
    except OSError as error:
        _complain(f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error))
        _leave(Exit.USAGE)
    except Exception as error:
        if os.environ.get("KWIRE_DEBUG"):
            raise
        _complain(f"a bug in kwire: {type(error).__name__}: {error} (KWIRE_DEBUG=1 shows where)")
        _leave(Exit.MALFORMED)


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end a command as Ctrl-C does, so that nothing half stays; a second one ends it at once."""
    process, taken = os.getpid(), []

    def end(number: int, _: Any) -> None:
        signal.signal(number, signal.SIG_DFL)
        if os.getpid() != process:  # a worker has nothing to clear away
            os.kill(os.getpid(), number)
        raise SystemExit(128 + number)

    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores it, and so do we
            with contextlib.suppress(ValueError):  # not the main thread
                signal.signal(number, end)
                taken.append(number)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def _complain(text: str) -> None:
    from kwire.render.lines import clean

    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
    print(f"kwire: {clean(text)}", file=sys.stderr)


def _closed_stdout() -> Exit:
    """Nobody reads any more. Whoever leaves the pager has seen enough; of a pipe, what is still buffered must not fail
    again at exit."""
    if pager.end():
        return Exit.OK
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return Exit.CLOSED_PIPE


def _leave(status: int) -> Any:
    try:
        if pager.end():
            status = Exit.OK
        sys.stdout.flush()
    except BrokenPipeError:
        status = _closed_stdout()
    sys.exit(int(status))
