"""kwire decode: bytes in, a diagram out."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from kwire.cli.keylogs import key_log, keylog_option
from kwire.cli.literals import NAMES
from kwire.cli.options import Name, Version, library, schema_option
from kwire.cli.quantities import Size
from kwire.cli.references import Packet, PacketReference
from kwire.codec.quality import Quality
from kwire.errors import Exit

if TYPE_CHECKING:
    from kwire.codec.identify import Item
    from kwire.codec.library import Library
    from kwire.codec.span import Span
    from kwire.records.compression import Budget
    from kwire.render.lines import Line

FORMATS = ("text", "tree", "json", "spans", "hex", "svg", "html")
SPELLED = ("spans", "tree", "svg", "html")  # forms whose text holds the bytes of all values once more


@click.command()
@click.argument("files", metavar="[FILE]...", type=click.File("rb"), nargs=-1)
@click.option(
    "--as",
    "as_name",
    type=Name(),
    metavar="NAME",
    help="What the bytes are: FetchResponse or another name; records, log, index, timeindex, txnindex, snapshot.",
)
@click.option("-v", "--version", type=Version(), help="The API version, with --as.")
@click.option("--input", "form", type=click.Choice(NAMES), default="auto", help="The input's form; detected otherwise.")
@click.option("--format", "output", type=click.Choice(FORMATS), default="text", help="The output format.")
@click.option(
    "--field", "paths", multiple=True, metavar="PATH", help="These fields alone: Topics[0].Name, Topics[*].Name"
)
@click.option(
    "-x", "--diagrams", is_flag=True, help="Of a broker's file the diagram of its bytes, not a line for each record."
)
@click.option("--full", is_flag=True, help="All bytes and the whole of every value.")
@click.option("--notes", is_flag=True, help="Say beneath each field what it is.")
@click.option("--inner", is_flag=True, help="In JSON, records and other inner formats as objects, not as base64.")
@click.option("--elements", type=click.IntRange(1), metavar="N", help="At most N elements of each array.")
@click.option("--topic", metavar="NAME", help="Of a log's records: the topic, where the file's path does not tell it.")
@click.option(
    "--show-secrets", is_flag=True, help="Show passwords, tokens and other secrets, which are withheld otherwise."
)
@click.option(
    "--scram-password", metavar="TEXT", help="Check the server's signature of a SCRAM exchange with this password."
)
@click.option(
    "--frame",
    "packets",
    type=Packet(),
    metavar="N",
    multiple=True,
    help="The frames in packet N of FILE, a capture; N is Wireshark's frame number. Of several captures FILE:N; "
    "repeatable.",
)
@click.option("--connection", metavar="TEXT", help="FILE is a capture: frames of the connection whose name holds this.")
@click.option(
    "--index",
    type=click.IntRange(0),
    metavar="N",
    help="With --connection, the request and the response that are number N of their streams, from 0.",
)
@click.option("--inflate", type=Size(), default="256m", help="What a frame may decompress to: 256m.")
@keylog_option
@schema_option
def command(
    files: tuple[Any, ...], as_name: str | None, version: int | None, form: str, output: str, paths: tuple[str, ...],
    diagrams: bool, full: bool, notes: bool, inner: bool, elements: int | None, topic: str | None, show_secrets: bool,
    scram_password: str | None, packets: tuple[PacketReference, ...], connection: str | None, index: int | None,
    keylogs: tuple[str, ...], inflate: int, schema: Path | None,
) -> int:  # fmt: skip
    """Names every byte of FILE (stdin without it), whatever it holds.

    Frames with or without their size prefix, several in a row, bodies alone; as raw bytes, hex, base64, a byte array of
    a programming language, or the text of xxd, hexdump, Wireshark or tcpdump. A request says what it is; for a
    response kwire finds out what it could be, unless --as and -v name it. Of a broker's .log a line for each record, of
    its other files one for each entry; -x shows their bytes.
    """
    from kwire.cli.literals import to_bytes
    from kwire.codec.identify import identify, identify_as
    from kwire.records.compression import Budget

    if index is not None and connection is None and not packets:
        raise click.UsageError("--index counts the frames of a connection; --connection says of which")
    if packets or connection is not None:
        views = DecodeViews(output, full, notes, elements or 0, inner, show_secrets, inflate)
        captures, chosen = [_path(file) for file in files], library(schema)
        return _captured(captures, packets, connection, index, views, paths, chosen, keylogs)
    if len(files) > 1:
        raise click.UsageError("one FILE; of several captures --frame FILE:N or --connection says what to decode")
    file = files[0] if files else sys.stdin.buffer
    if version is not None and as_name is None:
        raise click.UsageError("-v says the version of what --as names")
    if file.isatty():
        print("kwire: reading bytes from the terminal; end with Ctrl-D", file=sys.stderr)
    given = file.read()
    data, _ = to_bytes(given, form)
    if not data:
        print("kwire: no bytes", file=sys.stderr)
        return Exit.NOT_KAFKA
    chosen = library(schema)
    kind = _file_kind(as_name, getattr(file, "name", ""), data)
    if kind:
        items = [_file(data, kind, getattr(file, "name", ""), topic, Budget(inflate))]
    elif as_name is None:
        items = identify(data, chosen)
    else:
        found = chosen.registry.find(as_name)
        message = found.message
        if version is not None:
            chosen.plan((message or found.definition.messages[0]).name, version)
        items = identify_as(data, found.definition, message, version, chosen)
    shown = _all_opened(items, data, show_secrets, _kept(output, inner, inflate))
    if scram_password is not None:
        _check_scram(items, scram_password)
    if paths:
        return _fields(shown, paths)
    listed = output == "text" and not diagrams and not notes
    _show(shown, data, "list" if listed else output, full, notes, elements or 0, inner)
    return _status([item for item, _ in shown], sum(span.wrong_checksums() for _, span in shown))


class DecodeViews(NamedTuple):
    """What is shown of a frame, as the options say."""

    output: str
    full: bool
    notes: bool
    elements: int
    inner: bool
    show_secrets: bool
    inflate: int


def _path(file: Any) -> str:
    """An opened file's path, - for stdin."""
    name = str(getattr(file, "name", "-"))
    return "-" if name == "<stdin>" or file is sys.stdin.buffer else name


