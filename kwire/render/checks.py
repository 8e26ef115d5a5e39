"""Conformance as tables: what was looked at, the verdict, what came of it."""

from __future__ import annotations

from collections.abc import Sequence

from kwire.render.lines import Line, clean, table

STYLES = {"ok": "good", "handled": "good", "differs": "error", "not handled": "error", "failed": "error"}
Row = tuple[str, str, str]  # what, verdict, told


def broker_lines(offered: Sequence[Row], refused: Sequence[Row], width: int, everything: bool) -> list[Line]:
    """Of what a broker advertises the counts and what differs; what it refuses. everything: all rows."""
    fine, wrong, left = (sum(row[1] == verdict for row in offered) for verdict in ("ok", "differs", "not asked"))
    lines: list[Line] = [
        [("what it advertises  ", "head"), (f"{fine:,} versions answer in their layout", "good"),
         (f", {wrong:,} differ", "error" if wrong else "dim"), (f", {left:,} were not asked", "dim")],
    ]  # fmt: skip
    shown = [row for row in offered if everything or row[1] == "differs"]
    if shown:
        lines += check_lines("version", shown, width)
    return [*lines, [], *check_lines("done wrong", refused, width)]


def check_lines(head: str, rows: Sequence[Row], width: int) -> list[Line]:
    """A table."""
    cells = [
        [(clean(what), ""), (verdict, STYLES.get(verdict, "dim")), (clean(told), "")] for what, verdict, told in rows
    ]
    return table([head, "", "what it does"], cells, width)
