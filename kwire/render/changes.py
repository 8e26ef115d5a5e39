"""Changes for a person, the largest first, each client's name in its line; and as a JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kwire.analyze.changes import Change, ComparedSide
from kwire.counted import counted
from kwire.render.lines import Line, clean, paragraph

STYLES = {"finding": "note", "error": "error", "setting": "value"}
NOTHING = "none"


def changes_lines(
    found: Sequence[Change], names: tuple[str, str], sides: tuple[ComparedSide, ComparedSide], width: int
) -> list[Line]:
    """What both sides are, then a paragraph each change. names: of the two sides."""
    wide = max(map(len, names))
    lines: list[Line] = []
    for sign, name, side in zip("AB", names, sides, strict=True):
        lines.append([(f"{sign}  ", "head"), (clean(name).ljust(wide), "title"), (f"  {_seen(side)}", "dim")])
    lines.append([])
    if not found and not any(side.profiles.clients for side in sides):
        return [*lines, [("nothing to compare: neither holds a request that can be read", "note")]]
    if not found:
        return [*lines, [("nothing changed: settings, versions, rates, latencies, errors and findings agree", "good")]]
    kinds = max(len(one.kind) for one in found)
    for one in found:
        lines += _change(one, kinds, width)
        for brought in one.brought:
            words = f"with it: {_says(brought)}"
            lines += paragraph(words, width, " " * (kinds + 4), "dim", " " * (kinds + 6), breaks=True)
    return lines


def _change(one: Change, kinds: int, width: int) -> list[Line]:
    indent = " " * (kinds + 2)
    found = paragraph(_says(one), width, indent, "", indent + "  ", breaks=True)
    first = [(text.removeprefix(indent) if at == 0 else text, style) for at, (text, style) in enumerate(found[0])]
    return [[(one.kind.ljust(kinds + 2), STYLES.get(one.kind, "section")), *first], *found[1:]]


def _says(one: Change) -> str:
    whom = f"{clean(one.whom)}: " if one.whom else ""
    note = f" ({one.note})" if one.note else ""
    if one.kind in ("finding", "client") and not (one.before and one.after):
        where = "only in B" if one.after else "only in A"
        return f"{whom}{clean(one.what)}, {where}: {clean(one.after or one.before)}"
    return f"{whom}{clean(one.what)} {clean(one.before or NOTHING)} → {clean(one.after or NOTHING)}{note}"


def _seen(side: ComparedSide) -> str:
    profiles = side.profiles
    requests = sum(measure.count for profile in profiles.clients.values() for measure in profile.apis.values())
    seconds = max(profiles.end - (profiles.start or 0), 0) / 1e9 if profiles.start else 0.0
    return f"{counted(requests, 'request')} of {counted(len(profiles.clients), 'client')} in {seconds:,.1f} s"


def document(found: Sequence[Change], names: tuple[str, str]) -> dict[str, Any]:
    """All of it."""
    return {"a": names[0], "b": names[1], "changes": [one.row() for one in found]}
