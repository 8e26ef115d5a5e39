"""The numbers of a capture as tables that fit 80 columns, and as one JSON document."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from kwire.analyze.findings import lasted
from kwire.analyze.measures import Measure
from kwire.analyze.stats import REFUSED, Stats
from kwire.analyze.work import HELD_APIS
from kwire.codec.quality import Quality
from kwire.counted import counted
from kwire.render.exchanges import took
from kwire.render.lines import Line, Piece, Shortener, clean, cut, flowing, paragraph, plain, table
from kwire.session.record import START_UP, error_name

SPARKS = "▁▂▃▄▅▆▇█"
ROWS = 20  # of each table, unless all are asked for
NAME = 26  # columns of a name, at least
HOSTS = 4  # in a line
MS = 1_000_000  # ns
USUAL_NAMES = {error_name(code) for code in START_UP}
HEADS = {"api": "API", "client": "client id", "broker": "broker", "topic": "topic"}
GRAVE = (Quality.MALFORMED, Quality.GAP, Quality.TRUNCATED, Quality.UNSUPPORTED)  # what is shown of single connections
FINE = ("Kafka", "nothing said")
HELD = (
    "* Held by the broker until there is something to say: no measure of its speed. In the other tables their time "
    "stands under held, and not in p50, p99 and max."
)


def stats_lines(
    stats: Stats, width: int, everything: bool = False, *, nothing: str = "no exchanges", failures: bool = True
) -> list[Line]:  # fmt: skip
    """All tables, the busiest rows first. nothing: what is said where there is no exchange; failures: with the table of
    which error met whom."""
    if stats.first_time is None:
        return [[(nothing, "dim")], *_connections(stats, width, everything)]
    seconds = max(stats.last_time - stats.first_time, 0) / 1e9
    total = stats.total
    rate = f", {total.count / seconds:,.1f} a second" if seconds else ""
    errors = sum(total.errors.values())
    usual = sum(count for code, count in total.errors.items() if code in START_UP)
    said = [f"{bytes_text(total.sent)} sent, {bytes_text(total.got)} got", f"{errors:,} with errors"]
    said[-1] += f" ({usual:,} usual at start-up)" if usual else ""
    said.append(f"{total.unanswered:,} without an answer")
    said += [f"{total.pending:,} still open at the end, or lost by the capture"] if total.pending else []
    said += [f"{counted(total.unseen, 'answer')} cut off before the outcome"] if total.unseen else []
    said += [f"{counted(total.backwards, 'answer')} before the request, not measured"] if total.backwards else []
    said += [f"{bytes_text(stats.missing)} missing from the capture"] if stats.missing else []
    lines: list[Line] = [[(f"{counted(total.count, 'exchange')} in {seconds:,.1f} s{rate}", "title")]]
    lines += paragraph(" · ".join(said), width, "", "dim")
    waits = False
    for kind, group in stats.groups():
        if group:
            lines += [[], *_table(stats, kind, group, width, everything)]
            waits |= kind == "api" and any(name.split(" ")[0] in HELD_APIS for name in group)
    if waits:
        lines += [[], *paragraph(HELD, width, "", "dim", "  ")]
    lines += _throttled(stats, width, everything)
    lines += _failures(stats, width, everything) if failures else []
    if stats.oddities:
        lines += [[], [("frames not as they should be", "head")]]
        for (quality, name), count in stats.oddities.most_common(None if everything else ROWS):
            lines.append([(f"{count:>8,}  ", ""), (clean(name), "name"), (f" {quality}", "note")])
    return lines + _connections(stats, width, everything)


def _table(stats: Stats, kind: str, group: dict[str, Measure], width: int, everything: bool) -> list[Line]:
    apis = kind == "api"
    columns = _columns(apis, width)
    taken = sum(wide for _, wide in columns)
    spark = min(max(width - NAME - taken, 0), 40)
    spark = spark if spark >= 8 else 0
    room = width - taken - spark
    heads = f"{HEADS[kind]:<{room}}" + "".join(f"{name:>{wide}}" for name, wide in columns)
    lines: list[Line] = [[(heads + (f"  {'over time':<{spark - 2}}" if spark else ""), "head")]]
    rows = sorted(group.items(), key=lambda item: (-item[1].count, item[0]))
    names = Shortener()
    for name, measure in rows[: None if everything else ROWS]:
        mark = " *" if apis and name.split(" ")[0] in HELD_APIS else ""
        shown = cut(names.short(clean(name), room - 2 - len(mark)), room - 2 - len(mark)) + mark
        cells = _cells(measure, bool(mark))
        row: Line = [(f"{shown:<{room}}", "name")]
        row += [(f"{cells[name]:>{wide}}", "error" if name == "errors" else "") for name, wide in columns]
        if spark and stats.first_time is not None:
            curve = measure.timeline.over(stats.first_time, stats.last_time, spark - 2)
            row.append((f"  {_sparkline(curve)}", "c0"))
        lines.append(row)
    if len(rows) > ROWS and not everything:
        lines.append([(f"… {len(rows) - ROWS:,} more (--all)", "dim")])
    return lines


def _columns(apis: bool, width: int) -> list[tuple[str, int]]:
    """The columns of a table that the width has room for beside a name."""
    few = [("count", 8), ("errors", 8), ("p50", 9), ("p99", 9)]
    if width < NAME + 52:
        return few
    if apis or width >= NAME + 61:
        few.insert(1, ("bytes", 9))
    return [*few, ("max", 9), *([] if apis else [("held", 9)])]


def _cells(measure: Measure, kept: bool) -> dict[str, str]:
    """What a table's columns say of it. kept: times are those of an API that a broker holds, as they are."""
    times = measure.latencies if kept else measure.work
    wrong = sum(measure.errors.values()) + measure.unanswered
    return {
        "count": f"{measure.count:,}", "bytes": bytes_text(measure.sent + measure.got), "errors": f"{wrong or ''}",
        "p50": took(times.percentile(0.5)), "p99": took(times.percentile(0.99)),
        "max": took(times.highest if times.count else None), "held": took(measure.held or None),
    }  # fmt: skip


