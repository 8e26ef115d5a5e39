"""Single frames of a capture, for kwire decode: by packet, or by connection and number."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from kwire.capture.packet_numbers import reference
from kwire.cli.references import PacketReference, captures_of, settled
from kwire.codec.quality import Quality
from kwire.counted import counted
from kwire.errors import CaptureError

if TYPE_CHECKING:
    from kwire.capture.tls.keylog import KeyLog
    from kwire.codec.identify import Item
    from kwire.codec.library import Library
    from kwire.session.exchange import Exchange, Message
    from kwire.session.reading import Reading

    Found = tuple[Message, Exchange]

MOST_LOOKED_AT = 20  # packets without a frame


def frames_of(
    paths: Sequence[str],
    wanted: Sequence[PacketReference],
    connection: str | None,
    index: int | None,
    chosen: Library,
    keys: KeyLog,
) -> tuple[Reading, list[Found], list[str]]:
    """The frames in packets, or those of a connection, in the order of time; index: only number N of each stream. And
    what to say of packets in which there is none.

    Raises CaptureError when there are none at all, with the nearest that there are."""
    from kwire.session.reader import Settings
    from kwire.session.reading import Reading

    settings = Settings(library=chosen, keys=keys, ledger=True, twins=True)  # whoever names a packet has its frame
    reading = Reading(captures_of(paths, wanted), settings, tracking=True)
    wanted = settled(wanted, reading.names)
    packets = {tuple(one) for one in wanted}
    found: list[Found] = []
    begins: list[tuple[str, int]] = []
    met: set[tuple[str, int]] = set()
    names: set[str] = set()
    for exchange in reading.exchanges():
        for message in (exchange.request, exchange.response):
            if message is None or (connection is not None and connection not in exchange.connection.name):
                continue
            names.add(exchange.connection.name)
            places = exchange.connection.places
            begins.append(places.of(message.packet))
            inside = {places.of(number) for number in _packets(message)} & packets if packets else ()
            if (inside or not packets) and (index is None or message.index == index):
                found.append((message, exchange))
                met.update(inside)
    first = str(reading.paths[0])
    begins = sorted(set(begins))
    several = len(reading.paths) > 1
    missing = [
        _nearest(one, _what(reading, one, packets) if connection is None else "", connection, begins, several)
        for one in wanted if tuple(one) not in met
    ]  # fmt: skip
    if not found and reading.encrypted:
        some = counted(reading.encrypted, "TLS connection")
        raise CaptureError(first, f"{'; '.join(missing) or 'no frame'}; {some} that only keys can open (--keylog FILE)")
    if not found and missing:
        raise CaptureError(first if not several else "captures", "; ".join(missing))
    if not found:
        where = f" on a connection whose name holds {connection}"
        raise CaptureError(first, f"no frame{where}" + (f" is number {index} of its stream" if begins else ""))
    if not packets and len(names) > 1:
        more = ", …" if len(names) > 4 else ""
        raise CaptureError(first, f"{len(names)} connections hold {connection}: {', '.join(sorted(names)[:4])}{more}")
    return reading, sorted(found, key=lambda pair: (pair[0].time, pair[0].kind)), missing


def _packets(message: Message) -> list[int]:
    return [number for _, number in message.marks] or [message.packet, message.last_packet]


def _what(reading: Reading, wanted: PacketReference, packets: Collection[object]) -> str:
    """What a packet is in which no frame lies, with a comma in front; nothing where that is not known, or would take a
    reading of the capture for each of many."""
    from kwire.capture.packet_summary import packet_summary

    path = next((path for path, name in reading.names.items() if name == wanted.file), "-")
    if path == "-" or len(packets) > MOST_LOOKED_AT:
        return ""
    said = packet_summary(path, wanted.number)
    return f", {said}" if said else ""


def _nearest(
    wanted: PacketReference, what: str, connection: str | None, begins: list[tuple[str, int]], several: bool
) -> str:
    where = f" on a connection whose name holds {connection}" if connection else ""
    packets = [number for file, number in begins if file == wanted.file]
    if not packets:
        return f"no frame{where}" + (f" in {wanted.file}" if several else "")
    at = bisect_left(packets, wanted.number)
    near = " and ".join(reference(wanted.file, number, several) for number in packets[max(at - 1, 0) : at + 1])
    packet = reference(wanted.file, wanted.number, several)
    return f"no Kafka frame in packet {packet}{what}{where}; the nearest begin in {near}"


def document(message: Message, exchange: Exchange, body: Any) -> dict[str, Any]:
    """The message record, with the packets, the TLS records and the body, JSON text or what is to be made of it."""
    from kwire.analyze.tls import records_of
    from kwire.session.record import about_row, row

    places = message.connection.places
    packets = [places.text(number) if places.several else number for number in dict.fromkeys(_packets(message))]
    records = [
        {"number": one.number, "position": one.position, "size": one.size, "length": one.length}
        for one in records_of(message)
    ]
    inside = {"tls_records": records} if records else {}
    value = json.loads(body) if isinstance(body, str) else body
    return {**row(message, exchange), **about_row(exchange.about), "packets": packets, **inside, "body": value}


def captured_items(messages: list[Message]) -> tuple[list[Item], bytes]:
    """The frames as kwire decode shows those of a file, and their bytes in a row."""
    from kwire.codec.identify import Item
    from kwire.render.topic_names import named

    items, pos = [], 0
    for message in messages:
        kind, frame = message.api, message.frame()
        if message.doubted:
            frame = replace(frame, client_id=None)
        definition = kind.message(message.kind) if kind else None
        end = pos + len(message.data)
        span = named(frame.span, message.connection.topics.name)
        hidden = partial(message.conceal, definition=definition)
        items.append(Item(pos, end, span, definition, frame, sure=message.quality != Quality.INFERRED, conceal=hidden))
        pos = end
    return items, b"".join(message.data for message in messages)
