"""The connections of a report: how many of what kind, and each with which something is wrong."""

from __future__ import annotations

from kwire.analyze.findings import lasted
from kwire.analyze.stats import ConnectionRow
from kwire.counted import counted
from kwire.render.html.markup import LINE, Markup, element, joined
from kwire.render.report.commands import Option
from kwire.render.report.material import Material
from kwire.render.report.sheets import Cell, Column, Sheet, SheetRow
from kwire.render.stats import FINE, GRAVE

ROWS = 400


def connections_section(material: Material) -> tuple[Markup, Sheet]:
    """What there is in words, and the table: those with which something is wrong first, then the busiest."""
    stats = material.stats
    words = ", ".join(f"{count:,} {what}" for what, count in stats.kinds.most_common(20))
    wrong = sum(bool(_wrong(row)) for row in stats.connections)
    said = f"{words or 'none'}."
    said += f" {counted(wrong, 'connection')} with something wrong." if wrong else ""
    untold = stats.connections_untold
    said += f" Of {counted(untold, 'connection')} no more is told than what they are." if untold else ""
    made = sheet(material)
    return joined([element("p", said), made.markup], LINE), made


def sheet(material: Material) -> Sheet:
    """The table."""
    columns = [
        Column("connection"), Column("what is wrong"), Column("speaks"), Column("exchanges", True),
        Column("began", True), Column("lasted", True), Column("ended"), Column("bytes missing", True),
    ]  # fmt: skip
    clock, found = material.diagnosis.clock, material.stats.connections
    ordered = sorted(found, key=lambda row: (not _wrong(row), -row.exchanges, row.first_time))
    rows = []
    for row in ordered[: material.most(ROWS)]:
        span, wrong = row.last_time - row.first_time, _wrong(row)
        given: list[Option] = [("--connection", row.name)] if row.exchanges else [("--not-kafka", "")]
        rows.append(SheetRow([
            Cell(row.name), Cell(wrong, style="error" if wrong else None), Cell(row.what),
            Cell(f"{row.exchanges:,}", row.exchanges), Cell(f"{clock(row.first_time)} s", row.first_time),
            Cell(lasted(span), span), Cell(row.ending), Cell(f"{row.missing:,}" if row.missing else "", row.missing),
        ], material.commands("read", *given)))  # fmt: skip
    total = material.stats.kinds.total()
    return Sheet("connections", "Connections", columns, rows, total, material.commands("stats", ("--all", "")))


def _wrong(row: ConnectionRow) -> str:
    """What is not as it should be; empty when all is."""
    said = [f"{count:,} {quality}" for quality, count in row.qualities.items() if quality in GRAVE]
    said += [f"{counted(row.missing, 'byte')} missing"] if row.missing else []
    said += [f"{counted(row.skipped, 'byte')} skipped"] if row.skipped else []
    said += [row.what] if row.what not in FINE and "encrypted" not in row.what else []
    return ", ".join(said)
