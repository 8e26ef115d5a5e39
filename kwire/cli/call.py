"""kwire call: one request to a broker, and both frames."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from kwire.cli.brokers import BrokerOptions, broker_options, reached
from kwire.cli.options import Name, Version, library, schema_option
from kwire.codec.quality import Quality
from kwire.errors import EncodeError, Exit, KwireError, UnknownName

if TYPE_CHECKING:
    from kwire.client.address import Address
    from kwire.client.connection import BrokerConnection
    from kwire.client.exchange import ClientExchange
    from kwire.codec.library import Library
    from kwire.schema.model import Definition

FORMATS = ("text", "tree", "json", "hex")


class CallViews(NamedTuple):
    """What is shown, as the options say."""

    output: str
    quiet: bool
    full: bool
    notes: bool
    inner: bool
    elements: int
    show_secrets: bool


@click.command()
@click.argument("broker")
@click.argument("name", metavar="API", type=Name())
@click.argument("text", metavar="[JSON]", required=False)
@click.option("-v", "--version", type=Version(), help="The version to ask; else the newest that both sides know.")
@click.option("--yes", is_flag=True, help="Send also what changes something on the broker.")
@click.option("-n", "--dry-run", is_flag=True, help="Show the request, send nothing.")
@click.option(
    "--no-route",
    is_flag=True,
    help="Ask BROKER itself, not the group's coordinator or the partition's leader that it names.",
)
@click.option("-q", "--quiet", is_flag=True, help="Show the answer alone.")
@click.option("--format", "output", type=click.Choice(FORMATS), default="text", help="The output format.")
@click.option("--full", is_flag=True, help="All bytes and the whole of every value.")
@click.option("--notes", is_flag=True, help="Say beneath each field what it is.")
@click.option("--inner", is_flag=True, help="In JSON, records and other inner formats as objects, not as base64.")
@click.option("--elements", type=click.IntRange(1), metavar="N", help="At most N elements of each array.")
@click.option("--show-secrets", is_flag=True, help="Show passwords, tokens and other secrets.")
@broker_options
@schema_option
def command(
    broker: str, name: str, text: str | None, version: int | None, yes: bool, dry_run: bool, no_route: bool,
    quiet: bool, output: str, full: bool, notes: bool, inner: bool, elements: int | None, show_secrets: bool,
    link: BrokerOptions, schema: Path | None,
) -> int:  # fmt: skip
    """Sends one request to BROKER (host:9092) and shows it and its answer, byte by byte. Of several, with commas
    between, the first that can be reached is asked.

    JSON is the request's body: an argument, @FILE, or - for stdin. Fields that are missing get what clients send, else
    the schema's default; kwire explain API shows an example. Without -v the newest version is taken that both sides
    know and that has all fields given. What changes something on the broker needs --yes.

    A request about a group or a transaction goes to its coordinator, one about partitions to their leader, after BROKER
    has told where they are.
    """
    from kwire.cli.encode import read_json as read_json
    from kwire.client.address import Address
    from kwire.client.effects import changes

    chosen = library(schema)
    definition = chosen.registry.api(int(name)) if name.isdecimal() else chosen.registry.find(name).definition
    if not definition.is_api or definition.key is None:
        raise UnknownName("API", name)
    if version is not None:
        chosen.plan(definition.messages[0].name, version)
    given = "{}" if text is None else read_json(text)
    addresses = Address.parse_all(broker)
    views = CallViews(output, quiet, full, notes, inner, elements or 0, show_secrets)
    if dry_run:
        high = definition.messages[0].versions.high
        at, body = _body(chosen, definition, given, version, high)
        return _dry(chosen, definition, at, body, link, views)
    early = _body(chosen, definition, given, version, definition.messages[0].versions.high)
    effect = changes(definition.key, *early)
    if effect and not yes:
        raise click.UsageError(f"{definition.name} {effect}; --yes sends it, --dry-run shows it")
    exchange = _ask(chosen, definition, given, version, reached(addresses, link.timeout), link, not no_route)
    _show(exchange, views, link)
    return _status(exchange)


def _body(
    chosen: Library, definition: Definition, given: str, version: int | None, high: int, low: int = 0
) -> tuple[int, dict[str, Any]]:
    """The version and the body: the one asked for, or the newest up to high that has all fields given. Raises
    EncodeError, that of the newest, when none has."""
    from kwire.client.defaults import filled
    from kwire.render.jsonform import from_json

    request = definition.messages[0]
    first: EncodeError | None = None
    for number in [version] if version is not None else range(high, max(low, request.versions.low) - 1, -1):
        plan = chosen.plan(request.name, number)
        try:
            return number, filled(definition.name, plan, from_json(plan, given))
        except EncodeError as error:
            first = first or error
    assert first is not None
    raise first


def _ask(
    chosen: Library,
    definition: Definition,
    given: str,
    version: int | None,
    address: Address,
    link: BrokerOptions,
    routed: bool,
) -> ClientExchange:
    """Connects, agrees on a version, sends, to the broker that the request belongs to."""
    from kwire.client.route import is_routed, route

    routed = routed and is_routed(definition.name)
    with _open(chosen, version is None, address, link, routed) as connection:
        number, body = _agreed(connection, chosen, definition, given, version)
        if not routed or connection.offered is None:
            return _sent(connection, definition.name, number, body, link)
        found = route(connection, definition.name, chosen.plan(definition.messages[0].name, number), body)
        if found.others:
            print(f"kwire: {found.others}", file=sys.stderr)
        if found.address in (None, address):
            return _sent(connection, definition.name, number, body, link)
    print(f"kwire: {found.why}: asked at {found.address}", file=sys.stderr)
    try:
        with _open(chosen, version is None, found.address, link) as connection:
            number, body = _agreed(connection, chosen, definition, given, version)
            return _sent(connection, definition.name, number, body, link)
    except KwireError as error:
        error.args = (f"{error}; --no-route asks {address}",)
        raise


def _open(
    chosen: Library, negotiate: bool, address: Address, link: BrokerOptions, routed: bool = False
) -> BrokerConnection:
    """A connection. routed: versions are asked for if the broker tells them, as those before 0.10 do not."""
    from kwire.client.connection import BrokerConnection
    from kwire.errors import Failure

    def opened(asking: bool) -> BrokerConnection:
        return BrokerConnection.open(
            address, link.security, client_id=link.client_id, timeout=link.timeout, library=chosen, negotiate=asking
        )

    must = negotiate or link.security.mechanism is not None
    if must or not routed:
        return opened(must)
    try:
        return opened(True)
    except Failure as failure:
        if failure.kind != "closed":
            raise
        return opened(False)


def _sent(
    connection: BrokerConnection, name: str, version: int, body: dict[str, Any], link: BrokerOptions
) -> ClientExchange:
    """A broker that closes instead of answering is asked why."""
    from kwire.client.diagnose import why_closed
    from kwire.errors import Failure

    try:
        return connection.request(name, version, body, answer=name != "Produce" or body.get("Acks") != 0)
    except Failure as failure:
        if failure.kind != "closed":
            raise
        address = connection.address
        why = why_closed(address, link.security, name, version, link.timeout, connection.library)
        raise Failure("closed", address, failure.reason, why or "") from failure


def _agreed(
    connection: BrokerConnection, chosen: Library, definition: Definition, given: str, version: int | None
) -> tuple[int, dict[str, Any]]:
    if version is not None:
        return _body(chosen, definition, given, version, version)
    high = connection.version(definition.name)
    theirs = (connection.offered or {}).get(definition.key or 0)
    number, body = _body(chosen, definition, given, None, high, theirs.low if theirs else 0)
    if number != high:
        print(f"kwire: {definition.name} v{number}, the newest with these fields; both know v{high}", file=sys.stderr)
    return number, body


def _dry(
    chosen: Library, definition: Definition, version: int, body: dict[str, Any], link: BrokerOptions, views: CallViews
) -> Exit:
    from kwire.client.exchange import request_frame
    from kwire.codec.frames import decode_frame

    data = request_frame(chosen, definition.name, version, body, 1, link.client_id)
    _frames([(decode_frame(data, size=True, library=chosen), data)], chosen, views, {}, link)
    return Exit.OK


def _show(exchange: ClientExchange, views: CallViews, link: BrokerOptions) -> None:
    frames = exchange.frames()
    about = {
        "broker": exchange.broker, "client": exchange.client, "api": exchange.api, "api_version": exchange.version,
        "time": exchange.time, "took_ns": exchange.took if exchange.answered else None,
    }  # fmt: skip
    _frames(frames[1:] if views.quiet else frames, exchange.library, views, about, link)


def _frames(
    frames: list[tuple[Any, bytes]], chosen: Library, views: CallViews, about: dict[str, Any], link: BrokerOptions
) -> None:  # fmt: skip
    from kwire.cli.output import show, width
    from kwire.render.asked import call_line, frame_lines, frame_record
    from kwire.render.jsonform import dumps

    echo = link.security.echo
    if views.output == "json":
        bodies = {frame.kind: frame_record(frame, data, chosen, views.inner, views.show_secrets, echo)
                  for frame, data in frames}  # fmt: skip
        print(dumps(bodies["response"] if views.quiet and "response" in bodies else about | bodies))
        return
    lines = call_line(about, width()) if about and not views.quiet else []
    for frame, data in frames:
        lines += [[]] if lines else []
        lines += frame_lines(
            frame, data, chosen, views.output, width(), full=views.full, notes=views.notes,
            elements=views.elements, show_secrets=views.show_secrets, echo=echo,
        )  # fmt: skip
    show(lines)


def _status(exchange: ClientExchange) -> Exit:
    """1 for an answer that carries an error code or cannot be read."""
    if exchange.response is None:
        return Exit.OK
    frame, _ = exchange.frames()[1]
    errors = any(
        span.slot is not None and span.slot.field.error and isinstance(span.value, int) and span.value
        for _, span in frame.span.walk()
    )
    return Exit.MALFORMED if errors or frame.quality not in (Quality.OK, Quality.TRAILING) else Exit.OK
