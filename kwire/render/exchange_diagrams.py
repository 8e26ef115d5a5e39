"""The frames of an exchange in full: diagrams with the packets beside the offsets, or the bodies' values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kwire.analyze.tls import records_text
from kwire.codec.annotate import count_bytes
from kwire.codec.quality import Quality
from kwire.records.compression import TOTAL, Budget
from kwire.render.bodies import BodyRenderer, shown_span
from kwire.render.diagram import DiagramOptions, diagram
from kwire.render.exchanges import ExchangeLines, took
from kwire.render.jsonform import to_jsonable
from kwire.render.lines import Line, clean, joined, paragraph

if TYPE_CHECKING:
    from kwire.session.exchange import Exchange, Message


def diagram_lines(
    exchange: Exchange, width: int, elements: int, full: bool, show_secrets: bool, start: int | None,
    inflate: int = TOTAL,
) -> Iterator[Line]:  # fmt: skip
    """Both frames, each with a title; start as ExchangeLines has it, inflate as BodyRenderer."""
    for message in (exchange.request, exchange.response):
        if message is not None:
            yield from message_lines(message, width, elements, full, show_secrets, start, inflate=inflate)
            yield []


def message_lines(
    message: Message, width: int, elements: int, full: bool, show_secrets: bool, start: int | None,
    notes: bool = False, inflate: int = TOTAL, exchange: Exchange | None = None,
) -> list[Line]:  # fmt: skip
    """A title, and the diagram. exchange: whose other message is named too."""
    lines = title_lines(message, width, start, exchange)
    if message.token and not show_secrets:
        return [*lines, [], [(f"{count_bytes(len(message.data) - 4)} withheld (--show-secrets)", "note")]]
    span = shown_span(message, show_secrets, Budget(inflate))
    options = DiagramOptions(width, full, notes, elements, packets=packet_marks(message))
    return [*lines, [], *diagram(span, message.data, options)]


def packet_marks(message: Message) -> tuple[tuple[int, int], ...]:
    """Of a frame in several packets where each begins in it, and its number in its file."""
    places = message.connection.places
    return tuple((offset, places.of(number)[1]) for offset, number in message.marks)


def title_lines(message: Message, width: int, start: int | None, exchange: Exchange | None = None) -> list[Line]:
    """What the message is, its packets and direction, and what is wrong with it."""
    client, broker = message.connection.ends
    source, target = (client, broker) if message.kind == "request" else (broker, client)
    parts = [(clean(message.name), "title"), (count_bytes(len(message.data)), "dim")]
    if message.correlation_id is not None:
        parts.append((f"correlation id {message.correlation_id}", "dim"))
    places = message.connection.places
    packets = f"packet {clean(places.text(message.packet))}"
    if message.last_packet != message.packet:
        packets = f"{packets.replace('packet', 'packets', 1)} to {clean(places.text(message.last_packet))}"
    parts += [(packets, "dim"), (ExchangeLines(width, start).time(message.time), "dim")]
    ends = f"{source} → {target}"
    parts += [(part, "dim") for part in ([ends] if len(ends) + 2 <= width else [source, f"→ {target}"])]
    parts.append((f"frame {message.index} of its stream", "dim"))
    if exchange is not None:
        parts.append((_partner(message, exchange), "dim"))
    records = records_text(message)
    if records is not None:
        parts.append((records, "dim"))
    lines = joined(parts, width)
    if message.note and message.quality != Quality.OK:
        lines += paragraph(clean(f"{message.quality}: {message.note}"), width, "", "error", breaks=True)
    elif message.note:
        lines += paragraph(clean(message.note), width, "", "note")
    return lines


def _partner(message: Message, exchange: Exchange) -> str:
    """Which packet holds the other message, and how long the answer took."""
    request, response = exchange.request, exchange.response
    if request is None:
        return "its request is not in the capture"
    if response is None:
        return "no answer wanted" if exchange.silent else "no answer"
    other, said = (response, "answered in") if message is request else (request, "answers")
    packet = clean(message.connection.places.text(other.packet))
    return f"{said} packet {packet}, {took(exchange.latency)}"


def body_lines(
    exchange: Exchange, width: int, inner: bool, show_secrets: bool, bounded: bool = True, inflate: int = TOTAL
) -> Iterator[Line]:
    """The bodies as JSON. bounded: long values are broken, as on a terminal; a pipe gets them in one piece. A body may
    be hundreds of megabytes: no line is kept."""
    bodies = BodyRenderer(show_secrets, inner, inflate)
    room = max(width - 6, 1)
    lines = re.compile(rf"\S.{{0,{room - 1}}}(?=\s|$)|" + (rf"\S{{1,{room}}}" if bounded else r"\S+"))
    for message, mark in ((exchange.request, "→"), (exchange.response, "←")):
        if message is None:
            continue
        value = bodies.value(message)
        value = json.loads(value) if isinstance(value, str) else to_jsonable(value)
        text = clean(json.dumps(value, ensure_ascii=False))
        del value
        for at, line in enumerate(lines.finditer(text)):
            yield [(f"    {' ' if at else mark} {line[0]}", "dim")]
