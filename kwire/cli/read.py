"""kwire read: a capture's exchanges, a line each."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, repeat
from typing import TYPE_CHECKING

import click

from kwire.cli import pager
from kwire.cli.captures import Captures, Progress, capture_options, conclude
from kwire.cli.exchange_output import Shown, shown_options
from kwire.cli.fields import DEFAULT, FORMS, ColumnsParam, printer
from kwire.cli.keylogs import with_secrets
from kwire.cli.outputs import PACKETS, form_of, packets_option
from kwire.cli.references import Packet, PacketReference, settled
from kwire.codec.quality import Quality
from kwire.counted import counted
from kwire.errors import Exit

if TYPE_CHECKING:
    from kwire.cli.filters import Filter
    from kwire.outputs import Output
    from kwire.session.batch import ExchangeBatch
    from kwire.session.connection_info import ConnectionInfo
    from kwire.session.exchange import Exchange
    from kwire.session.packets import Holders
    from kwire.session.reading import Reading

MOST_FOREIGN = 10_000  # connections that are not Kafka and are shown
FORMATS = ("text", "json", "tsv", "csv", "pcap", "pcapng")


@click.command()
@click.option("--not-kafka", is_flag=True, help="Connections that speak another protocol, and which.")
@shown_options
@click.option("--format", "output", type=click.Choice(FORMATS), default="text", help="The output format.")
@click.option(
    "--fields", type=ColumnsParam(), metavar="NAMES", help="With tsv or csv, these columns: time,api,latency_ns."
)
@click.option(
    "--frame",
    "frames",
    type=Packet(),
    multiple=True,
    metavar="N",
    help="The exchange that holds packet N; FILE:N of several captures.",
)
@packets_option("-w", "--write", name="target", purpose="Save the packets: pcapng, or pcap for x.pcap.")
@click.option("--comments", is_flag=True, help="With -w as pcapng, comments on packets: what Wireshark then shows.")
@click.option(
    "--bare",
    is_flag=True,
    help="With -w, without the exchanges needed to understand the chosen ones: client software, versions, topic names.",
)
@with_secrets
@click.option("--utc", is_flag=True, help="Times of day instead of seconds since the start.")
@click.option("-f", "--follow", is_flag=True, help="Go on while the file grows; Ctrl-C ends it.")
@capture_options
def command(
    captures: Captures, not_kafka: bool, shown: Shown, output: str, fields: tuple[str, ...] | None,
    frames: tuple[PacketReference, ...], target: Output | None, bare: bool, secrets: bool, utc: bool, follow: bool,
    comments: bool,
) -> int:  # fmt: skip
    """Reads captures and shows Kafka's conversations: each request with its answer, how long it took, what it was about
    and how it ended.

    pcap and pcapng, also gzip or zstd of them; - is stdin. --format json gives a row for each message, tsv
    and csv the columns of it that --fields names.
    """
    if fields is not None and output not in FORMS:
        if output != "text":
            raise click.UsageError("--fields is for --format tsv or csv")
        output = "tsv"
    if target is not None:
        output = form_of(target.path, PACKETS, output if output in PACKETS.values() else None, "pcapng")
    if output in PACKETS.values() and (target is None or follow):
        raise click.UsageError(f"--format {output} needs -w FILE, and captures that are whole")
    if secrets and output != "pcapng":
        raise click.UsageError("--with-secrets belongs to -w FILE as pcapng")
    if comments and output != "pcapng":
        raise click.UsageError("--comments belongs to -w FILE as pcapng")
    if target is None:
        return _read(captures, not_kafka, shown, output, target, bare, utc, follow, frames, fields)
    from kwire.cli.streams import readable_twice

    with readable_twice(captures.paths) as paths:
        whole = captures._replace(paths=paths)
        return _read(
            whole, not_kafka, shown, output, target, bare, utc, follow, frames, secrets=secrets, comments=comments
        )


def _read(
    captures: Captures, not_kafka: bool, shown: Shown, output: str, target: Output | None, bare: bool, utc: bool,
    follow: bool, frames: tuple[PacketReference, ...], fields: tuple[str, ...] | None = None, secrets: bool = False,
    comments: bool = False,
) -> int:  # fmt: skip
    from kwire.capture.packet_numbers import reference
    from kwire.session.packets import Holders

    wanted = captures.filter()
    chosen = wanted.selection
    over = Over(MOST_FOREIGN if not_kafka else 0)
    if follow:
        pager.end()
    progress = Progress(output != "text" or not sys.stdout.isatty() or pager.holds())
    told = over.add if output == "text" or not_kafka else None
    reading = captures.reading(
        told, progress, output not in PACKETS.values() or chosen.needs_about, follow, target is not None
    )
    holders = Holders(settled(frames, reading.names)) if frames else None
    tally, interrupted = ReadTally(holders), False
    try:
        batches = tally.count(reading.batches(), wanted, reading.tracking)
        if not_kafka:
            tally.drain(batches)
            return _show_not_kafka(reading, over.foreign, output, utc)
        if output == "json":
            lines = shown.message_lines()
            for batch in batches:
                sys.stdout.writelines(lines.of(batch))
                if follow:
                    sys.stdout.flush()
        elif output in FORMS:
            from kwire.render.bodies import BodyRenderer

            texts = BodyRenderer(shown.show_secrets, shown.inner, shown.inflate // 2)  # a row takes the text once more
            put = printer(fields or tuple(DEFAULT.split(",")), output, texts)
            for exchange in chain.from_iterable(batches):
                put(exchange)
                if follow:
                    sys.stdout.flush()
        elif target is not None:
            from kwire.cli.saving import save
            from kwire.render.comments import Comments
            from kwire.session.slicing import Slice

            kept = Slice(bare, chosen.everything)
            some = tally.one_by_one(reading.batches(), wanted, reading.tracking, kept.beside)
            save(reading, some, kept, output, target, secrets, Comments(numbered=False) if comments else None)
        else:
            _text(reading, batches, utc, shown, follow)
    except KeyboardInterrupt:  # what was found so far stands; the summary says that it is not all
        interrupted = not follow
    finally:
        progress.stop()
    if output == "text" and not follow:
        tally.say(over, interrupted)
    if not interrupted:
        wanted.say()
        for one in sorted(holders.missing) if holders is not None else ():
            packet = reference(*one, len(reading.names) > 1)
            print(f"kwire: no Kafka frame in packet {packet}", file=sys.stderr)
    if interrupted:
        if target is not None:
            print(f"kwire: interrupted: nothing is written to {target}", file=sys.stderr)
        return Exit.INTERRUPTED
    return conclude(reading, tally.seen > 0, tally.malformed > 0)


class Over:
    """Connections that are over: how many, and the first so many that are not Kafka."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.kafka = self.others = self.missing = self.left_out = self.encrypted = 0
        self.foreign: list[ConnectionInfo] = []

    def add(self, connection: ConnectionInfo) -> None:
        from kwire.analyze.tls import session_of

        self.kafka += connection.is_kafka
        if connection.is_kafka:
            self.missing += sum(stream.missing for stream in connection.tcp.streams)
            self.left_out += sum(stream.left_out for stream in connection.tcp.streams)
        if connection.verdict is not None:
            session = session_of(connection)
            self.encrypted += session is not None and session.encrypted
            self.others += session is None or not session.encrypted
            if len(self.foreign) < self._most:
                self.foreign.append(connection)