def _throttled(stats: Stats, width: int, everything: bool) -> list[Line]:
    """Who was told to wait by a quota."""
    if not stats.throttled:
        return []
    found = sorted(stats.throttled.items(), key=lambda item: (-item[1].total, item[0]))
    rows: list[list[Piece]] = [
        [(f"{one.count:,}", ""), (lasted(one.longest * MS), ""), (lasted(one.total * MS), ""), (clean(api), "name"),
         (clean(client), "")]
        for (client, api), one in found[: None if everything else ROWS]
    ]  # fmt: skip
    heads = ["answers", "longest", "in all", "API", "client id"]
    lines: list[Line] = [[], [("throttled: told to wait by a quota (held has what of it is latency)", "head")]]
    lines += table(heads, rows, width, frozenset({0, 1, 2}))
    return lines if everything or len(found) <= ROWS else [*lines, [(f"… {len(found) - ROWS:,} more (--all)", "dim")]]


def _failures(stats: Stats, width: int, everything: bool) -> list[Line]:
    """Which error met whom on what."""
    found = stats.failures.most() if everything else stats.failures.most_by_topic()
    if not found:
        return []
    rows: list[list[Piece]] = [
        [(f"{one.count:,}", ""), (clean(error), "note" if error in USUAL_NAMES else "error"), (clean(api), "name"),
         (clean(client), ""), (clean(subject), "value")]
        for (error, api, client, subject), one in found[: None if everything else ROWS]
    ]  # fmt: skip
    lines: list[Line] = [[], [("which error, for whom, on what", "head")]]
    beside = table(["count", "error", "API", "client id", "on what"], rows, width, frozenset({0}))
    if all(len(plain(line)) <= width for line in beside):
        lines += beside
    else:
        for (count, _), *rest in rows:
            lines += flowing([(f"{count:>8}", ""), *(piece for piece in rest if piece[0])], width, " " * 10)
    more = len(found) - len(rows)
    lines += [[(f"… {more:,} more (--all)", "dim")]] if more else []
    untold = f"… and {counted(stats.untold, 'exchange')} with errors that are not told one by one (--errors)"
    return lines + ([[(untold, "dim")]] if stats.untold else [])


