"""kwire browse: a capture looked at in the terminal, exchange by exchange, byte by byte."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from kwire.cli.captures import Bounds, connection_options, exchange_options, fewer_collections, open_captures
from kwire.cli.wanted import Wanted
from kwire.errors import Exit, KwireError

if TYPE_CHECKING:
    from kwire.browse.index import IndexNames
    from kwire.browse.setting import BrowseSetting
    from kwire.session.exchange import Exchange
    from kwire.session.reading import Reading
    from kwire.session.select import Selection


@click.command()
@click.argument("paths", metavar="CAPTURE...", nargs=-1, required=True)
@click.option("--filter", "line", default="", metavar="LINE", help="What f filters, to begin with: 'api=Fetch errors'.")
@click.option("-f", "--follow", is_flag=True, help="Go on while the file grows, and stay at its end.")
@click.option("--utc", is_flag=True, help="Times of day instead of seconds since the start.")
@click.option(
    "--show-secrets", is_flag=True, help="Show passwords, tokens and other secrets, which are withheld otherwise."
)
@connection_options
def command(paths: tuple[str, ...], line: str, follow: bool, utc: bool, show_secrets: bool, bounds: Bounds) -> int:
    """Opens captures in the terminal: the exchanges, the chosen frame's diagram, and its bytes.

    Keys are those of less, mitmproxy and termshark; ? lists them. Needs kwire[tui].
    """
    if "-" in paths:
        raise click.UsageError("browse reads files: stdin is the keyboard")
    if follow and len(paths) > 1:
        raise click.UsageError("--follow takes one capture")
    return browse(paths, bounds, line, follow=follow, utc=utc, secrets=show_secrets)


def browse(
    paths: tuple[str, ...], bounds: Bounds, line: str = "", *, follow: bool = False, utc: bool = False,
    secrets: bool = False, title: str = "", alert: Callable[[], str] = str,
) -> int:  # fmt: skip
    """Shows captures until the user leaves. follow: the capture grows; title: instead of the files' names; alert: what
    else there is to say now and then."""
    from kwire.browse.setting import BrowseSetting
    from kwire.cli.output import Color

    needed()
    reading = _reading(paths, bounds, follow)
    choose = Filters(reading)
    if line:
        choose(line)
    color = Color.mode != "never" and (Color.mode == "always" or not os.environ.get("NO_COLOR"))
    setting = BrowseSetting(
        title or ", ".join(reading.names.values()), paths, _words(bounds), choose, choose.absent, line, utc, secrets,
        follow, follow, color, alert,
    )  # fmt: skip
    return _run(reading, setting)


def needed() -> None:
    """Raises what says so where there is no Textual, no terminal, or no second process."""
    try:
        import textual  # noqa: F401
    except ImportError:
        raise KwireError("kwire browse needs Textual: pip install 'kwire[tui]'") from None
    if not hasattr(os, "fork"):
        raise click.UsageError("kwire browse needs a system that can fork; kwire read -x shows the same as text")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError("kwire browse needs a terminal; kwire read -x shows the same as text")


def _reading(paths: tuple[str, ...], bounds: Bounds, follow: bool) -> Reading:
    """Raises OSError, CaptureError for what is no capture."""
    from kwire.capture.files import open_capture
    from kwire.session.reading import Reading

    if not follow:
        for path in paths:
            next(open_capture(path).blocks(), None)
    return Reading(open_captures(paths), bounds.settings(growing=follow), tracking=True, follow=follow)


def _run(reading: Reading, setting: BrowseSetting) -> int:
    from kwire.browse.link import ReaderLink

    fewer_collections()
    link = ReaderLink(reading, export)  # before Textual brings threads
    from kwire.browse.app import Browser

    environment = dict(os.environ)
    if setting.color:
        os.environ.pop("NO_COLOR", None)
    else:
        os.environ["NO_COLOR"] = "1"
    try:
        app = Browser(setting, link)
        app.run()
    finally:
        link.close()
        os.environ.clear()
        os.environ.update(environment)
    if app.failure is not None:
        raise app.failure
    ended = app.ended
    for note in ended.notes[:20] if ended else ():
        from kwire.render.lines import clean

        print(f"kwire: {clean(note)}", file=sys.stderr)
    if ended and ended.problem:
        raise KwireError(ended.problem)
    empty = ended is not None and not len(app.index) and not ended.encrypted
    return Exit.NOT_KAFKA if empty else Exit.OK


class Filters:
    """A line of filters as a selection: the options of kwire read, without their dashes."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading

    def __call__(self, line: str) -> Selection:
        """Raises KwireError with what is wrong in it."""
        from kwire.cli.captures import end_of, start_of

        paths = tuple(map(str, self._reading.paths))
        try:
            words = [f"--{word}" for word in shlex.split(line)]
            words = [word.replace("--client=", "--client-id=") if names_id(word) else word for word in words]
            found: list[Wanted] = []
            command = exchange_options(lambda wanted: found.append(wanted))
            made = click.command("filter")(command)
            made.main(words, prog_name="filter", standalone_mode=False)
            self._wanted = found[0]
            return found[0].selection(lambda: start_of(paths), lambda: end_of(paths))
        except click.ClickException as error:
            raise KwireError(error.format_message().replace("--", "")) from None
        except (ValueError, IndexError) as error:
            raise KwireError(f"no filter: {error}") from None

    def absent(self, names: IndexNames) -> str:
        """What the last line asked for and the captures do not have; "" where each of it is there."""
        from kwire.cli.filters import asked_values
        from kwire.session.record import error_name

        apis = {kind.api: kind.key for kind in names.kinds}
        codes = {error_name(code) or str(code): code for several in names.codes for code in several}
        there = {
            "API": apis, "client id": [name or "" for name in names.clients],
            "client": [known.ends[0] for known in names.connections],
            "broker": [known.ends[1] for known in names.connections], "error": codes,
            "connection": [known.name for known in names.connections],
            "topic": [topic for about in names.abouts for topic in about.topics],
            "group": [group for about in names.abouts for group in about.groups],
        }  # fmt: skip
        asked = asked_values(self._wanted, apis, codes)
        for what, values in there.items():
            asked[what].see(values)
        return "; ".join(line for what in there for line in asked[what].complaints())


