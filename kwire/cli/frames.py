"""Single frames of a capture, for kwire decode: by packet, or by connection and number."""

from __future__ import annotations

import json
from bisect import bisect_left
from typing import TYPE_CHECKING, Any

from kwire.errors import CaptureError

if TYPE_CHECKING:
    from kwire.codec.identify import Item
    from kwire.codec.library import Library
    from kwire.session.exchange import Exchange, Message
    from kwire.session.reading import Reading


def frames_of(
    path: str, packet: int | None, connection: str | None, index: int | None, chosen: Library
) -> tuple[Reading, list[tuple[Message, Exchange]]]:
    """The frames of a packet, or those of a connection, in the order of time; index: only number N of each stream.

    Raises CaptureError when there are none, with the nearest that there are."""
    from kwire.session.reader import Settings
    from kwire.session.reading import Reading

    reading = Reading([path], Settings(library=chosen))
    found: list[tuple[Message, Exchange]] = []
    packets: list[int] = []
    names: set[str] = set()
    for exchange in reading.exchanges():
        for message in (exchange.request, exchange.response):
            if message is None or (connection is not None and connection not in exchange.conversation.name):
                continue
            names.add(exchange.conversation.name)
            packets.append(message.packet)
            in_packet = packet is None or any(number == packet for number in _packets(message))
            if in_packet and (index is None or message.index == index):
                found.append((message, exchange))
    if not found:
        raise CaptureError(path, _nearest(packet, connection, index, sorted(set(packets))))
    if packet is None and len(names) > 1:
        more = ", …" if len(names) > 4 else ""
        raise CaptureError(path, f"{len(names)} connections hold {connection}: {', '.join(sorted(names)[:4])}{more}")
    return reading, sorted(found, key=lambda pair: (pair[0].time, pair[0].kind))


def _packets(message: Message) -> list[int]:
    return [number for _, number in message.marks] or [message.packet, message.last_packet]


def _nearest(packet: int | None, connection: str | None, index: int | None, packets: list[int]) -> str:
    where = f" on a connection whose name holds {connection}" if connection else ""
    if not packets:
        return f"no frame{where}"
    if packet is None:
        return f"no frame{where} is number {index} of its stream"
    at = bisect_left(packets, packet)
    near = " and ".join(str(number) for number in packets[max(at - 1, 0) : at + 1])
    return f"no Kafka frame in packet {packet}{where}; the nearest begin in {near}"


def document(message: Message, exchange: Exchange, body: str) -> dict[str, Any]:
    """The message record, with the packets and the body."""
    from kwire.session.record import row

    packets = list(dict.fromkeys(_packets(message)))
    return {**row(message, exchange), "packets": packets, "body": json.loads(body)}


def captured_items(messages: list[Message]) -> tuple[list[Item], bytes]:
    """The frames as kwire decode shows those of a file, and their bytes in a row."""
    from kwire.codec.identify import Item

    items, pos = [], 0
    for message in messages:
        kind, frame = message.api, message.frame()
        definition = kind.message(message.kind) if kind else None
        end = pos + len(message.data)
        items.append(Item(pos, end, frame.span, definition, frame, sure=message.quality != "inferred"))
        pos = end
    return items, b"".join(message.data for message in messages)
