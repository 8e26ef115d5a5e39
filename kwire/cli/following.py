"""Exchanges shown while they happen, as sniff and proxy do: lines, rows of JSON, or tables that are drawn anew."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from kwire.cli.exchange_output import Shown
from kwire.cli.filters import Filter

if TYPE_CHECKING:
    from kwire.analyze.live import LiveDoctor
    from kwire.capture.packets import Packets
    from kwire.session.batch import ExchangeBatch
    from kwire.session.reader import Reader, Settings

LOOK = 2.0  # seconds between two looks of a doctor
PATIENCE = 60_000_000_000  # ns: longer than the usual long polls
SELDOM = 20  # times as long as a look took, at least


def patient(settings: Settings) -> Settings:
    """How traffic is read that a doctor takes in the order of time: an exchange waits so long for an older one."""
    return replace(settings, patience=PATIENCE)


class Following:
    """Blocks of packets, an empty one when none came for a while, through a reader. seen and wanted: how many exchanges
    there were, and how many of them were given. count: ends after so many that are wanted."""

    def __init__(self, blocks: Iterable[Packets], reader: Reader, chosen: Filter, count: int | None = None) -> None:
        self.seen = self.wanted = 0
        self.each: Callable[[Packets], None] = lambda _: None  # told of every block once it is read
        self.told: Callable[[ExchangeBatch], None] = lambda _: None  # of the exchanges that are wanted, before others
        self._blocks, self._reader, self._chosen, self._count = blocks, reader, chosen, count

    def batches(self) -> Iterator[ExchangeBatch | None]:
        """Exchanges that are wanted, as they become complete; None when a moment passed without any."""
        for packets in self._blocks:
            found = self._reader.feed(packets) if len(packets) else self._reader.tick(time.time_ns())
            self.each(packets)
            yield from self._wanted(found)
            if self.wanted == self._count:
                return
            if not found:
                yield None
        yield from self._wanted(self._reader.finish())

    def _wanted(self, found: Iterable[ExchangeBatch]) -> Iterator[ExchangeBatch]:
        for batch in found:
            self.seen += len(batch)
            kept = self._chosen.wanted(batch, tracking=True)
            if self._count is not None and self.wanted + len(kept) > self._count:
                kept = kept.first(self._count - self.wanted)
            self.wanted += len(kept)
            self.told(kept)
            yield kept

    def run(self) -> None:
        """Shows nothing: whoever is told shows it."""
        for _ in self.batches():
            pass

    def show(self, output: str, shown: Shown) -> None:
        """A line each, or with output json rows."""
        from kwire.cli.output import PIPE_WIDE, show, width
        from kwire.render.exchanges import ExchangeLines

        columns = width(PIPE_WIDE)
        lines = ExchangeLines(columns, None, sys.stdout.isatty() or "COLUMNS" in os.environ, shown.verbose)
        rows, beneath = shown.message_lines(), shown.beneath(columns, lines.bounded)
        if output == "text":
            show([lines.head()])
        for batch in self.batches():
            if batch is None:
                sys.stdout.flush()
            elif output == "json":
                sys.stdout.writelines(rows.of(batch))
            else:
                for exchange in batch:
                    show(lines.lines(exchange))
                    show(beneath(exchange, None))

    def show_diagnosis(self, doctor: LiveDoctor, output: str) -> bool:
        """What a doctor, who is told of connections that are over, finds: as it becomes certain, and when there is more
        of it. At the end all of it; of json, what is new since. Whether a finding is an error."""
        from kwire.analyze.findings import TimeFormat
        from kwire.analyze.live import gathered_news
        from kwire.cli.output import show, width
        from kwire.render.findings import diagnosis_lines, news_lines, record_line

        due, columns = time.monotonic() + LOOK, width()
        try:
            for batch in self.batches():
                if batch is not None:
                    doctor.add(batch)
                if time.monotonic() < due:
                    continue
                began, before = time.monotonic(), doctor.aged
                news = doctor.look(self._reader.open_connections)
                if output == "text":
                    show(news_lines(gathered_news(news), columns))
                else:
                    for told in news:
                        if not told.gone:
                            print(record_line(told.finding))
                if doctor.aged is not None and doctor.aged != before:
                    print(f"kwire: facts before {TimeFormat()(doctor.aged)} are let go; what was found stays",
                          file=sys.stderr)  # fmt: skip
                sys.stdout.flush()
                due = time.monotonic() + max(LOOK, SELDOM * (time.monotonic() - began))
        except KeyboardInterrupt:
            for batch in self._wanted(self._reader.finish()):
                doctor.add(batch)
        diagnosis = doctor.diagnose(self._reader.open_connections)
        if output == "text":
            show([[], *diagnosis_lines(diagnosis.gathered(), columns)])
        else:
            for finding in doctor.untold:
                print(record_line(finding))
        return diagnosis.grave

    def show_stats(self) -> None:
        """The tables of kwire stats: refreshed on a terminal, once at the end in a pipe."""
        from kwire.analyze.stats import Stats
        from kwire.cli.output import show, text_of, width
        from kwire.render.stats import stats_lines

        stats = Stats()
        if not sys.stdout.isatty():
            for batch in self.batches():
                if batch is not None:
                    stats.add(batch)
            show(stats_lines(stats, width()))
            return
        from rich.live import Live as Screen

        drawn = 0.0
        with Screen(auto_refresh=False, vertical_overflow="crop") as screen, contextlib.suppress(KeyboardInterrupt):
            for batch in self.batches():
                if batch is not None:
                    stats.add(batch)
                if time.monotonic() - drawn > 0.5:
                    drawn = time.monotonic()
                    stats.connections_of(self._reader.open_connections)
                    screen.update(text_of(stats_lines(stats, width())), refresh=True)
