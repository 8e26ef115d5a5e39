"""KRaft's quorums for a person: who leads, how far the replicas are, and each change with its packet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.analyze.findings import lasted
from kwire.analyze.quorum import ENDS, LEADER, PRE_VOTE, VOTE
from kwire.counted import counted
from kwire.render.lines import Line, Piece, clean, joined, table
from kwire.session.quorum import NOBODY

if TYPE_CHECKING:
    from kwire.analyze.findings import TimeFormat
    from kwire.analyze.quorum import Quorum, QuorumChange

ROWS = 50  # changes, unless all are asked for: the newest


def quorum_lines(quorum: Quorum, clock: TimeFormat, width: int, everything: bool = False) -> list[Line]:
    """One quorum."""
    led = f"leader {quorum.leader} in epoch {quorum.epoch}" if quorum.epoch >= 0 else "no leader told"
    parts: list[Piece] = [(f"quorum of cluster {clean(quorum.cluster) or '(not told)'}", "title"), (led, "")]
    parts += [(f"voters {_nodes(quorum.voters)}", "")] if quorum.voters else []
    parts += [(f"observers {_nodes(quorum.observers)}", "")] if quorum.observers else []
    parts += [
        (f"replica {node} at {at:,}", "dim")
        for node, (at, _) in sorted(quorum.replicas.items())[: None if everything else 8]
    ]
    lines: list[Line] = joined(parts, width)
    shown = quorum.moments if everything else quorum.moments[-ROWS:]
    if len(shown) < len(quorum.moments):
        lines.append([(f"… {counted(len(quorum.moments) - len(shown), 'change')} before (--all)", "dim")])
    rows: list[list[Piece]] = [
        [(clock(one.time), ""), ("" if one.epoch is None else str(one.epoch), "value"),
         (clean(str(one.proof)), "dim"), (_words(one), "section" if one.what == LEADER else "")]
        for one in shown
    ]  # fmt: skip
    if rows:
        lines += table(["time", "epoch", "packet", "what"], rows, width, frozenset({0, 1, 2}))
    if quorum.unkept:
        lines.append([(f"… {quorum.unkept:,} more changes that could not be kept", "dim")])
    return lines


def _words(moment: QuorumChange) -> str:
    node = moment.node
    if moment.what == LEADER:
        after = (
            f", {lasted(moment.without)} after the last sign of the one before" if moment.without is not None else ""
        )
        return f"leader {node}{after}"
    if moment.what in (VOTE, PRE_VOTE):
        answers = (("granted by", moment.granted), ("refused by", moment.refused), ("not answered by", moment.asked))
        told = "; ".join(f"{how} {_nodes(nodes)}" for how, nodes in answers if nodes)
        return f"{moment.what} for {node}: {told}"
    if moment.what == ENDS:
        after = f", prefers {_nodes(moment.preferred)}" if moment.preferred else ""
        return f"leader {node} gives up{after}"
    return f"node {node} {moment.words}"


def _nodes(nodes: list[int] | tuple[int, ...]) -> str:
    return " ".join("somebody" if node == NOBODY else str(node) for node in nodes)
