"""What a report shows over time: exchanges, bytes, how long answers took, and the same as a table."""

from __future__ import annotations

from collections.abc import Sequence

from kwire.analyze.overtime import percentile
from kwire.analyze.work import HELD_APIS
from kwire.render.exchanges import took
from kwire.render.html.markup import LINE, Content, Markup, element, joined
from kwire.render.report.material import Material
from kwire.render.report.plots import PARTS, Plots, shown_bins
from kwire.render.report.sheets import Cell, Column, Sheet, SheetRow
from kwire.render.stats import bytes_text

ROWS = 40  # of the table


def times_section(material: Material) -> Markup:
    """The plots."""
    over = material.over.grouped(PARTS)
    if not over.count:
        return element("p", "No exchanges.")
    plots, step = Plots(over, material.diagnosis.clock), took(over.length)
    volume = max(map(sum, zip(over.sent, over.got, strict=True)))
    exchanges, most = sum(over.exchanges), max(over.exchanges)
    parts: list[Content] = [
        plots.bars("Exchanges", f"{exchanges:,} in all; at most {most:,} in {step}",
                   [("exchanges", "c0", over.exchanges)], f"{most:,}"),
        plots.bars("Bytes", f"at most {bytes_text(volume)} in {step}",
                   [("received by clients", "c4", over.got), ("sent by clients", "c1", over.sent)], bytes_text(volume)),
    ]  # fmt: skip
    low, high = shown_bins(over.prompt, over.held)
    held = ", ".join(sorted(HELD_APIS))
    for title, words, counts in (
        ("Latency", "of requests that are answered as soon as they can be", over.prompt),
        ("Held time", f"of requests that a broker may hold until something happens ({held})", over.held),
    ):
        whole = [sum(column) for column in zip(*counts, strict=True)]
        if any(whole):
            said = f"{words}: half within {_share(whole, 0.5)}, 99% within {_share(whole, 0.99)}"
            parts.append(plots.density(title, said, counts, low, high))
    if any(over.wrong):
        parts.append(plots.bars("Errors", f"{sum(over.wrong):,} answers with errors, and requests without an answer", [
            ("errors", "error", over.wrong)], f"{max(over.wrong):,}"))  # fmt: skip
    return joined(parts, LINE)


def times_sheet(material: Material) -> Sheet:
    """What the plots show, as numbers."""
    over = material.over.grouped(ROWS)
    clock = material.diagnosis.clock
    columns = [
        Column("from", True), Column("exchanges", True), Column("bytes", True), Column("errors", True),
        Column("p50", True), Column("p99", True), Column("held p50", True), Column("held p99", True),
    ]  # fmt: skip
    rows = []
    wrong = over.wrong
    for at in range(over.count):
        begin = over.start + at * over.length
        size, errors = over.sent[at] + over.got[at], wrong[at]
        latencies = [(over.prompt[at], 0.5), (over.prompt[at], 0.99), (over.held[at], 0.5), (over.held[at], 0.99)]
        window = [("--from", f"+{clock(begin)}s"), ("--to", f"+{clock(begin + over.length)}s")]
        rows.append(SheetRow([
            Cell(f"{clock(begin)} s", at), Cell(f"{over.exchanges[at]:,}", over.exchanges[at]),
            Cell(bytes_text(size), size),
            Cell(f"{errors:,}" if errors else "", errors, "--errors", "error" if errors else None),
            *(Cell(_share(counts, share), percentile(counts, share) or 0) for counts, share in latencies),
        ], material.commands("read", *window)))  # fmt: skip
    return Sheet("times", f"Over time, {took(over.length)} a row", columns, rows)


def _share(counts: Sequence[int], share: float) -> str:
    value = percentile(counts, share)
    return "" if value is None else took(value)
