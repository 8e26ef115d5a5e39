"""The findings of a report: worst first, each with the frames that prove it behind folds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from kwire.analyze.consequences import families, worst
from kwire.analyze.detectors import detector
from kwire.analyze.findings import SEVERITIES, Finding, Reference, TimeFormat
from kwire.counted import counted
from kwire.render.findings import STYLES
from kwire.render.html.markup import LINE, Content, Markup, element, joined
from kwire.render.lines import cut
from kwire.render.report.commands import quoted
from kwire.render.report.material import OF_FINDING, Material, Packet

MOST = 200  # findings in the page; the rest is a number
OPEN = 3  # of a detector; the others are behind a fold
REFERENCES = 12  # of a finding
LETTERS = 1500  # of each of its texts
DIAGRAMS = 700_000  # letters of all diagrams
FOLLOWING = 20  # findings that follow from one
Family = tuple[Finding, list[Finding]]


class Proofs:
    """The diagrams of frames: behind a fold where a frame is named first, a link to that from then on."""

    def __init__(self, material: Material) -> None:
        self._left = material.most(DIAGRAMS)
        self._frames, self._commands = material.frames, material.commands
        self._clock = material.diagnosis.clock
        self._shown: dict[Packet, str] = {}

    def of(self, evidence: Iterable[Reference]) -> Markup:
        """The frames of a finding."""
        links: list[Markup] = []
        folds: list[Markup] = []
        named = list({(one.capture, one.packet): one for one in evidence}.items())
        for at, (packet, one) in enumerate(named[:REFERENCES]):
            if not one.is_frame:
                links.append(element("span", f"packet {one} ({one.message})", class_="dim"))
            elif packet in self._shown:
                links.append(element("a", f"frame {one}", href=f"#{self._shown[packet]}"))
            elif at < OF_FINDING and len(self._frames.get(packet, "")) <= self._left and packet in self._frames:
                folds.append(self._fold(packet, one))
            else:
                links.append(element("code", self._commands("decode", ("--frame", str(one)))))
        if len(named) > REFERENCES:
            links.append(element("span", f"and {len(named) - REFERENCES:,} more", class_="dim"))
        more = element("p", "also " if folds else "see ", joined(links, Markup(", ")), class_="also") if links else None
        return joined([*folds, *([more] if more else [])], LINE)

    def _fold(self, packet: Packet, one: Reference) -> Markup:
        self._left -= len(self._frames[packet])
        name = self._shown[packet] = f"frame-{len(self._shown) + 1}"
        summary = element(
            "summary", f"frame {one} · {one.message} · {self._clock(one.time)} s ",
            element("span", one.connection, class_="dim"),
        )  # fmt: skip
        command = element("p", element("code", self._commands("decode", ("--frame", str(one)))))
        return element("details", summary, self._frames[packet], command, id=name, class_="proof")


def findings_section(material: Material, proofs: Proofs) -> Markup:
    """All findings, then what was looked for in vain."""
    diagnosis = material.diagnosis
    together = families(diagnosis.findings)
    shown, most = together[: material.most(MOST)], material.most(FOLLOWING)

    def article(family: Family) -> Markup:
        head, others = family
        return finding_article(head, diagnosis.clock, proofs, material, others[:most])

    parts: list[Content] = list(_by_detector(shown, article))
    told = sum(1 + len(others[:most]) for _, others in shown)
    if len(diagnosis.findings) > told:
        command = element("code", material.commands("doctor", ("--all", "")))
        parts.append(element("p", f"and {len(diagnosis.findings) - told:,} more: ", command))
    if not diagnosis.findings:
        parts.append(element("p", "Nothing found.", class_="good"))
    if material.evidence() and not material.frames:
        why = "were not to be shown" if material.twice else "need a capture that can be read twice, and no stream"
        parts.append(element("p", f"The diagrams of frames {why}.", class_="dim"))
    for title, rows in (
        ("looked for and not found", [(name, detector(name).looks_for) for name in diagnosis.quiet]),
        ("not to be judged from this capture", diagnosis.blind),
    ):
        if rows:
            terms = joined(joined([element("dt", name), element("dd", words)]) for name, words in rows)
            summary = element("summary", f"{len(rows):,} {title}")
            parts.append(element("details", summary, element("dl", terms, class_="terms")))
    return joined(parts, LINE)


def _by_detector(findings: Iterable[Family], article: Callable[[Family], Markup]) -> Iterator[Markup]:
    """Findings of one severity and detector beside each other, the first ones open, the others behind a fold."""
    together: dict[tuple[int, str], list[Family]] = {}
    for one in findings:
        together.setdefault((worst(*one), one[0].detector), []).append(one)
    for (_, name), several in together.items():
        yield from map(article, several[:OPEN])
        if behind := several[OPEN:]:
            yield element(
                "details", element("summary", f"{len(behind):,} more {name}"), joined(map(article, behind), LINE)
            )


def finding_article(
    finding: Finding, clock: TimeFormat, proofs: Proofs, material: Material, others: Sequence[Finding] = ()
) -> Markup:
    """One finding, with those that follow from it."""
    first, last = clock(finding.time), clock(finding.last if finding.last is not None else finding.time)
    when = f"at {first} s" if first == last else f"{first} to {last} s"
    times = f"{finding.count:,} times" if finding.count > 1 else ""
    head = element(
        "h3", element("span", finding.severity, class_=f"badge {STYLES[finding.severity]}"), " ", finding.detector, " ",
        element("span", " · ".join(filter(None, (when, times))), class_="dim small"),
    )  # fmt: skip
    more = element("code", f"kwire explain {quoted(finding.detector)}") if finding.detector else None
    return element("article", head, said(finding), proofs.of(finding.evidence),
                   element("p", "of this detector: ", more, " · ", element("code", material.commands(
                       "doctor", ("--only", finding.detector), ("--all", ""))), class_="dim small") if more else None,
                   *([element("p", "In its wake:", class_="dim")] if others else []),
                   *(finding_article(one, clock, proofs, material) for one in others),
                   class_=f"finding s-{finding.severity}")  # fmt: skip


def said(finding: Finding) -> Markup:
    """What it says: the fact, the broker's words, what to do, and what would prove otherwise."""
    parts = [element("p", cut(finding.text, LETTERS), class_="what")]
    if finding.words:
        parts.append(element("p", "the broker says: ", cut(finding.words, LETTERS), class_="note"))
    if finding.advice:
        parts.append(element("p", "→ ", cut(finding.advice, LETTERS), class_="good"))
    if finding.otherwise and finding.severity != SEVERITIES[-1]:
        parts.append(element("p", "not so, if: ", finding.otherwise, class_="dim"))
    return joined(parts)


def counts_of(findings: Sequence[Finding]) -> list[str]:
    """As "2 errors", "1 warning"."""
    found = [(sum(one.severity == severity for one in findings), severity) for severity in SEVERITIES]
    return [counted(count, severity) for count, severity in found if count]
