"""The whole report as one HTML page: its sections in order, with the style and the script that only it has."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files as resources

from kwire.render.html.frame import page
from kwire.render.html.markup import LINE, Content, Markup, element, joined
from kwire.render.report.connections import connections_section
from kwire.render.report.counts import (
    apis_sheet,
    brokers_sheet,
    clients_sheet,
    errors_sheet,
    failures_sheet,
    spoken_sheet,
    throttled_sheet,
    topics_sheet,
)
from kwire.render.report.findings import Proofs, findings_section
from kwire.render.report.groups import groups_section
from kwire.render.report.material import Material
from kwire.render.report.overview import facts, files_sheet, overview
from kwire.render.report.sheets import Sheet, folded
from kwire.render.report.times import times_section, times_sheet
from kwire.render.stats import HELD
from kwire.render.timeline_svg import page_style

MOST, LEAST = 2_000_000, 0.01  # bytes of the page; the share of what is usual from which on no less is in it
STAYS = "Made by kwire report: one file, nothing is loaded from elsewhere. Secrets are withheld."


class _Sections:
    """Sections as they come, with the styles of their tables."""

    def __init__(self) -> None:
        self.parts: list[Content] = []
        self.links: list[Markup] = []
        self.styles: list[str] = []

    def add(self, name: str, title: str, *content: Markup | Sheet) -> None:
        shown = [one.markup if isinstance(one, Sheet) else one for one in content if not self._empty(one)]
        if not shown:
            return
        self.styles += [one.style for one in content if isinstance(one, Sheet)]
        self.links.append(element("a", title, href=f"#{name}"))
        self.parts.append(element("section", element("h2", title, id=name), joined(shown, LINE)))

    @staticmethod
    def _empty(one: Markup | Sheet) -> bool:
        return not (one.rows if isinstance(one, Sheet) else one)


def document(material: Material) -> str:
    """The page, of at most MOST bytes: of what would make it longer there is less in it."""
    while True:
        made = _document(material)
        if len(made.encode("utf-8")) <= MOST or material.share < LEAST:
            return made
        material = replace(material, share=material.share / 2)


def _document(material: Material) -> str:
    sections, proofs = _Sections(), Proofs(material)
    files = files_sheet(material)
    sections.add("overview", "Overview", overview(material), folded(files, f"{len(material.files):,} captures"))
    sections.styles.append(files.style)
    sections.add("findings", "Findings", findings_section(material, proofs))
    numbers = times_sheet(material)
    fold = element("details", element("summary", "the same as a table"), numbers.markup) if numbers.rows else Markup("")
    sections.add("time", "Over time", times_section(material), fold)
    sections.styles.append(numbers.style)
    sections.add("errors-of", "Errors", errors_sheet(material), failures_sheet(material), throttled_sheet(material))
    apis = apis_sheet(material)
    sections.add("apis-of", "APIs", apis, element("p", HELD, class_="dim") if apis.rows else Markup(""))
    sections.add("clients-of", "Clients", clients_sheet(material), spoken_sheet(material))
    sections.add("topics-of", "Topics", topics_sheet(material))
    sections.add("brokers-of", "Brokers", brokers_sheet(material))
    groups, styles = groups_section(material, proofs)
    sections.add("groups-of", "Groups", groups)
    sections.styles.append(styles)
    connections, sheet = connections_section(material)
    sections.add("connections-of", "Connections", connections)
    sections.styles.append(sheet.style)
    own = resources("kwire.render.report")
    cards = f"@media (max-width: 900px) {{\n{''.join(sections.styles)}}}\n"
    style = own.joinpath("report.css").read_text("utf-8") + page_style() + cards
    bar = element("div", element("code", ""), element("button", "Copy", type="button"), id="command", role="status",
                  hidden=True)  # fmt: skip
    body = joined([*sections.parts, element("p", STAYS, class_="dim small"), bar], LINE)
    return page(
        "kwire report", body, facts=facts(material), style=style,
        navigation=element("nav", *sections.links, class_="top", aria_label="Sections"),
        script=own.joinpath("report.js").read_text("utf-8"),
    )  # fmt: skip
