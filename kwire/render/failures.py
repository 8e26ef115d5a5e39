"""The broker's own words beneath an error, and the table of which error met whom on what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kwire.analyze.failures import Failures, failures_of
from kwire.render.lines import Line, clean, flowing, paragraph

if TYPE_CHECKING:
    from kwire.analyze.findings import TimeFormat
    from kwire.session.exchange import Exchange

SHOWN = 4  # words beneath a line, at most
ROWS = 20  # of the table, unless all are asked for


def word_lines(exchange: Exchange, width: int, indent: int, bounded: bool = True) -> list[Line]:
    """What the broker said of an exchange's errors, each text once, with what it is about. indent: columns before it;
    bounded: long texts are broken, as on a terminal."""
    said: dict[str, list[str]] = {}
    for text, subject in _words(exchange):
        said.setdefault(text, []).append(subject)
    lines: list[Line] = []
    for text, subjects in list(said.items())[:SHOWN]:
        named = list(dict.fromkeys(filter(None, subjects)))
        more = f" and {len(named) - 2:,} more" if len(named) > 2 else ""
        about = f"{', '.join(named[:2])}{more}: " if named else ""
        whole = clean(f"{about}{text}")
        hang = " " * (indent + 2)
        if bounded:
            lines += paragraph(f"╰ {whole}", width, " " * indent, "note", hang, breaks=True)
        else:
            lines.append([(f"{'':{indent}}╰ {whole}", "note")])
    if len(said) > SHOWN:
        lines.append([(f"{'':{indent}}  … {len(said) - SHOWN:,} more (-x)", "dim")])
    return lines


def _words(exchange: Exchange) -> Iterator[tuple[str, str]]:
    for one in failures_of(exchange):
        if one.words:
            yield one.words, one.subject
        for number, text in one.records:
            if text and text != one.words:
                yield f"record {number}: {text}", one.subject


def failures_lines(failures: Failures, clock: TimeFormat, width: int, everything: bool) -> list[Line]:
    """Which error, for whom, on what, how often and when, with the packets; the broker's words beneath."""
    found = failures.most() if everything else failures.most_by_topic()
    lines: list[Line] = []
    for (error, api, client, subject), one in found if everything else found[:ROWS]:
        parts = [(f"{one.count:>8,}", ""), (clean(error), "error"), (clean(api), "name")]
        parts += [(clean(client) or "(no client id)", "")] + ([(clean(subject), "value")] if subject else [])
        lines += flowing(parts, width, " " * 10)
        when = f"at {clock(one.first.time)} (frame {clean(str(one.first))})"
        if one.count > 1:
            when = f"from {clock(one.first.time)} (frame {clean(str(one.first))}) "
            when += f"to {clock(one.last.time)} (frame {clean(str(one.last))})"
        lines += paragraph(when, width, " " * 10, "dim", breaks=True)
        if one.words:
            others = f" ({one.others:,} times in other words)" if one.others else ""
            lines += paragraph(f"╰ {clean(one.words)}{others}", width, " " * 10, "note", " " * 12, breaks=True)
    if len(found) > ROWS and not everything:
        lines.append([(f"… {len(found) - ROWS:,} more (--all)", "dim")])
    if failures.unkept:
        lines.append([(f"… {failures.unkept:,} more that could not be kept", "dim")])
    return lines
