"""kwire encode: a message's JSON in, bytes out."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kwire.cli.options import Name, Version, library, schema_option
from kwire.errors import KwireError

if TYPE_CHECKING:
    from kwire.schema.model import MessageSchema


@click.command()
@click.argument("name", type=Name())
@click.argument("text", metavar="[JSON]", default="-")
@click.option("-v", "--version", type=Version(), help="The version to write; required.")
@click.option("--hex", "as_hex", is_flag=True, help="Hex digits instead of raw bytes; what a terminal gets anyway.")
@click.option("--raw", is_flag=True, help="Raw bytes, to a terminal too.")
@click.option("--header", is_flag=True, help="With the request or response header in front.")
@click.option("--size", is_flag=True, help="With header and size prefix: a whole frame.")
@click.option("--correlation-id", type=click.IntRange(-(2**31), 2**31 - 1), default=0, help="For the header.")
@click.option("--client-id", default="kwire", help="For a request's header.")
@schema_option
def command(
    name: str, text: str, version: int | None, as_hex: bool, raw: bool, header: bool, size: bool, correlation_id: int,
    client_id: str, schema: Path | None,
) -> None:  # fmt: skip
    """Writes message NAME at a version from JSON: an argument, @FILE, or stdin.

    The name of an API is its request, or its response where only that has the fields of the JSON. Fields that are
    missing get their defaults; a wrong one is named with its path. kwire explain NAME shows an example.
    """
    from kwire.codec.headers import header_plan, request_header_version, response_header_version
    from kwire.codec.values import Codec
    from kwire.render.jsonform import from_json

    chosen = library(schema)
    found = chosen.registry.find(name)
    if version is None:
        messages = (found.message,) if found.message else found.definition.messages
        known = ", ".join(f"{message.name} has {message.versions}" for message in messages)
        raise click.UsageError(f"-v VERSION is missing; {known}")
    given = read_json(text)
    message = found.message or _meant(found.definition.messages, given)
    codec = chosen.codec(message.name, version)
    out = codec.encode(from_json(codec.plan, given))
    if header or size:
        key = found.definition.key
        if not found.definition.is_api or key is None:
            raise click.UsageError(f"{message.name} travels without a header")
        head: dict[str, object] = {"CorrelationId": correlation_id}
        if message.kind == "request":
            number = request_header_version(key, version, message)
            head |= {"RequestApiKey": key, "RequestApiVersion": version} | ({"ClientId": client_id} if number else {})
            plan = header_plan("RequestHeader", number)
        else:
            plan = header_plan("ResponseHeader", response_header_version(key, version, message))
        out = Codec(plan).encode(head) + out
    if size:
        out = len(out).to_bytes(4, "big") + out
    if as_hex or (sys.stdout.isatty() and not raw):
        for at in range(0, len(out), 24):
            print(out[at : at + 24].hex(" "))
    else:
        sys.stdout.buffer.write(out)
        sys.stdout.buffer.flush()


def _meant(messages: tuple[MessageSchema, ...], text: str) -> MessageSchema:
    """Of an API's messages, the first one that has most of the fields that the JSON names."""
    try:
        given = json.loads(text)
    except ValueError:  # what is wrong with it is said later
        given = {}
    names = set(given) if isinstance(given, dict) else set()
    return max(messages, key=lambda message: len(names & {field.name for field in message.fields}))


def read_json(text: str) -> str:
    """The JSON: what was given, or what stands in the file or on stdin."""
    if text != "-" and not text.startswith("@"):
        return text
    if text == "-" and sys.stdin.isatty():
        print("kwire: reading JSON from the terminal; end with Ctrl-D", file=sys.stderr)
    raw = sys.stdin.buffer.read() if text == "-" else Path(text[1:]).read_bytes()
    if not raw.strip():
        raise KwireError("no JSON: it comes from an argument, @FILE or stdin; {} is a message of defaults")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise KwireError(f"the JSON is not UTF-8: byte {error.start:,} is {raw[error.start]:02x}") from error