def _captured(
    captures: list[str], packets: tuple[PacketReference, ...], connection: str | None, index: int | None,
    views: DecodeViews, paths: tuple[str, ...], chosen: Library, keylogs: tuple[str, ...],
) -> int:  # fmt: skip
    """The frames of captures that are in packets, or have a number on a connection."""
    from kwire.cli.frames import captured_items, document, frames_of
    from kwire.cli.output import DOCUMENT_WIDTH, export, show, width
    from kwire.cli.page_facts import of_messages
    from kwire.render.bodies import BodyRenderer
    from kwire.render.exchange_diagrams import message_lines
    from kwire.render.jsonform import write

    reading, found, missing = frames_of(captures, packets, connection, index, chosen, key_log(keylogs))
    messages = [message for message, _ in found]
    if views.output in ("text", "html") and not paths:
        start = min(reader.first_time or 0 for reader in reading.readers)
        wide = width() if views.output == "text" else DOCUMENT_WIDTH

        def lines() -> Iterator[Line]:
            for at, (message, exchange) in enumerate(found):
                yield from [[]] * (at > 0)
                yield from message_lines(
                    message, wide, views.elements, views.full, views.show_secrets, start, views.notes, views.inflate,
                    exchange,
                )  # fmt: skip

        if views.output == "text":
            show(lines())
        else:
            title = messages[0].name if len(messages) == 1 else f"{len(messages):,} frames"
            print(export(lines(), "html", title, of_messages(reading, messages)))
    elif views.output == "json" and not paths:
        bodies = BodyRenderer(views.show_secrets, views.inner, views.inflate)
        for message, exchange in found:
            write(document(message, exchange, bodies.value(message)), sys.stdout.write)
    items, data = captured_items(messages)
    if paths or views.output not in ("text", "html", "json"):
        shown = _all_opened(items, data, views.show_secrets, _kept(views.output, views.inner, views.inflate))
        if paths:
            return _fields(shown, paths)
        _show(shown, data, views.output, views.full, views.notes, views.elements, views.inner)
    sys.stdout.flush()
    for said in missing:
        print(f"kwire: {said}", file=sys.stderr)
    logins = all(message.token for message in messages)  # opaque, but of a connection that is Kafka's
    return Exit.USAGE if missing else Exit.OK if logins else _status(items, 0)


