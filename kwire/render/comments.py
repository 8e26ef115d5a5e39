"""What kwire says of packets, as comments that pcapng keeps with them and Wireshark shows: which messages begin or end
there, what they are about, and how the exchange ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.codec.quality import Quality
from kwire.render.exchanges import about_text, outcome_of, took
from kwire.render.lines import clean, cut

if TYPE_CHECKING:
    from kwire.capture.packet_numbers import PacketFiles
    from kwire.session.exchange import Exchange, Message

LONGEST = 400  # characters about a message
MOST = 20  # messages of a packet


class Comments:
    """add(exchange) notes what is to be said of its packets; of(places, number) and take(number) tell it. numbered: the
    packets keep their numbers, so that comments may name them."""

    def __init__(self, numbered: bool = True) -> None:
        self._numbered = numbered
        self._said: dict[int, dict[int, list[str]]] = {}
        self._places: list[PacketFiles] = []  # kept, so that no other one gets their id

    def add(self, exchange: Exchange) -> None:
        """An exchange that is complete."""
        places = exchange.connection.places
        if id(places) not in self._said:
            self._places.append(places)
        said = self._said.setdefault(id(places), {})
        for message, text in ((exchange.request, asked), (exchange.response, answered)):
            if message is not None:
                words = cut(text(exchange, message, self._numbered), LONGEST)
                for number in dict.fromkeys((message.packet, message.last_packet)):
                    whole = message.packet == message.last_packet
                    part = "" if whole else " (begins here)" if number == message.packet else " (ends here)"
                    said.setdefault(number, []).append(f"Kafka: {words}{part}")

    def of(self, places: PacketFiles, number: int) -> str:
        """What is said of a packet, a line each message; empty when nothing."""
        return _joined(self._said.get(id(places), {}).get(number, []))

    def take(self, number: int) -> str:
        """The same, of the only capture that there is, and forgotten."""
        return _joined([line for said in self._said.values() for line in said.pop(number, [])])


def _joined(lines: list[str]) -> str:
    more = [f"and {len(lines) - MOST:,} more messages"] if len(lines) > MOST else []
    return "\n".join([*lines[:MOST], *more])


def asked(exchange: Exchange, message: Message, numbered: bool) -> str:
    """Of a request: as "FetchRequest v16 from billing-1, id 12: group billing orders-0; ok after 3.1 ms, packet 14"."""
    about, answer = about_text(exchange.about), exchange.response
    then = outcome_of(exchange)[0]
    if answer is not None:
        then += f" after {took(exchange.latency)}" + (f", packet {answer.packet}" if numbered else "")
    return f"{_named(message)}{': ' + about if about else ''}; {then}"


def answered(exchange: Exchange, message: Message, numbered: bool) -> str:
    """Of a response: as "FetchResponse v16 to billing-1, id 12: ok after 3.1 ms; group billing orders-0, packet 9"."""
    about, request = about_text(exchange.about), exchange.request
    said = outcome_of(exchange)[0]
    if request is not None:
        said += f" after {took(exchange.latency)}" + (f", asked in packet {request.packet}" if numbered else "")
    return f"{_named(message)}: {said}{'; ' + about if about else ''}"


def _named(message: Message) -> str:
    client = f" {'from' if message.kind == 'request' else 'to'} {clean(message.client_id)}" if message.client_id else ""
    ident = "" if message.correlation_id is None else f", id {message.correlation_id}"
    why = f": {clean(message.note)}" if message.note else ""
    note = f" ({message.quality}{why})" if message.quality != Quality.OK else ""
    return f"{message.name}{client}{ident}{note}"
