"""Conformance of a broker or of a client as a table: what differs first."""

from __future__ import annotations

from collections.abc import Sequence

from kwire.broker.client_check import FAILED, HANDLED, NOT_HANDLED, NOT_SEEN, Outcome
from kwire.client.conformance import DIFFERS, NOT_ASKED, OK, Checked
from kwire.render.lines import Line, Piece, clean, table

STYLES = {OK: "good", DIFFERS: "error", NOT_ASKED: "dim", HANDLED: "good", NOT_HANDLED: "error", FAILED: "error",
          NOT_SEEN: "dim"}  # fmt: skip


def broker_lines(offered: Sequence[Checked], refused: Sequence[Checked], width: int, everything: bool) -> list[Line]:
    """The counts, what differs, and what is refused; everything: all rows."""
    counts = {verdict: sum(one.verdict == verdict for one in offered) for verdict in (OK, DIFFERS, NOT_ASKED)}
    lines: list[Line] = [
        [("what it advertises  ", "head"), (f"{counts[OK]:,} versions answer in their layout", "good"),
         (f", {counts[DIFFERS]:,} differ", "error" if counts[DIFFERS] else "dim"),
         (f", {counts[NOT_ASKED]:,} were not asked", "dim")],
    ]  # fmt: skip
    shown = [one for one in offered if everything or one.verdict == DIFFERS]
    if shown:
        lines += table(["version", "", "what it does"], map(_row, shown), width)
    lines += [[], *table(["done wrong", "", "what it does"], map(_row, refused), width)]
    return lines


def _row(one: Checked) -> list[Piece]:
    told = f"{one.told}; Kafka {one.expected}" if one.expected else one.told
    return [(clean(one.what), ""), (one.verdict, STYLES[one.verdict]), (clean(told), "")]


def client_lines(outcomes: Sequence[Outcome], width: int) -> list[Line]:
    """A row each trouble."""
    rows: list[list[Piece]] = [
        [(one.trouble.name, ""), (one.verdict, STYLES[one.verdict]), (clean(one.told), "")] for one in outcomes
    ]
    return table(["trouble", "", "what the client does"], rows, width)