def _check_scram(items: list[Item], password: str) -> None:
    """Says on stderr whether the frames hold a SCRAM exchange with that password."""
    from kwire.payloads.scram import server_signature

    fields = (span for item in items for span in item.span.below() if span.name == "AuthBytes")
    verdict = server_signature([span.value for span in fields if isinstance(span.value, bytes)], password)
    print(f"kwire: SCRAM server signature: {verdict or 'no whole exchange in these frames'}", file=sys.stderr)


def _file_kind(as_name: str | None, path: str, data: bytes) -> str | None:
    """The kind of log file that is said, or that the path tells; a batch whose checksum is right is a log too."""
    from kwire.payloads.files import KINDS, begins_with_batch, kind_of

    if as_name is None:
        found = kind_of(path)
        return found[0] if found else "log" if begins_with_batch(data) else None
    if as_name.lower() == "records":
        return "log"
    return as_name.lower() if as_name.lower() in KINDS else None


def _file(data: bytes, kind: str, path: str, topic: str | None, budget: Budget) -> Item:
    from kwire.codec.identify import Item
    from kwire.payloads.files import open_file

    return Item(0, len(data), open_file(data, kind, path or None, topic, budget), file=True)


def _all_opened(items: list[Item], data: bytes, show_secrets: bool, inflate: int) -> list[tuple[Item, Span]]:
    """The trees of all frames, which are kept until they are shown: they share what one may decompress to."""
    from kwire.records.compression import Budget

    spent = Budget(inflate)
    return [(item, _opened(item, data[item.start : item.end], show_secrets, spent)) for item in items]


def _kept(output: str, inner: bool, inflate: int) -> int:
    """What may be decompressed for a form: less where it takes memory again for its text."""
    return inflate // 2 if inner or output in SPELLED else inflate


def _opened(item: Item, data: bytes, show_secrets: bool, budget: Budget | None = None) -> Span:
    """The item's tree with what its fields hold, and without its secrets."""
    from kwire.codec.identify import shown
    from kwire.payloads.open import open_payloads

    span = open_payloads(item.span, data, item.message.name, budget) if item.message else item.span
    return span if show_secrets else shown(item, span)


def _status(items: list[Item], wrong_checksums: int) -> Exit:
    if all(item.quality == Quality.OPAQUE for item in items):
        return Exit.NOT_KAFKA
    fine = not wrong_checksums and all(item.quality in (Quality.OK, Quality.INFERRED) for item in items)
    return Exit.OK if fine else Exit.MALFORMED


def _show(
    shown: list[tuple[Item, Span]], data: bytes, output: str, full: bool, notes: bool, elements: int, inner: bool
) -> None:
    from kwire.cli.output import DOCUMENT_WIDTH, export, show, width
    from kwire.render.decoded import item_lines, record

    if output == "json":
        from kwire.render.jsonform import write

        for item, span in shown:  # a document each, as jq takes them
            write(record(item, span, inner), sys.stdout.write)
        return
    if output == "spans":
        from kwire.render.decoded import span_rows

        for row in (row for item, span in shown for row in span_rows(item, span)):
            print(json.dumps(row, ensure_ascii=True))
        return
    wide = width() if output not in ("svg", "html") else DOCUMENT_WIDTH
    bounded = sys.stdout.isatty() or "COLUMNS" in os.environ
    lines: list[Line] = []
    for item, span in shown:
        if lines:
            lines.append([])
        lines += item_lines(item, span, data[item.start : item.end], output, wide, full, notes, elements, bounded)
    if output in ("svg", "html"):
        print(export(lines, output, shown[0][1].name))
    else:
        show(lines)


def _fields(shown: list[tuple[Item, Span]], paths: tuple[str, ...]) -> int:
    """Each path's value, a line each: text as it is, the rest as JSON; bytes raw when they are the only thing asked."""
    from kwire.codec.span import plain
    from kwire.render.decoded import find
    from kwire.render.jsonform import dumps
    from kwire.render.lines import clean

    for path in paths:
        for span in find([span for _, span in shown], path):
            value = plain(span)
            if isinstance(value, bytes) and len(shown) == len(paths) == 1 and not sys.stdout.isatty():
                sys.stdout.buffer.write(value)
            elif isinstance(value, str):
                print(clean(value))
            else:
                print(dumps(value, indent=None))
    return Exit.OK