class ReadTally:
    """Counts what passes by."""

    def __init__(self, holders: Holders | None = None) -> None:
        self._holders = holders
        self.seen = self.shown = self.malformed = self.wrong = self.unanswered = 0

    def count(self, batches: Iterable[ExchangeBatch], wanted: Filter, tracking: bool) -> Iterator[ExchangeBatch]:
        """What is wanted of them. tracking: what exchanges are about is asked for."""
        for batch in batches:
            yield self._kept(batch, wanted, tracking)

    def one_by_one(
        self, batches: Iterable[ExchangeBatch], wanted: Filter, tracking: bool, beside: Callable[[Exchange], None]
    ) -> Iterator[Exchange]:
        """The same, in their order. beside: takes notice of the others meanwhile."""
        for batch in batches:
            kept = self._kept(batch, wanted, tracking)
            rows = range(len(batch)) if kept.rows is None else kept.rows
            places = {row: place for place, row in enumerate(rows)}
            for row in range(len(batch)):
                if row in places:
                    yield kept[places[row]]
                else:
                    beside(batch[row])

    def _kept(self, batch: ExchangeBatch, wanted: Filter, tracking: bool) -> ExchangeBatch:
        self.seen += len(batch)
        self.malformed += batch.count_of(Quality.MALFORMED)
        kept = wanted.wanted(batch, tracking)
        if self._holders is not None:
            kept = self._holders.of(kept)
        self.shown += len(kept)
        self.wrong += int((kept.errors > 0).sum())
        self.unanswered += int((~kept.response.there & ~kept.silent).sum())
        return kept

    def drain(self, batches: Iterator[ExchangeBatch]) -> None:
        for _ in batches:
            pass

    def say(self, over: Over, interrupted: bool) -> None:
        """A line on stderr: how much there was."""
        kafka, other = over.kafka, over.others
        of = f" of {self.seen:,}" if self.shown != self.seen else ""
        parts = [counted(self.shown, "exchange") + of]
        if self.wrong:
            parts.append(f"{self.wrong:,} with errors")
        if self.unanswered:
            parts.append(f"{self.unanswered:,} without an answer")
        parts.append(f"on {counted(kafka, 'connection')}")
        if over.missing:
            parts.append(f"{counted(over.missing, 'byte')} missing from the capture")
        if over.left_out:
            parts.append(f"{counted(over.left_out, 'byte')} left out of this slice")
        if over.encrypted:
            parts.append(f"{counted(over.encrypted, 'connection')} encrypted{'' if other else ' (--not-kafka)'}")
        if other:
            parts.append(f"{counted(other, 'connection')} not Kafka (--not-kafka)")
        sys.stdout.flush()
        print(f"kwire: {'interrupted: ' if interrupted else ''}{', '.join(parts)}", file=sys.stderr)


