"""The top of a report: what was captured, in numbers that lead on, and how much of it can have been seen."""

from __future__ import annotations

from datetime import UTC, datetime

from kwire.analyze.findings import lasted
from kwire.counted import counted
from kwire.render.findings import lacks
from kwire.render.html.frame import Facts
from kwire.render.html.markup import LINE, Content, Markup, element, joined
from kwire.render.lines import cut
from kwire.render.report.findings import counts_of
from kwire.render.report.material import Material
from kwire.render.report.sheets import Cell, Column, Sheet, SheetRow
from kwire.render.stats import bytes_text

REMARKS, FILES = 20, 200
LETTERS = 20_000  # of the names of all captures


def facts(material: Material) -> Facts:
    """What stands beneath the title."""
    files = material.files
    name = files[0].name if len(files) == 1 else counted(len(files), "capture")
    yield "capture" if len(files) == 1 else "captures", name
    case = material.diagnosis.case
    if case.start is not None:
        yield "time", f"{_moment(case.start)} to {_moment(case.end)} UTC ({lasted(case.end - case.start)})"
    brokers = [address for address, _ in case.participants.brokers.most_common(4)]
    more = f" and {len(case.participants.brokers) - 4:,} more" if len(case.participants.brokers) > 4 else ""
    if brokers:
        yield "brokers", ", ".join(brokers) + more
    yield "connections", f"{material.stats.kinds.total():,}"


def _moment(time: int) -> str:
    return f"{datetime.fromtimestamp(time // 1_000_000_000, UTC):%Y-%m-%d %H:%M:%S}"


def overview(material: Material) -> Markup:
    """Tiles, the coverage, and the files."""
    stats, commands, case = material.stats, material.commands, material.diagnosis.case
    errors = sum(stats.total.errors.values())
    judgement = case.judgement
    found = counts_of(material.diagnosis.findings)
    tiles = [
        (f"{stats.total.count:,}", "exchanges", commands("read")),
        (bytes_text(stats.total.sent), "sent", commands("stats")),
        (bytes_text(stats.total.got), "received", commands("stats")),
        (f"{errors:,}", "answers with errors", commands("read", ("--errors", ""))),
        (f"{stats.total.unanswered:,}", "without an answer", commands("read", ("--errors", ""))),
        (f"{len(material.clients.all):,}", "clients", commands("clients")),
        (f"{len(case.participants.brokers):,}", "brokers", commands("stats")),
        (f"{len(stats.topics):,}", "topics", commands("stats", ("--all", ""))),
        (f"{len(judgement.groups) if judgement is not None else 0:,}", "groups", commands("groups")),
        (f"{stats.kinds.total():,}", "connections", commands("stats", ("--all", ""))),
        (", ".join(found) or "none", "findings", commands("doctor")),
    ]
    shown = [element("li", element("span", label, class_="label"), " ", element("b", number), " ",
                     element("code", command)) for number, label, command in tiles]  # fmt: skip
    parts: list[Content] = [element("ul", *shown, class_="tiles")]
    if commands.definition:
        told = element("code", cut(commands.definition, LETTERS))
        summary = element("summary", "what the commands in this page need to be told first")
        parts.append(element("details", summary, element("p", told)))
    words = lacks(case)
    if case.coverage.repeated:
        words.append(f"{counted(case.coverage.repeated, 'byte')} sent again")
    parts.append(element("p", element("b", "Coverage: "), ", ".join(words), ". What the capture lacks is not judged."))
    if material.remarks:
        items = [element("li", one) for one in material.remarks[:REMARKS]]
        more = len(material.remarks) - REMARKS
        parts.append(element("ul", *items, element("li", f"and {more:,} more") if more > 0 else "", class_="note"))
    return joined(parts, LINE)


def files_sheet(material: Material) -> Sheet:
    """The captures."""
    columns = [Column("capture"), Column("size", True), Column("packets", True)]
    rows = [
        SheetRow([Cell(one.name), Cell(bytes_text(one.size) if one.size else "", one.size),
                  Cell(f"{one.packets:,}", one.packets)]) for one in material.files[: material.most(FILES)]
    ]  # fmt: skip
    return Sheet("files", "Captures", columns, rows, len(material.files))
