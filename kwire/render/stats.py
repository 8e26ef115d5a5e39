"""The numbers of a capture as tables that fit 80 columns, and as one JSON document."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from kwire.analyze.measures import Measure
from kwire.analyze.stats import WAITS, Stats
from kwire.counted import counted
from kwire.render.exchanges import USUAL, took
from kwire.render.lines import Line, Piece, Shortener, clean, cut, flowing, paragraph
from kwire.session.record import error_name

SPARKS = "▁▂▃▄▅▆▇█"
ROWS = 20  # of each table, unless all are asked for
NAME = 26  # columns of a name, at least
HEADS = {"api": "API", "client": "client id", "broker": "broker", "topic": "topic"}
GRAVE = ("malformed", "gap", "truncated", "unsupported")  # what is shown of single connections
FINE = ("Kafka", "nothing said")
HELD = "* The broker holds these until there is something to say: no measure of its speed."


def stats_lines(stats: Stats, width: int, everything: bool = False) -> list[Line]:
    """All tables, the busiest rows first."""
    if stats.first_time is None:
        return [[("no exchanges", "dim")], *_connections(stats, width, everything)]
    seconds = max(stats.last_time - stats.first_time, 0) / 1e9
    total = stats.total
    rate = f", {total.count / seconds:,.1f} a second" if seconds else ""
    errors = sum(total.errors.values())
    usual = sum(count for code, count in total.errors.items() if code in USUAL)
    said = [f"{_bytes(total.sent)} sent, {_bytes(total.got)} got", f"{errors:,} with errors"]
    said[-1] += f" ({usual:,} usual at start-up)" if usual else ""
    said.append(f"{total.unanswered:,} without an answer")
    missing = sum(row.missing for row in stats.connections)
    said += [f"{total.unseen:,} answers cut off before their outcome"] if total.unseen else []
    said += [f"{_bytes(missing)} missing from the capture"] if missing else []
    lines: list[Line] = [[(f"{counted(total.count, 'exchange')} in {seconds:,.1f} s{rate}", "title")]]
    lines += paragraph(" · ".join(said), width, "", "dim")
    waits = False
    for kind, group in stats.groups():
        if group:
            lines += [[], *_table(stats, kind, group, width, everything)]
            waits |= kind == "api" and any(name.split(" ")[0] in WAITS for name in group)
    if waits:
        lines += [[], *paragraph(HELD, width, "", "dim", "  ")]
    if total.errors:
        lines += [[], [("errors", "head")]]
        for code, count in total.errors.most_common(None if everything else ROWS):
            name = clean(error_name(code) or "")
            lines.append([(f"{count:>8,}  ", ""), (name, "note" if code in USUAL else "error")])
    if stats.oddities:
        lines += [[], [("frames not as they should be", "head")]]
        for (quality, name), count in stats.oddities.most_common(None if everything else ROWS):
            lines.append([(f"{count:>8,}  ", ""), (clean(name), "name"), (f" {quality}", "note")])
    return lines + _connections(stats, width, everything)


def _table(stats: Stats, kind: str, group: dict[str, Measure], width: int, everything: bool) -> list[Line]:
    spark = min(max(width - NAME - 52, 0), 40)
    narrow = width < NAME + 52
    room = width - 34 if narrow else width - 52 - (spark if spark >= 8 else 0)
    size = "" if narrow else f"{'bytes':>9}"
    heads = f"{HEADS[kind]:<{room}}{'count':>8}{size}{'errors':>8}{'p50':>9}{'p99':>9}"
    heads += "" if narrow else f"{'max':>9}"
    lines: list[Line] = [[(heads + (f"  {'over time':<{spark - 2}}" if spark >= 8 else ""), "head")]]
    rows = sorted(group.items(), key=lambda item: (-item[1].count, item[0]))
    names = Shortener()
    for name, measure in rows[: None if everything else ROWS]:
        mark = " *" if kind == "api" and name.split(" ")[0] in WAITS else ""
        shown = cut(names.short(clean(name), room - 2 - len(mark)), room - 2 - len(mark)) + mark
        lines.append(_row(stats, shown, measure, room, spark, narrow))
    if len(rows) > ROWS and not everything:
        lines.append([(f"… {len(rows) - ROWS:,} more (--all)", "dim")])
    return lines


def _row(stats: Stats, name: str, measure: Measure, room: int, spark: int, narrow: bool) -> Line:
    wrong = sum(measure.errors.values()) + measure.unanswered
    times = [measure.latencies.percentile(0.5), measure.latencies.percentile(0.99)]
    if not narrow:
        times.append(measure.latencies.highest if measure.latencies.count else None)
    row: list[Piece] = [
        (f"{name:<{room}}", "name"),
        (f"{measure.count:>8,}", ""),
        ("" if narrow else f"{_bytes(measure.sent + measure.got):>9}", ""),
        (f"{wrong or '':>8}", "error"),
        ("".join(f"{took(time):>9}" for time in times), ""),
    ]
    if spark >= 8 and stats.first_time is not None:
        row.append((f"  {_sparkline(measure.timeline.over(stats.first_time, stats.last_time, spark - 2))}", "c0"))
    return row


def _connections(stats: Stats, width: int, everything: bool) -> list[Line]:
    """How many there were, and those with which something is not as it should be."""
    if not stats.connections:
        return []
    kinds: dict[str, int] = {}
    for row in stats.connections:
        kinds[row.what] = kinds.get(row.what, 0) + 1
    counts = ", ".join(f"{count:,} {what}" for what, count in sorted(kinds.items(), key=lambda item: -item[1]))
    lines: list[Line] = [[]]
    for at, line in enumerate(paragraph(counts, width - 13)):
        lines.append([(" " * 13 if at else "connections  ", "head"), *line])
    rows: list[list[Line]] = []
    for row in sorted(stats.connections, key=lambda row: row.first_time):
        said = [f"{count:,} {quality}" for quality, count in row.qualities.items() if quality in GRAVE or everything]
        said += [f"{counted(row.missing, 'byte')} missing"] if row.missing else []
        said += [f"{counted(row.skipped, 'byte')} skipped"] if row.skipped else []
        said += [row.what] if row.what not in FINE else []
        if said or everything:
            again = f", {counted(row.repeated, 'byte')} repeated" if row.repeated else ""
            text = ", ".join(said) or f"{counted(row.exchanges, 'exchange')}, {row.ending}{again}"
            rows.append(flowing([(f"  {row.name}", ""), (text, "note" if said else "dim")], width, "    "))
    shown = rows if everything else rows[:ROWS]
    lines += [line for found in shown for line in found]
    return lines if len(rows) == len(shown) else [*lines, [(f"  … {len(rows) - len(shown):,} more (--all)", "dim")]]


def document(stats: Stats) -> dict[str, Any]:
    """All of it."""
    out: dict[str, Any] = {"first_time": stats.first_time, "last_time": stats.last_time, "total": stats.total.row()}
    for kind, group in stats.groups():
        rows = sorted(group.items(), key=lambda item: (-item[1].count, item[0]))
        out[f"{kind}s"] = [{kind: name, **measure.row()} for name, measure in rows]
    out["connections"] = [asdict(row) for row in sorted(stats.connections, key=lambda row: row.first_time)]
    return out


def _sparkline(counts: list[int]) -> str:
    highest = max(counts, default=0)
    if not highest:
        return ""
    return "".join(" " if not count else SPARKS[(count * len(SPARKS) - 1) // highest] for count in counts)


def _bytes(count: int) -> str:
    """As 812 B, 14.2 kB, 3.1 MB."""
    if count < 1000:
        return f"{count} B"
    for unit, size in (("kB", 10**3), ("MB", 10**6), ("GB", 10**9), ("TB", 10**12)):
        if count < 999.5 * size or unit == "TB":
            value = count / size
            return f"{value:.1f} {unit}" if value < 99.95 else f"{value:.0f} {unit}"
    return ""
