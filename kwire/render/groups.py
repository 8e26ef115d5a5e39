"""Groups for a person: the verdicts first, worst first; then each group's members and its life, generation by
generation. And all of it as one JSON document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kwire.analyze.departures import Departures, frame, words_of
from kwire.analyze.findings import SEVERITIES, Finding, TimeFormat, lasted
from kwire.analyze.history import Generation, History
from kwire.analyze.members import Seat
from kwire.counted import counted
from kwire.render.lines import Line, Piece, clean, flowing, joined, paragraph, table
from kwire.render.timeline import chart_of, timeline_lines

STYLES = {"error": "error", "warning": "note", "note": "dim"}
ROWS = 12  # members, generations, findings of a group, unless all are asked for
LANES = 16
Judged = Sequence[tuple[History, Departures, list[Finding]]]


def groups_lines(judged: Judged, clock: TimeFormat, width: int, everything: bool, timeline: bool | None) -> list[Line]:
    """judged: groups with their findings, the most troubled first. timeline: None draws it where it fits."""
    if not judged:
        return [[("no groups", "dim")]]
    lines = _summary(judged)
    lines += findings_lines([(history.name, one) for history, _, found in judged for one in found], width, everything)
    shown = judged if everything else judged[:ROWS]
    for history, departures, _ in shown:
        lines += [[], *_group(history, departures, clock, width, everything, timeline)]
    if len(shown) < len(judged):
        lines += [[], [(f"… {len(judged) - len(shown):,} more groups (--all, --group NAME)", "dim")]]
    return lines


def findings_lines(found: Sequence[tuple[str, Finding]], width: int, everything: bool) -> list[Line]:
    """Findings, worst first, with what they are about; advice and frames beneath."""
    ordered = sorted(found, key=lambda item: (SEVERITIES.index(item[1].severity), item[1].time))
    most = ROWS if not everything else len(ordered)
    several = len({name for name, _ in found}) > 1
    lines: list[Line] = []
    before = ""
    for name, finding in ordered[:most]:
        about = f"{clean(name)}  " if several else ""
        style = STYLES[finding.severity]
        numbers = ", ".join(clean(one) for one in dict.fromkeys(str(ref) for ref in finding.evidence))
        frames = f"frame{'s' if ',' in numbers else ''} {numbers}" if numbers else ""
        small = finding.severity == "note" and not finding.advice
        text = clean(finding.what) + (f" ({frames})" if frames and small else "")
        first, *more = paragraph(f"{about}{text}", width - 9, "", "", "", breaks=True) or [[("", "")]]
        if not small or not lines or before != finding.severity:
            lines.append([])
        before = finding.severity
        lines += [[(f"{finding.severity:<9}", style), *first], *([(" " * 9, ""), *line] for line in more)]
        if finding.words:
            lines += paragraph(
                f"the broker says: {clean(finding.words)}", width, " " * 9, "note", " " * 11, breaks=True
            )
        if finding.advice:
            lines += paragraph(f"→ {clean(finding.advice)}", width, " " * 9, "", " " * 11, breaks=True)
        if frames and not small:
            lines += paragraph(frames, width, " " * 9, "dim")
    if len(ordered) > most:
        lines += [[], [(f"… {len(ordered) - most:,} more findings (--all)", "dim")]]
    return lines


def all_well(judged: Judged) -> Piece:
    """What is said where nothing is wrong: of requests alone nobody knows."""
    if any(history.answers for history, _, _ in judged):
        return "nothing wrong", "good"
    return "no answers in the capture: what went wrong would not be seen", "note"


def _summary(judged: Judged) -> list[Line]:
    worst = [found[0].severity if found else "" for _, _, found in judged]
    errors, warnings = worst.count("error"), worst.count("warning")
    parts: list[Piece] = [(counted(len(judged), "group"), "title")]
    if errors:
        parts.append((f"{errors:,} with errors", "error"))
    if warnings:
        parts.append((f"{warnings:,} with warnings", "note"))
    if not errors and not warnings:
        parts.append(all_well(judged))
    return joined(parts, 200)


def _group(
    history: History, departures: Departures, clock: TimeFormat, width: int, everything: bool, timeline: bool | None
) -> list[Line]:
    lines = flowing([(clean(history.name), "section"), (clean(kind_of(history)), "")], width, "  ")
    lines += paragraph(" · ".join(facts_of(history, clock)), width, "  ", "dim", "    ", breaks=True)
    seats = list(history.seats.all.values())
    if seats:
        shown = seats if everything else _busiest(seats)
        lines += [[], *_indented(_members([member_cells(seat, history) for seat in shown], width - 2))]
        if len(shown) < len(seats):
            lines.append([(f"  … {len(seats) - len(shown):,} more members (--all)", "dim")])
    if history.generations:
        noun = "gen" if history.kinds["classic"] else "epoch"
        rows = generation_cells(history, departures, clock, None if everything else ROWS)
        lines += [[], *_indented(table(["began", "took", noun, "what"], rows, width - 2, frozenset({0, 1, 2})))]
    if timeline is not False:
        chart = chart_of(history, clock, None if everything else LANES)
        if chart is not None and (timeline or width >= 60):
            lines += [[], *_indented(timeline_lines(chart, width - 2))]
    return lines


def _members(rows: list[list[Piece]], width: int) -> list[Line]:
    """A table; where names leave no room for it, each member in lines of its own."""
    heads = ["member", "host", "session / rebalance", "heartbeats"]
    wide = sum(max([len(heads[at]), *(len(row[at][0]) for row in rows)]) + 2 for at in range(3))
    if wide + 22 <= width:
        return table(heads, rows, width)
    return [line for row in rows for line in flowing([cell for cell in row if cell[0]], width, "    ")]


def kind_of(history: History) -> str:
    """As "classic group · consumer · range"."""
    kinds = " and ".join(history.kinds) or "only asked for"
    protocol = history.current.protocol if history.current else ""
    said = [history.protocol_type, protocol]
    return " · ".join([f"{kinds} group" if history.kinds and kinds != "offsets only" else kinds, *filter(None, said)])


def facts_of(history: History, clock: TimeFormat) -> list[str]:
    """What is known of the group as a whole."""
    facts = [f"{counted(history.calls, 'exchange')}, {clock(history.first)} to {clock(history.last)}"]
    if history.coordinators:
        brokers = ", ".join(broker for broker, _ in history.coordinators.most_common(3))
        facts.append(f"coordinator {brokers}")
    noun = "generation" if history.kinds["classic"] else "epoch"
    if history.formed:
        last = f", now {history.current.number}" if history.current else ""
        facts.append(f"{history.formed:,} {noun}{'s' if history.formed != 1 else ''} seen{last}")
    if history.interval:
        facts.append(f"heartbeats asked every {history.interval:,} ms")
    count = sum(history.commits.values())
    if count:
        who = ", ".join(f"{clean(label)} {number:,}" for label, number in history.commits.most_common(3))
        partitions = counted(len(history.committed), "partition")
        facts.append(f"{counted(count, 'commit')} of {partitions} ({who})")
    if history.agreed or history.disagreed:
        agreed = f"{history.agreed:,} answers as Kafka's rules have them"
        facts.append(agreed + (f", {history.disagreed:,} not" if history.disagreed else ""))
    return [clean(fact) for fact in facts]


def _busiest(seats: list[Seat]) -> list[Seat]:
    if len(seats) <= ROWS:
        return seats
    return sorted(seats, key=lambda seat: (-len(seat.errors), -len(seat.ids), -seat.beats.count))[:ROWS]


def member_cells(seat: Seat, history: History) -> list[Piece]:
    """A member: its name, its host, its timeouts, its heartbeats."""
    member = history.members.get(seat.ids[-1]) if seat.ids else None
    timeouts = ""
    if member is not None and member.session is not None:
        timeouts = f"{member.session:,} / {member.rebalance or 0:,} ms"
    elif member is not None and member.rebalance is not None and member.rebalance >= 0:
        timeouts = f"rebalance {member.rebalance:,} ms"
    beats = seat.beats
    text = f"{beats.count:,}" if beats.count else "none seen"
    if beats.usual is not None:
        text += f", every {lasted(beats.usual)}, at most {lasted(beats.longest)}"
    elif beats.longest:
        text += f", at most {lasted(beats.longest)} apart"
    if len(seat.ids) > 1:
        text += f" · {len(seat.ids):,} member ids"
    if seat.instance:
        text += f" · static, client {clean(seat.client_id)}"
    return [(clean(seat.label), "name"), (seat.host or "not seen", ""), (timeouts, ""), (text, "")]


def generation_cells(
    history: History, departures: Departures, clock: TimeFormat, most: int | None
) -> list[list[Piece]]:
    """A row for each generation and what went on in it: when it began, how long it took, its number, what happened.
    most: only so many, the last ones."""
    found = list(history.generations)
    shown = found if most is None else found[-most:]
    rows: list[list[Piece]] = []
    if len(shown) < history.formed:
        rows.append(
            [("…", "dim"), ("", ""), ("", ""), (f"{history.formed - len(shown):,} earlier ones (--all)", "dim")]
        )
    for generation in shown:
        took = generation.took
        rows.append([
            (clock(generation.began), "offset"), (lasted(took) if took else "", ""),
            (str(generation.number), "title"), (clean("; ".join(_said(generation, departures))), ""),
        ])  # fmt: skip
        for cause in generation.returns[: 4 * ROWS]:
            member = cause.member
            instance = f"instance id {member.instance}" if member else "an instance id"
            said = f"{cause.label}, client {member.seat.client_id if member else ''}, took {instance} "
            said += f"without a rebalance ({frame(cause.refs[0])})"
            rows.append([(clock(cause.time), "offset"), ("", ""), ("-", "dim"), (clean(said), "")])
        if generation.emptied is not None:
            gone = ", ".join(f"{cause.label} {words_of(cause)} at {clock(cause.time)}" for cause in generation.endings)
            rows.append(
                [(clock(generation.emptied), "offset"), ("", ""), ("-", "dim"), (clean(f"empty: {gone}"), "dim")]
            )
    if history.forming is not None and history.forming.joins:
        labels = ", ".join(join.member.label for join in history.forming.joins.values())
        rows.append([(clock(history.forming.began), "offset"), ("not over", "note"), ("…", "dim"),
                     (clean(f"{labels} in JoinGroup, not answered"), "note")])  # fmt: skip
    return rows


def _said(generation: Generation, departures: Departures) -> Iterator[str]:
    """What there is to say of a generation."""
    if generation.adopted:
        yield "began before the capture or unseen"
    causes = [departures.cause(cause, cause.time != generation.began) for cause in generation.causes[:3]]
    if causes:
        yield ", then ".join(causes) + (
            f" and {len(generation.causes) - 3:,} more" if len(generation.causes) > 3 else ""
        )
    last = generation.last_join
    if last is not None and len(generation.joins) > 1 and last.asked_at - generation.began > 10_000_000:
        verb = "reached it last" if generation.by_epochs else "joined last"
        yield f"{last.member.label} {verb}, after {lasted(last.asked_at - generation.began)}"
    if generation.unmet:
        yield f"waited for {', '.join(generation.unmet[:3])} in vain"
    leader = generation.members.get(generation.leader)
    if leader is not None and len(generation.members) > 1:
        yield f"led by {leader.label}"
    if generation.given:
        given = sorted(generation.given.items(), key=lambda item: (-item[1], item[0]))
        parts = ", ".join(f"{label} {count:,}" for label, count in given[:4])
        more = f" and {len(given) - 4:,} more members" if len(given) > 4 else ""
        alone = len(given) == len(generation.members) == 1
        yield counted(given[0][1], "partition") if alone else f"partitions: {parts}{more}"
    if generation.moved:
        yield _moved(generation)


def _moved(generation: Generation) -> str:
    """As "2 moved: orders-2,3 c1 → c2"."""
    ways: dict[tuple[str, str, str], list[int]] = {}
    for move in generation.moves:
        if move.source is not None:
            ways.setdefault((move.topic, move.source, move.target or "nobody"), []).append(move.partition)
    texts = []
    for (topic, source, target), parts in list(ways.items())[:3]:
        numbers = ",".join(map(str, parts[:6])) + (f" +{len(parts) - 6}" if len(parts) > 6 else "")
        texts.append(f"{topic}-{numbers} {source} → {target}")
    more = f" and {len(ways) - 3:,} more ways" if len(ways) > 3 else ""
    return f"{generation.moved:,} moved: {', '.join(texts)}{more}"


def _indented(lines: list[Line]) -> list[Line]:
    return [[("  ", ""), *line] for line in lines]


def document(judged: Judged, clock: TimeFormat) -> dict[str, Any]:
    """All of it. Times are ns since the epoch."""
    return {
        "start": clock.start,
        "groups": [_row(history, departures, found) for history, departures, found in judged],
    }


def _row(history: History, departures: Departures, found: list[Finding]) -> dict[str, Any]:
    return {
        "group": history.name, "kinds": dict(history.kinds), "protocol_type": history.protocol_type or None,
        "first_time": history.first, "last_time": history.last, "exchanges": history.calls,
        "coordinators": dict(history.coordinators), "heartbeat_interval_ms": history.interval,
        "as_the_model": history.agreed, "unlike_the_model": history.disagreed,
        "findings": [one.row() for one in found],
        "members": [_member_row(seat, history) for seat in history.seats.all.values()],
        "generations": [_generation_row(one, departures) for one in history.generations],
        "rebalancing_at_the_end": history.forming is not None and bool(history.forming.joins),
        "committed": [
            {"topic": topic, "partition": part, "offset": one.offset, "by": one.by, **one.ref.row()}
            for (topic, part), one in sorted(history.committed.items())
        ],
    }  # fmt: skip


def _member_row(seat: Seat, history: History) -> dict[str, Any]:
    member = history.members.get(seat.ids[-1]) if seat.ids else None
    timeouts = {
        "session_timeout_ms": member.session if member else None,
        "rebalance_timeout_ms": member.rebalance if member else None, "topics": list(member.topics) if member else [],
    }  # fmt: skip
    return {**seat.row(), **timeouts, "commits": history.commits[seat.label]}


def _generation_row(generation: Generation, departures: Departures) -> dict[str, Any]:
    members = generation.members
    leader = members.get(generation.leader)
    return {
        "number": generation.number, "began": generation.began, "formed": generation.formed, "done": generation.done,
        "took_ns": generation.took, "ended": generation.ended, "emptied": generation.emptied,
        "unseen_beginning": generation.adopted,
        "leader": leader.label if leader else generation.leader or None, "protocol": generation.protocol or None,
        "members": [member.label for member in members.values()],
        "causes": [
            {"time": cause.time, "kind": cause.kind, "member": cause.label or None, "what": departures.cause(cause),
             "evidence": [ref.row() for ref in cause.refs]}
            for cause in generation.causes
        ],
        "joins": [
            {"member": join.member.label, "asked": join.asked_at, "answered": join.answered_at,
             "after_ns": max(join.asked_at - generation.began, 0), "reason": join.reason or None}
            for join in generation.joins.values()
        ],
        "waited_in_vain_for": generation.unmet,
        "assignment": {members[ident].label if ident in members else ident: topics
                       for ident, topics in generation.assignment.items()},
        "moved": generation.moved,
        "moves": [{"topic": one.topic, "partition": one.partition, "from": one.source, "to": one.target}
                  for one in generation.moves],
    }  # fmt: skip