def _text(reading: Reading, batches: Iterable[ExchangeBatch], utc: bool, shown: Shown, at_once: bool) -> None:
    from kwire.cli.output import PIPE_WIDE, colored, show, width
    from kwire.render.exchange_texts import ExchangeTexts
    from kwire.render.exchanges import ExchangeLines

    bounded = sys.stdout.isatty() or "COLUMNS" in os.environ
    columns = width(PIPE_WIDE)
    beneath = shown.beneath(columns, bounded)
    lines: ExchangeLines | None = None
    texts: ExchangeTexts | None = None
    for batch in batches:
        if lines is None and len(batch):
            lines = ExchangeLines(columns, None if utc else _first_time(reading), bounded, shown.verbose)
            show([lines.head()])
            if not bounded and not colored() and shown.lines_alone and lines.columns.size:
                texts = ExchangeTexts(lines)
        skips = reading.take_skipped(int(batch.time.max())) if len(batch) else []
        made = texts.of(batch) if texts is not None else repeat(None)
        times = batch.time.tolist() if skips else ()
        for row, text in zip(range(len(batch)), made, strict=False):
            while skips and skips[0][2].time <= times[row]:
                connection, side, skipped = skips.pop(0)
                show(lines.gap(connection, side, skipped) if lines else ())
            if text is not None:
                sys.stdout.write(text)
                continue
            assert lines is not None
            exchange = batch[row]
            show(lines.lines(exchange))
            show(beneath(exchange, lines.start))
        if at_once:
            sys.stdout.flush()
    for connection, side, skipped in reading.take_skipped(None):
        lines = lines or ExchangeLines(columns, None if utc else _first_time(reading), bounded)
        show(lines.gap(connection, side, skipped))


def _first_time(reading: Reading) -> int:
    return min((reader.first_time for reader in reading.readers if reader.first_time is not None), default=0)


def _show_not_kafka(reading: Reading, over: list[ConnectionInfo], output: str, utc: bool) -> int:
    import json

    from kwire.cli.output import show, width
    from kwire.render.not_kafka import lines_of, row_of

    found = sorted((known for known in over if known.verdict), key=lambda known: known.tcp.first_time)
    if output == "json":
        for connection in found:
            print(json.dumps(row_of(connection)))
    else:
        start = None if utc else _first_time(reading)
        for connection in found:
            show(lines_of(connection, width(), start))
    conclude(reading, True, False)
    return Exit.OK
