"""A consumer's start: a line a step with its time and verdict, what was seen beneath it, and what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kwire.render.asked import took_text
from kwire.render.lines import Line, Piece, clean, joined, paragraph

STYLES = {"ok": "good", "note": "note", "error": "error"}
UNDER = {"ok": "", "note": "note", "error": "error"}
INDENT = " " * 10
NAMES = 11  # columns of a step's name
LEAVE = 8
SHOWN = 12  # exchanges named


def head_line(broker: str, group: str, topic: str, protocol: str, width: int) -> list[Line]:
    """What is walked."""
    parts = [f"group {clean(group)}", f"topic {clean(topic)}", protocol, f"from {clean(broker)}"]
    return [*joined([(part, "title" if not at else "dim") for at, part in enumerate(parts)], width), []]


def step_lines(row: dict[str, Any], asked: Sequence[tuple[str, int | None]], start: int, width: int) -> list[Line]:
    """row: as Step.row() gives it. asked: the exchanges, as "Fetch v16", with how long they took, ns, None without an
    answer. start, ns: what times count from."""
    number = "" if row["step"] == LEAVE else row["step"]
    seconds = max(row["time"] - start, 0) / 1e9
    verdict = row["verdict"]
    pieces: Line = [
        (f"{seconds:8.3f}  ", "offset"),
        (f"{number:>1} {row['name']:<{NAMES}} ", "section"),
        (f"{took_text(row['took_ns']):>7}  ", "dim"),
        (f"{verdict:<5}", STYLES[verdict]),
    ]
    used = sum(len(text) for text, _ in pieces) + 2
    lines = _headline(pieces, clean(row["text"]), used, width)
    if asked:
        names = [(f"{name} {'no answer' if took is None else took_text(took)}", "dim") for name, took in asked[:SHOWN]]
        names += [(f"{len(asked) - SHOWN} more", "dim")] if len(asked) > SHOWN else []
        lines += [[(INDENT, ""), *line] for line in joined(names, width - len(INDENT))]
    for detail in row["details"]:
        lines += _beneath(detail["text"], width, UNDER[detail["verdict"]])
    if row["advice"]:
        lines += _beneath(f"→ {row['advice']}", width, "note" if verdict != "error" else "title")
    return lines


def _headline(pieces: list[Piece], text: str, used: int, width: int) -> list[Line]:
    """Beside the verdict where there is room, else beneath."""
    if used + len(text) <= width:
        return [[*pieces, (f"  {text}", "")]]
    if width - used >= 60:
        lines = paragraph(text, width - used, breaks=True)
        first, *rest = ["".join(piece for piece, _ in line) for line in lines]
        return [[*pieces, (f"  {first}", "")], *([(" " * used + line, "")] for line in rest)]
    return [list(pieces), *_beneath(text, width, "")]


def _beneath(text: str, width: int, style: str) -> list[Line]:
    shown = clean(text)
    blanks = len(shown) - len(shown.lstrip())
    indent = INDENT + " " * blanks
    return paragraph(shown.strip(), width, indent, style, indent + "  ", breaks=True)
