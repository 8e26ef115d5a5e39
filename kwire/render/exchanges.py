"""Exchanges, a line each: what differs first, what is wrong in red. Wide terminals and pipes get every column."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from kwire.capture.packet_numbers import reference
from kwire.codec.quality import Quality
from kwire.counted import counted
from kwire.render.lines import Line, Piece, Shortener, clean, cut, paragraph
from kwire.session.pairing import LOST
from kwire.session.quorum import METADATA_TOPIC
from kwire.session.record import START_UP, error_name

if TYPE_CHECKING:
    from kwire.session.about import About
    from kwire.session.connection_info import ConnectionInfo
    from kwire.session.exchange import Exchange
    from kwire.session.framing import Skipped

WIDE, BROKER, MIDDLE = 150, 120, 100  # columns from which all, the broker too, and most of the columns are shown
MEANT = {("ApiVersions", 35), ("Heartbeat", 27)}  # answers that only say how to go on: in v0 form; by joining anew
BAD = (Quality.MALFORMED, Quality.GAP, Quality.TRUNCATED, Quality.UNSUPPORTED, Quality.TRAILING)
CUT = (Quality.TRUNCATED, Quality.GAP)
REFUSALS = {"the connection closed": "the broker closed", "the connection was reset": "the broker reset"}
ENDINGS = {
    "the connection was reset": "reset", "the connection closed": "closed", "the capture ended": "capture ends",
    "a later request was answered": "passed over", LOST: "missing from the capture",
    "the connection fell silent": "silence",
}  # fmt: skip
TOPICS = 3  # named in a line, at most
PARTITIONS = 6
ABOUT = 40  # columns for what it is about, and at least so many where an outcome is long
LEAST = 12
NARROWEST = 7  # columns that a cell keeps behind others that are longer than theirs: 16.3 ms, 9999999
ABOUT_HEAD = "about · outcome"
LONGEST = 28  # columns of the longest usual outcome


class ColumnWidths(NamedTuple):
    """Widths; 0 leaves the column out."""

    time: int
    packets: int
    client: int
    broker: int
    api: int
    ident: int
    size: int
    took: int

    @property
    def behind(self) -> int:
        """The columns that say who asks whom what."""
        return sum(width + 2 for width in (self.client, self.broker, self.api) if width)


class ExchangeLines:
    """line(exchange) gives its lines. start: what times count from, ns; None shows clock times, UTC.

    bounded: what is about and does not fit is cut, as on a terminal; a pipe gets all of it. verbose: of each message
    the packets with its first and its last byte, whatever the width.
    """

    def __init__(self, width: int, start: int | None, bounded: bool = True, verbose: bool = False) -> None:
        self.start, self.width, self.bounded, self.verbose = start, width, bounded, verbose
        self._clients, self._brokers = Shortener(), Shortener()
        time = 15 if start is None else 11 if width >= MIDDLE else 10
        if width >= WIDE:
            self.columns = ColumnWidths(time, 13, 28 + min((width - WIDE) // 3, 16), 18, 24, 7, 7, 8)
        elif width >= BROKER:
            self.columns = ColumnWidths(time, 7, 15, 15, 21, 6, 0, 7)
        elif width >= MIDDLE:
            self.columns = ColumnWidths(time, 0, 15, 0, 22, 6, 0, 8)
        else:
            self.columns = ColumnWidths(time, 0, 11, 0, 20, 0, 0, 8)
        if verbose:
            self.columns = self.columns._replace(packets=15)

    def head(self) -> Line:
        c = self.columns
        parts = [f"{'time':>{c.time}}"]
        if c.packets:
            parts.append(f"{'packet':<{c.packets}}")
        parts.append(f"{'client':<{c.client}}")
        if c.broker:
            parts.append(f"{'broker':<{c.broker}}")
        parts.append(f"{'exchange':<{c.api}}")
        if c.ident:
            parts.append(f"{'id':>{c.ident}}")
        if c.size:
            parts += [f"{'sent':>{c.size}}", f"{'got':>{c.size}}"]
        parts.append(f"{'took':>{c.took}}")
        if len("  ".join([*parts, ABOUT_HEAD])) <= self.width:
            parts.append(ABOUT_HEAD)
        return [("  ".join(parts), "head")]

    def lines(self, exchange: Exchange) -> list[Line]:
        """One line; a second one where a long outcome leaves no room for what it is about."""
        c, first = self.columns, exchange.first
        client, broker = exchange.connection.ends
        name = clean(exchange.client_id or "")
        row = _Row(self.bounded)
        row.put(self.time(exchange.time), c.time, "offset", right=True, whole=True)
        if c.packets:
            row.put(self.packets(exchange), c.packets, "dim", whole=True)
        row.put(f"{name} {client}".strip() if c.size else name or client, c.client, "", shorten=self._clients.short)
        if c.broker:
            row.put(broker, c.broker, "dim", shorten=self._brokers.short)
        behind = sum(width + 2 for width in (c.ident, c.size, c.size, c.took) if width)
        row.put(self._api(exchange, self.width - row.used - behind), c.api, "name", whole=True)
        if c.ident:
            row.put("" if first.correlation_id is None else str(first.correlation_id), c.ident, "dim", right=True)
        if c.size:
            for message in (exchange.request, exchange.response):
                row.put(str(message.size) if message else "", c.size, "dim", right=True)
        row.put(took(exchange.latency), c.took, "", right=True)
        about, (outcome, style) = about_text(exchange.about), outcome_of(exchange)
        if not self.bounded:
            row.put(about, ABOUT, "")
            return [[*row.pieces, (outcome, style)]]
        row.settle()
        left = self.width - row.used
        room = left - len(outcome) - 2
        if room >= min(len(about), LEAST):
            row.put(about, min(room, max(ABOUT, left - LONGEST)), "")
            return [[*row.pieces, (outcome, style)]]
        if not about and len(outcome) <= left:
            return [[*row.pieces, (outcome, style)]]
        if left - 2 >= LEAST and len(outcome) > LEAST:
            row.put(about, left - 2, "")
        elif about:  # no room for it beside the rest
            indent = c.time + 2
            room = self.width - indent - 4 - len(outcome)
            if room >= min(len(about), ABOUT // 2):
                return [row.pieces, [(f"{'':{indent}}╰ {cut(about, room)}  ", ""), (outcome, style)]]
            return [row.pieces, *self._beneath(f"╰ {about}", ""), *self._beneath(f"  {outcome}", style)]
        return [row.pieces, *self._beneath(f"╰ {outcome}", style)]

    def packets(self, exchange: Exchange) -> str:
        """The packets that hold it, as 17→19, of several files ring2.pcap:17→19; in narrow lines the first alone."""
        places = exchange.connection.places
        parts: list[str] = []
        file = ""
        for message in (exchange.request, exchange.response):
            if message is None:
                continue
            (name, first), (end_name, last) = places.of(message.packet), places.of(message.last_packet)
            text = reference(name, first, places.several and name != file)
            if self.verbose and message.last_packet != message.packet:
                text += f"-{reference(end_name, last, places.several and end_name != name)}"
            parts.append(text)
            file = end_name
        return "→".join(parts if self.verbose or self.columns.size else parts[:1])

    def _api(self, exchange: Exchange, room: int) -> str:
        """The API and its version; on a terminal the name is cut where the line has no room for it, and where it would
        push the rest away."""
        version = "" if exchange.api_version is None else f" v{exchange.api_version}"
        if not self.bounded:
            return exchange.api + version
        return cut(exchange.api, max(room - len(version) - 2, LEAST)) + version

    def _beneath(self, text: str, style: str) -> list[Line]:
        """Behind the column of times, as many lines as it takes."""
        indent = " " * (self.columns.time + 2)
        return paragraph(text, self.width, indent, style, indent + "  ", breaks=True)

    def gap(self, connection: ConnectionInfo, side: str, skipped: Skipped) -> list[Line]:
        """Bytes of which no frame could be made."""
        c = self.columns
        client, broker = connection.ends
        source = client if side == "request" else broker
        size = counted(skipped.length, "byte")
        text = f"{size} from {source} skipped at position {skipped.position:,}: {skipped.reason}"
        time = f"{self.time(skipped.time):>{c.time}}  "
        first, *others = paragraph(text, self.width - len(time), "", "note") if self.bounded else [[(text, "note")]]
        return [[(time, "offset"), *first], *([(" " * len(time), ""), *line] for line in others)]

    def time(self, moment: int) -> str:
        """Seconds since the start, or the time of day."""
        if self.start is None:
            return clock(moment)
        micro = (moment - self.start) // 1000
        sign = "-" if micro < 0 else ""
        return f"{sign}{abs(micro) // 1_000_000}.{abs(micro) % 1_000_000:06d}"


def clock(moment: int) -> str:
    """ns since the epoch as 14:03:22.104311, UTC."""
    seconds, rest = divmod(moment, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%H:%M:%S}.{rest // 1000:06d}"


def took(latency: int | None) -> str:
    """ns as 0.4 ms, 31 ms, 1.52 s."""
    if latency is None:
        return ""
    if abs(latency) < 9_950_000:
        return f"{latency / 1e6:.1f} ms" if abs(latency) >= 50_000 else f"{latency / 1e6:.2f} ms"
    if abs(latency) < 999_500_000:
        return f"{latency / 1e6:.0f} ms"
    return f"{latency / 1e9:.2f} s"


def about_text(about: About) -> str:
    """As "group billing gen 3 orders-0,1 +5 topics"."""
    parts = []
    if about.groups:
        parts.append("group " + _some([clean(name) for name in about.groups], 2, " "))
    if about.groups and about.generation is not None and about.generation >= 0:
        parts.append(f"gen {about.generation}")
    if about.groups and about.epoch is not None:
        parts.append(f"epoch {about.epoch}")
    if about.transactions:
        parts.append("txn " + _some([clean(name) for name in about.transactions], 2, " "))
    if list(about.topics) == [METADATA_TOPIC] and about.words:
        return clean(" ".join(about.words))
    names = [_topic(name, partitions) for name, partitions in list(about.topics.items())[:TOPICS]]
    if len(about.topics) > TOPICS:
        names.append(f"+{counted(len(about.topics) - TOPICS, 'topic')}")
    return " ".join(clean(part) for part in [*parts, *names, *about.words] if part)


def _topic(name: str, partitions: list[int]) -> str:
    if not partitions:
        return clean(name)
    return f"{clean(name)}-{_some([str(number) for number in partitions], PARTITIONS, ',')}"


def _some(names: list[str], most: int, between: str) -> str:
    shown = between.join(names[:most])
    return f"{shown}{between}+{len(names) - most}" if len(names) > most else shown


def outcome_of(exchange: Exchange) -> Piece:
    """How it ended, and the style for it."""
    request, response = exchange.request, exchange.response
    text, style = _ending(exchange)
    for message, side in ((request, "request"), (response, "answer")):
        if message is not None and message.quality in BAD and text != "outcome not captured":
            return f"{text}, {side} {message.quality}" if text else f"{side} {message.quality}", "error"
    return text, style


def _ending(exchange: Exchange) -> Piece:
    response = exchange.response
    if response is None:
        if exchange.silent:
            return "no answer wanted", "dim"
        ending = exchange.ending or ""
        if ending.startswith("the broker answered with"):  # with the first words of another protocol
            return f"no answer: {clean(ending)}", "error"
        if exchange.first.token and ending in REFUSALS:
            return f"no answer: {REFUSALS[ending]}, as after wrong credentials", "error"
        return f"no answer: {ENDINGS[ending]}" if ending in ENDINGS else "no answer", "note"
    if exchange.request is None:
        return f"orphan answer{'' if response.api is None else ' (inferred)'}", "note"
    code = exchange.error
    if code is None:
        return ("outcome not captured", "note") if response.quality in CUT else ("ok", "good")
    ordinary = code in START_UP or (exchange.api, code) in MEANT
    return error_text(code, len(response.errors)), "note" if ordinary else "error"


def error_text(code: int, count: int) -> str:
    """The first of so many errors, and how many more there are."""
    name = clean(error_name(code) or "")
    return f"{name} +{count - 1}" if count > 1 else name


def remarks(exchange: Exchange) -> Iterator[str]:
    """What is said of its messages beyond the line: why a frame is not as it should be."""
    for message in (exchange.request, exchange.response):
        if message is not None and message.note and message.quality not in (Quality.OK, Quality.OPAQUE):
            yield f"{message.name}: {message.note}"


class _Row:
    """Cells in their columns. What is longer than its column is cut, or, in a pipe, makes the next ones narrower."""

    def __init__(self, bounded: bool) -> None:
        self.pieces: Line = []
        self.used = 0
        self._bounded = bounded
        self._end = 0  # where the columns put so far should end

    def settle(self) -> None:
        """What comes next begins where the cells end, be it behind their columns."""
        self._end = self.used

    def put(
        self, text: str, width: int, style: str, right: bool = False, whole: bool = False,
        shorten: Callable[[str, int], str] = cut,
    ) -> None:  # fmt: skip
        """whole: never cut, whatever the width; shorten: how it is cut otherwise."""
        self._end += width + 2
        room = max(self._end - 2 - self.used, 0)
        if self._bounded and not whole and len(text) > room:
            text = shorten(text, max(room, min(len(text), width, NARROWEST)))
        room = max(room, len(text))
        cell = f"{text:>{room}}  " if right else f"{text:<{room}}  "
        self.pieces.append((cell, style))
        self.used += len(cell)