def names_id(word: str) -> bool:
    """Whether a filter client=… means a client id: what is no address or port."""
    name, _, value = word.partition("=")
    return name == "--client" and re.fullmatch(r"[0-9a-fA-F.:\[\]]+", value) is None


def _words(bounds: Bounds) -> tuple[str, ...]:
    """The options that other commands take for the same connections."""
    words: list[Any] = []
    for port in bounds.ports:
        words += ["--port", port]
    for host in bounds.hosts:
        words += ["--host", host]
    for path in bounds.keylogs:
        words += ["--keylog", path]
    if bounds.schema:
        words += ["--schema", bounds.schema]
    words += ["--max-frame", bounds.max_frame, "--memory", bounds.memory, "--hold", bounds.hold]
    return tuple(map(str, words))


def export(exchange: Exchange, kind: str, form: str, secrets: bool) -> str:
    """A frame as a document, or its request as a kwire call."""
    from kwire.cli.frames import document
    from kwire.cli.output import export as page
    from kwire.render.bodies import BodyRenderer
    from kwire.render.exchange_diagrams import message_lines
    from kwire.render.jsonform import dumps
    from kwire.render.lines import plain

    message = exchange.request if kind == "request" else exchange.response
    if message is None:
        raise KwireError(f"there is no {kind}")
    if form == "call":
        kind_of = message.api
        if kind_of is None:
            raise KwireError("nobody knows what to call")
        body = BodyRenderer(secrets).json(message)
        words = ["kwire", "call", exchange.connection.ends[1], kind_of.api, body, "-v", str(kind_of.version)]
        return shlex.join(words) + "\n"
    if form == "json":
        return dumps(document(message, exchange, BodyRenderer(secrets).value(message))) + "\n"
    lines = message_lines(message, 130, 0, False, secrets, None, exchange=exchange)
    if form == "text":
        return "\n".join(map(plain, lines)) + "\n"
    return page(lines, form, message.name)
