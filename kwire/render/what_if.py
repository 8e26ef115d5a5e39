"""What other settings would make of a capture's traffic, as tables and as a JSON document."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kwire.analyze.fetch_sizes import Fetches
from kwire.analyze.recompression import Estimate, TopicRecords
from kwire.analyze.zones import Zones
from kwire.counted import counted
from kwire.render.lines import Line, Piece, clean, cut, paragraph

MOST = 10  # topics and clients, unless all are asked for


@dataclass(slots=True)
class Answers:
    """topics: with the estimates by codec and by batching; fetches: with those by fetch.min.bytes; zones: None without
    any."""

    topics: dict[str, tuple[TopicRecords, dict[str, Estimate], dict[str, Estimate]]] = field(default_factory=dict)
    fetches: dict[str, tuple[Fetches, dict[str, Any]]] = field(default_factory=dict)
    zones: Zones | None = None


def what_if_lines(answers: Answers, width: int, everything: bool = False) -> list[Line]:
    """A paragraph each topic, each client and the zones."""
    lines: list[Line] = []
    topics = list(answers.topics.items())
    for name, (topic, codecs, batching) in topics if everything else topics[:MOST]:
        lines += [*_topic(name, topic, codecs, batching, width), []]
    fetches = sorted(answers.fetches.items(), key=lambda item: -item[1][0].count)
    for name, (found, waits) in fetches if everything else fetches[:MOST]:
        lines += [*_fetches(name, found, waits, width), []]
    more = max(len(topics), len(fetches)) - MOST
    if more > 0 and not everything:
        lines += [[(f"… {more:,} more (--all)", "dim")], []]
    if answers.zones is not None:
        lines += [*_zones(answers.zones, width), []]
    return lines[:-1] or [[("no records that were produced or fetched", "dim")]]


def _topic(
    name: str, topic: TopicRecords, codecs: dict[str, Estimate], batching: dict[str, Estimate], width: int
) -> list[Line]:
    shown = cut(clean(name), width - 50)
    per = topic.records / max(topic.batches, 1)
    batches = counted(topic.batches, "batch", "batches")
    now = f"{counted(topic.records, 'record')} in {batches} of {per:,.1f}, {topic.codec}"
    lines: list[Line] = [[(shown, "title"), (f"  {now}", "dim")]]
    head = f"  {'':<34}{'bytes':>12}{'':>8}{'batches':>10}{'CPU/MB':>10}"
    lines.append([(head, "head")])
    lines.append(_row("as it was sent", topic.size, topic.size, topic.batches, None, topic.plain))
    for label, found in (*codecs.items(), *batching.items()):
        lines.append(_row(label, found.size, topic.size, found.batches, found.seconds, topic.plain))
    if topic.kept_plain < topic.plain:
        share = f"{topic.kept_plain / max(topic.plain, 1):.0%}"
        lines += paragraph(f"computed from {share} of its records", width, "  ", "dim")
    return lines


def _row(label: str, size: int, before: int, batches: int, seconds: float | None, plain: int) -> Line:
    change = "" if seconds is None else f"{(size - before) / max(before, 1):+.0%}"
    style = "good" if size < before * 0.95 else "note" if size > before * 1.05 else ""
    cost = "" if seconds is None else f"{seconds * 1e9 / max(plain, 1):,.1f} ms"
    row: list[Piece] = [
        (f"  {label:<34}", "name"), (f"{size:>12,}", ""), (f"{change:>8}", style), (f"{batches:>10,}", ""),
        (f"{cost:>10}", "dim"),
    ]  # fmt: skip
    return row


def _fetches(name: str, found: Fetches, waits: dict[str, Any], width: int) -> list[Line]:
    least, longest = found.usual
    shown = cut(clean(name) or "(no client id)", width - 50)
    now = f"{counted(found.count, 'fetch', 'fetches')}, {found.size:,} bytes of records"
    lines: list[Line] = [[(shown, "title"), (f"  {now}", "dim")]]
    lines.append([(f"  {'':<34}{'responses':>12}{'':>8}{'later by':>12}", "head")])
    label = f"fetch.min.bytes {least}, max wait {longest}"
    lines.append([(f"  {label:<34}", "name"), (f"{found.count:>12,}", "")])
    for label, (responses, delay) in waits.items():
        change = f"{(responses - found.count) / max(found.count, 1):+.0%}"
        lines.append([(f"  {label:<34}", "name"), (f"{responses:>12,}", ""), (f"{change:>8}", ""),
                      (f"{delay:,.1f} ms".rjust(12), "dim")])  # fmt: skip
    return lines


def _zones(zones: Zones, width: int) -> list[Line]:
    lines: list[Line] = [[("zones", "title"), ("  bytes between clients and brokers", "dim")]]
    traffic = zones.traffic()
    total = max(sum(traffic.values()), 1)
    for (what, client, broker), size in sorted(traffic.items(), key=lambda item: -item[1]):
        text = f"{what} from {client} to {broker}" if what == "produced" else f"{what} by {client} from {broker}"
        style = "" if client == broker else "note"
        lines.append([(f"  {cut(clean(text), 44):<46}", style), (f"{size:>14,}", ""), (f"{size / total:>7.0%}", "dim")])
    across = sum(size for (_, client, broker), size in traffic.items() if client != broker)
    kept = zones.saved()
    said = f"{across:,} bytes, {across / total:.0%}, go from one zone to another"
    said += f"; {kept:,} of them would stay with client.rack set: their partitions have replicas there" if kept else ""
    return [*lines, *paragraph(said, width, "  ", "dim")]


def document(answers: Answers) -> dict[str, Any]:
    """All of it."""
    out: dict[str, Any] = {"topics": [], "fetches": []}
    for name, (topic, codecs, batching) in answers.topics.items():
        now = {"bytes": topic.size, "batches": topic.batches, "records": topic.records, "codecs": topic.codecs,
               "uncompressed_bytes": topic.plain}  # fmt: skip
        then = [_estimate("codec", label, found) for label, found in codecs.items()]
        then += [_estimate("batching", label, found) for label, found in batching.items()]
        out["topics"].append({"topic": name, "now": now, "what_if": then})
    for name, (found, waits) in answers.fetches.items():
        least, longest = found.usual
        now = {"responses": found.count, "bytes": found.size, "fetch_min_bytes": least, "fetch_max_wait_ms": longest}
        rows = [{"setting": label, "responses": r, "delay_ms": round(d, 3)} for label, (r, d) in waits.items()]
        out["fetches"].append({"client_id": name, "now": now, "what_if": rows})
    if answers.zones is not None:
        traffic = [{"what": what, "client_zone": client, "broker_zone": broker, "bytes": size}
                   for (what, client, broker), size in answers.zones.traffic().items()]  # fmt: skip
        out["zones"] = {"traffic": traffic, "client_rack_would_keep_bytes": answers.zones.saved()}
    return out


def _estimate(kind: str, label: str, found: Estimate) -> dict[str, Any]:
    return {"kind": kind, "setting": label, "bytes": found.size, "batches": found.batches,
            "cpu_seconds": round(found.seconds, 6)}  # fmt: skip