def _connections(stats: Stats, width: int, everything: bool) -> list[Line]:
    """How many there were, and those with which something is not as it should be."""
    if not stats.kinds:
        return []
    counts = ", ".join(f"{count:,} {what}" for what, count in stats.kinds.most_common())
    lines: list[Line] = [[]]
    for at, line in enumerate(paragraph(counts, width - 13)):
        lines.append([(" " * 13 if at else "connections  ", "head"), *line])
    rows: list[list[Line]] = []
    for broker, one in sorted(stats.refused.items(), key=lambda item: -item[1].count) if not everything else ():
        more = f" and {len(one.hosts) - HOSTS:,} more" if len(one.hosts) > HOSTS else ""
        text = f"refused {counted(one.count, 'connection')} from {', '.join(sorted(one.hosts)[:HOSTS])}{more}"
        if one.count > 1:
            text += f" within {lasted(one.last_time - one.first_time)}"
        rows.append(flowing([(f"  {broker}", ""), (text, "note")], width, "    "))
    for row in sorted(stats.connections, key=lambda row: row.first_time):
        if row.what == REFUSED and not everything:
            continue
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
    lines += [[(f"  … {len(rows) - len(shown):,} more (--all)", "dim")]] if len(rows) > len(shown) else []
    untold = f"  … and {counted(stats.connections_untold, 'connection')} that are only counted"
    return [*lines, [(untold, "dim")]] if stats.connections_untold else lines


def document(stats: Stats) -> dict[str, Any]:
    """All of it."""
    out: dict[str, Any] = {"first_time": stats.first_time, "last_time": stats.last_time, "total": stats.total.row()}
    for kind, group in stats.groups():
        rows = sorted(group.items(), key=lambda item: (-item[1].count, item[0]))
        out[f"{kind}s"] = [{kind: name, **measure.row()} for name, measure in rows]
    out["throttled"] = [
        {"client": client, "api": api, "count": one.count, "longest_ms": one.longest, "total_ms": one.total,
         "client_waits": one.by_itself}
        for (client, api), one in sorted(stats.throttled.items(), key=lambda item: -item[1].total)
    ]  # fmt: skip
    out["refused"] = [
        {"broker": broker, "count": one.count, "hosts": sorted(one.hosts), "first_time": one.first_time,
         "last_time": one.last_time}
        for broker, one in sorted(stats.refused.items(), key=lambda item: -item[1].count)
    ]  # fmt: skip
    out["failures"] = stats.failures.rows()
    out["connections_untold"] = stats.connections_untold
    out["connections"] = [asdict(row) for row in sorted(stats.connections, key=lambda row: row.first_time)]
    return out


def _sparkline(counts: list[int]) -> str:
    highest = max(counts, default=0)
    if not highest:
        return ""
    return "".join(" " if not count else SPARKS[(count * len(SPARKS) - 1) // highest] for count in counts)


def bytes_text(count: int) -> str:
    """As 812 B, 14.2 kB, 3.1 MB."""
    if count < 1000:
        return f"{count} B"
    for unit, size in (("kB", 10**3), ("MB", 10**6), ("GB", 10**9), ("TB", 10**12)):
        if count < 999.5 * size or unit == "TB":
            value = count / size
            return f"{value:.1f} {unit}" if value < 99.95 else f"{value:.0f} {unit}"
    return ""
