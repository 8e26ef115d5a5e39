"""Exchanges shown while they happen, as sniff and proxy do: lines, rows of JSON, or tables that are drawn anew."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from kwire.cli.exchange_output import Shown
from kwire.cli.filters import Filter

if TYPE_CHECKING:
    from kwire.analyze.doctor import Doctor
    from kwire.capture.packets import Packets
    from kwire.session.batch import ExchangeBatch
    from kwire.session.reader import Reader


class Following:
    """Blocks of packets, an empty one when none came for a while, through a reader. seen and wanted: how many exchanges
    there were, and how many of them were given. count: ends after so many that are wanted."""

    def __init__(self, blocks: Iterable[Packets], reader: Reader, chosen: Filter, count: int | None = None) -> None:
        self.seen = self.wanted = 0
        self.each: Callable[[Packets], None] = lambda _: None  # told of every block once it is read
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
            yield kept

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

    def show_diagnosis(self, doctor: Doctor, output: str) -> bool:
        """What a doctor, who is told of connections that are over, finds in all of it; shown at the end. Whether a
        finding is an error."""
        from kwire.cli.output import show, width
        from kwire.render.findings import diagnosis_json, diagnosis_lines

        with contextlib.suppress(KeyboardInterrupt):
            for batch in self.batches():
                if batch is not None:
                    doctor.add(batch)
        diagnosis = doctor.diagnose()
        if output == "json":
            for line in diagnosis_json(diagnosis):
                print(line)
        else:
            show(diagnosis_lines(diagnosis, width()))
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
