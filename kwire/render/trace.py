"""Traced consumers: the verdict, then the seven steps in a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kwire.analyze.findings import Finding, TimeFormat, error_label, lasted
from kwire.analyze.steps import StepOutcomes
from kwire.analyze.trace import Consumer
from kwire.counted import counted
from kwire.render.groups import STYLES
from kwire.render.lines import Line, Piece, clean, flowing, paragraph, table

ROWS = 10  # consumers, unless all are asked for
Traced = Sequence[tuple[Consumer, Finding]]


def trace_lines(traced: Traced, clock: TimeFormat, width: int, everything: bool) -> list[Line]:
    """Those that are stuck first."""
    lines: list[Line] = []
    shown = traced if everything else traced[:ROWS]
    for consumer, found in shown:
        lines += [[]] if lines else []
        lines += _consumer(consumer, found, clock, width)
    if len(shown) < len(traced):
        lines += [[], [(f"… {len(traced) - len(shown):,} more consumers (--all)", "dim")]]
    return lines or [[("no consumer", "dim")]]


def document(traced: Traced, clock: TimeFormat) -> dict[str, Any]:
    """All of it."""
    return {"start": clock.start, "consumers": [consumer.row(found) for consumer, found in traced]}


def _consumer(consumer: Consumer, found: Finding, clock: TimeFormat, width: int) -> list[Line]:
    title = clean(consumer.name) or "(no client id)"
    parts: list[Piece] = [(title, "section"), (consumer.host, "")]
    if consumer.sharing > 1:
        parts.append((f"one of {consumer.sharing:,} with this client id", ""))
    if consumer.software:
        parts.append((clean(consumer.software), ""))
    if consumer.groups:
        names = [clean(one) for one in consumer.groups]
        parts.append((f"group {', '.join(names[:3])}" + (f" +{len(names) - 3:,}" if len(names) > 3 else ""), ""))
    lines = flowing(parts, width, "  ")
    style = STYLES[found.severity] if found.severity != "note" else "good"
    lines += paragraph(clean(found.what), width, "  ", style, "  ", breaks=True)
    if found.advice:
        lines += paragraph(f"→ {clean(found.advice)}", width, "  ", "", "    ", breaks=True)
    rows = [_step(consumer, step, clock) for step in consumer.steps]
    heads = ["step", "first", "reached", "tries", "what"]
    return [*lines, [], *([("  ", ""), *line] for line in table(heads, rows, width - 2, frozenset({1, 2, 3})))]


def _step(consumer: Consumer, step: StepOutcomes, clock: TimeFormat) -> list[Piece]:
    first = clock(step.first.time) if step.first else ""
    reached = clock(step.reached.time) if step.reached else "-" if not step.tries else "?" if step.unseen else "no"
    style = {"-": "dim", "?": "note", "no": "error"}.get(reached, "good")
    said = [step.detail] if step.detail else []
    if step.errors:
        said.append(", ".join(f"{error_label(code)} {count:,}×" for code, count in step.errors.most_common(3)))
    if step.number == 3 and consumer.rounds > 1:
        said.append(f"joined {counted(consumer.rounds, 'time')}")
    if step.number in (5, 7) and step.last and step.longest is not None:
        said.append(f"{_pace(step)}, at most {lasted(step.longest)}, last at {clock(step.last.time)}")
    if step.number == 7 and consumer.records:
        said.append(f"first records at {clock(consumer.records.time)} (frame {consumer.records})")
    if step.pending:
        said.append(f"waits since {clock(step.pending.time)} (frame {step.pending})")
    elif step.reached and step.number not in (5, 7):
        said.append(f"frame {step.said_in or step.reached}")
    return [(f"{step.number} {step.name}", "name"), (first, "offset"), (reached, style), (f"{step.tries:,}", ""),
            (clean(" · ".join(said)), "")]  # fmt: skip


def _pace(step: StepOutcomes) -> str:
    """How far apart its requests come on a connection: at regular intervals, or between which most of them lie."""
    if step.usual is not None:
        return f"every {lasted(step.usual)}"
    low, high = step.middle or (0, 0)
    return f"mostly {lasted(low)} to {lasted(high)} apart"
