"""The groups of a report: for each what kwire groups says in text: findings, members, generations, and the chart."""

from __future__ import annotations

from kwire.analyze.departures import Departures
from kwire.analyze.findings import Finding
from kwire.analyze.history import History
from kwire.counted import counted
from kwire.render.findings import STYLES
from kwire.render.groups import facts_of, generation_cells, kind_of, member_cells
from kwire.render.html.markup import LINE, Content, Markup, element, joined
from kwire.render.lines import Piece, cut
from kwire.render.report.findings import Proofs, said
from kwire.render.report.material import Material
from kwire.render.report.sheets import LETTERS, Cell, Column, Sheet, SheetRow, folded
from kwire.render.timeline import chart_of
from kwire.render.timeline_svg import NARROW, WIDE, figure

GROUPS, CHARTS = 100, 15  # groups in the page, the most troubled first; those of them with charts
MEMBERS, GENERATIONS, NOTES, LANES, TICKS = 100, 150, 20, 16, 250  # of a group; TICKS of a lane


def groups_section(material: Material, proofs: Proofs) -> tuple[Markup, str]:
    """All groups, and the style of their tables."""
    judgement = material.diagnosis.case.judgement
    judged = judgement.groups if judgement is not None else []
    if not judged:
        return element("p", "No groups."), ""
    parts: list[Content] = []
    styles: list[str] = []
    for at, (history, departures, found) in enumerate(judged[: material.most(GROUPS)]):
        sheets = _members(material, history, at), _generations(material, history, departures, at)
        styles += [sheet.style for sheet in sheets if sheet.rows]
        parts.append(_group(material, history, found, sheets, at, proofs))
    if len(judged) > material.most(GROUPS):
        more = element("code", material.commands("groups", ("--all", "")))
        parts.append(element("p", f"and {len(judged) - material.most(GROUPS):,} more groups: ", more))
    return joined(parts, LINE), "".join(styles)


def _group(
    material: Material, history: History, found: list[Finding], sheets: tuple[Sheet, Sheet], at: int, proofs: Proofs
) -> Markup:
    clock = material.diagnosis.clock
    members, generations = sheets
    noun = "generation" if history.kinds["classic"] else "epoch"
    parts: list[Content] = [
        element("h3", cut(history.name, LETTERS), " ", element("span", kind_of(history), class_="dim small")),
        element("p", cut(" · ".join(facts_of(history, clock)), 4 * LETTERS), class_="dim"),
        element("p", element("code", material.commands("groups", ("--group", history.name), ("--all", "")))),
    ]
    if found:
        shown = found[: material.most(NOTES)]
        items = [
            element(
                "li", element("b", one.severity, class_=STYLES[one.severity]), " ", said(one), proofs.of(one.evidence)
            )
            for one in shown
        ]
        rest = len(found) - len(shown)
        parts.append(element("ul", *items, element("li", f"and {rest:,} more") if rest else None, class_="bare"))
    else:
        parts.append(element("p", "Nothing wrong.", class_="good"))
    chart = chart_of(history, clock, LANES) if at < material.most(CHARTS) else None
    if chart is not None:
        parts += [figure(chart, WIDE, TICKS), figure(chart, NARROW, TICKS)]
    if members.rows:
        parts.append(folded(members, counted(len(members.rows), "member")))
    if generations.rows:
        parts.append(folded(generations, counted(history.formed or len(generations.rows), noun)))
    return element("article", *parts, class_="group")


def _members(material: Material, history: History, at: int) -> Sheet:
    columns = [Column("member"), Column("host"), Column("session / rebalance"), Column("heartbeats"),
               Column("commits", True), Column("member ids")]  # fmt: skip
    seats = sorted(history.seats.all.values(), key=lambda seat: (-len(seat.errors), -len(seat.ids), -seat.beats.count))
    rows = []
    for seat in seats[: material.most(MEMBERS)]:
        cells = _cells(member_cells(seat, history))
        cells[3] = Cell(cells[3].shown, seat.beats.count)
        commits = history.commits[seat.label]
        idents = ", ".join(seat.ids[-3:]) + (f" and {len(seat.ids) - 3:,} before" if len(seat.ids) > 3 else "")
        rows.append(SheetRow([*cells, Cell(f"{commits:,}" if commits else "", commits), Cell(idents)]))
    return Sheet(f"members-{at + 1}", "Members", columns, rows, len(seats))


def _generations(material: Material, history: History, departures: Departures, at: int) -> Sheet:
    noun = "generation" if history.kinds["classic"] else "epoch"
    columns = [Column("began", True), Column("took", True), Column(noun, True), Column("what")]
    found = generation_cells(history, departures, material.diagnosis.clock, material.most(GENERATIONS))
    rows = [SheetRow(_cells(cells)) for cells in found]
    return Sheet(f"generations-{at + 1}", f"{noun.capitalize()}s", columns, rows)


def _cells(pieces: list[Piece]) -> list[Cell]:
    return [Cell(text, style=style if style in ("note", "dim", "error") else None) for text, style in pieces]
