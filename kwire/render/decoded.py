"""What decode shows of an item: a title, what had to be guessed, what is wrong, and the view that was asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kwire.codec.annotate import count_bytes
from kwire.codec.identify import Item
from kwire.codec.quality import Quality
from kwire.codec.secrets import Withheld
from kwire.codec.span import Span, fields, opened
from kwire.errors import UnknownName
from kwire.render.diagram import DiagramOptions, diagram
from kwire.render.hexdump import hexdump
from kwire.render.jsonform import to_jsonable
from kwire.render.lines import Line, clean, joined, paragraph, quoted
from kwire.render.logs import file_lines, is_list
from kwire.render.tree import tree

OTHERS = 6  # readings that also fit, at most
OPAQUE = 256  # bytes shown of what is not recognized


def item_lines(
    item: Item, span: Span, data: bytes, view: str, width: int, full: bool, notes: bool, elements: int,
    bounded: bool = True,
) -> list[Line]:  # fmt: skip
    """Title, remarks and the view: text (the diagram), list (of a file of records its entries, else the diagram), tree,
    hex; svg and html show the diagram. bounded: the lines of a list are cut at width, unless full says not to."""
    listed = view == "list" and item.file and is_list(span)
    lines = _title(item, span, data, width, listed)
    lines += list(_remarks(item, span, data, width))
    if item.verdict:
        return lines
    lines.append([])
    if listed:
        lines += file_lines(span, width if bounded and not full else None, elements)
    elif view == "tree":
        lines += tree(span, width)
    elif len(span.children) == 1 and isinstance(span.children[0].value, Withheld):
        lines.append([(f"  {span.children[0].value}", "note")])
    elif view == "hex" or (item.message is None and item.frame is None and not item.file):
        shown = data if full or view == "hex" else data[:OPAQUE]
        lines += hexdump(span, shown, width)
        if len(data) > len(shown):
            lines.append([(f"      … {count_bytes(len(data) - len(shown))} more (--full)", "dim")])
    else:
        lines += diagram(span, data, DiagramOptions(width, full, notes, elements))
    return lines


def _title(item: Item, span: Span, data: bytes, width: int, listed: bool) -> list[Line]:
    """The name and what the header says; what does not fit goes on beneath."""
    size = count_bytes(len(data))
    if item.verdict:
        return [[(f"not Kafka: {item.verdict.what}", "error"), (f" · {size}", "dim")]]
    name = "not recognized" if item.message is None and item.frame is None and not item.file else span.name
    parts = [(name, "title"), (size, "dim")]
    if listed and span.text:
        parts.append((clean(span.text), "dim"))
    if item.frame and item.frame.correlation_id is not None:
        parts.append((f"correlation id {item.frame.correlation_id}", "dim"))
    client_id = _client_id(item, span)
    if client_id is not None:
        parts.append((f"client id {clean(client_id) or quoted('')}", "dim"))
    if item.start:
        parts.append((f"from byte {item.start:,}", "dim"))
    return joined(parts, width)


def _client_id(item: Item, span: Span) -> str | None:
    """The client id, or that it is withheld."""
    if item.frame is None or item.frame.client_id is None:
        return None
    shown = next((part.value for part in span.below() if part.name == "client_id"), None)
    return str(shown) if isinstance(shown, Withheld) else item.frame.client_id


def _remarks(item: Item, span: Span, data: bytes, width: int) -> Iterator[Line]:
    verdict = item.verdict
    if verdict:
        if verdict.detail:
            yield [(f"  {clean(verdict.detail)}", "value")]
        yield from paragraph(verdict.advice, width, "  ")
        if verdict.logged:
            yield from paragraph(f"A broker that is sent this logs: {verdict.logged}", width, "  ", "note")
        return
    if item.readings:
        best, others = item.readings[0], item.readings[1:]
        if not item.sure:
            low, high = best.versions[-1], best.versions[0]
            alike = f" v{low} to v{high} read the same." if low != high else ""
            missing = {"frame": "", "unsized frame": " No size prefix.", "body": " A body alone, without a header."}
            guess = f"inferred: nothing in the bytes names the message.{missing[best.form]}{alike}"
            yield from paragraph(guess, width, "  ", "note")
        if others and not item.sure:
            names = ", ".join(other.title for other in others[:OTHERS])
            more = f" and {len(others) - OTHERS} more" if len(others) > OTHERS else ""
            yield from paragraph(f"also fits: {names}{more} (--as NAME -v N)", width, "  ", "dim")
        elif best.form != "frame" and item.sure:
            missing = {"unsized frame": "no size prefix", "body": "a body alone, without a header"}
            if best.definition.is_api:
                yield [(f"  {missing[best.form]}", "dim")]
    wrong = span.wrong_checksums()
    if wrong:
        yield [(f"  {wrong} checksum{'' if wrong == 1 else 's'} wrong: corrupt or changed on the way", "error")]
    if item.frame and item.frame.note:
        style = "note" if item.frame.quality == Quality.OK else "error"
        yield from paragraph(f"{item.quality}: {clean(item.frame.note)}", width, "  ", style)
    elif item.message is not None and not item.frame:
        broken = item.span.broken()
        if broken:
            path, piece = broken
            where = f"{item.span.name}: {path}" if path and path != "trailing" else item.span.name
            yield from paragraph(f"malformed: {clean(where)}: {clean(piece.note or '')}", width, "  ", "error")
    elif item.quality == Quality.TRUNCATED:
        size = int.from_bytes(data[:4], "big")
        cut = f"truncated: the first four bytes say {size:,} and {len(data) - 4:,} follow, as in a frame that was cut."
        how = "A response that was cut cannot be told apart: say what it is with --as NAME -v N."
        yield from paragraph(f"{cut} {how}", width, "  ", "error")
    elif item.message is None and item.frame is None and not item.file:
        yield from paragraph(
            "No message of any version uses these bytes whole, and no request header begins them. --as NAME -v N says "
            "what they should be.", width, "  ", "error",
        )  # fmt: skip


def record(item: Item, span: Span, inner: bool = False) -> dict[str, Any]:
    """An item as plain data: what it is, its quality, header and body; of a broken one, what could be read.

    With inner, fields that hold formats of their own give what is in them, not their bytes.
    """
    frame = item.frame
    row: dict[str, Any] = {"start": item.start, "size": item.end - item.start}
    if item.verdict:
        verdict = item.verdict
        said = {"not_kafka": verdict.what, "detail": verdict.detail, "broker_logs": verdict.logged}
        return row | {"quality": Quality.OPAQUE, **said}
    best = item.readings[0] if item.readings else None
    if frame:
        row |= {"kind": frame.kind, "api_key": frame.api_key, "api": frame.api, "api_version": frame.api_version}
        row |= {"header_version": frame.header_version, "correlation_id": frame.correlation_id}
        row |= {"client_id": _client_id(item, span)}
    elif best:
        row |= {"message": best.name, "version": best.versions[0]}
    row["quality"] = item.quality
    if span.wrong_checksums():
        row["wrong_checksums"] = span.wrong_checksums()
    broken = span.broken()
    row["note"] = frame.note if frame and frame.note else broken[1].note if broken else None
    if not item.sure:
        row["readings"] = [reading.title for reading in item.readings]
    body = span if span.type == "message" else next((c for c in span.children if c.type == "message"), None)
    if item.file:
        row["content"] = span.name
    row["body"] = None if body is None else opened(body) if inner or item.file else fields(body)
    return row


def span_rows(item: Item, span: Span) -> Iterator[dict[str, Any]]:
    """A row a span: path, type, where, value of leaves, note. Offsets count from the item's start."""
    for path, part in span.walk():
        row: dict[str, Any] = {"item": item.start, "path": path, "type": part.type}
        row |= {"start": part.start, "end": part.end}
        if not part.children:
            row["value"] = to_jsonable(part.value)
        if part.note:
            row["note"] = part.note
        yield row


def find(spans: list[Span], path: str) -> list[Span]:
    """In each of spans the first one with that path, header fields included; with [*] in it, those of all elements.
    Raises UnknownName with the nearest paths when none has it."""
    known = [_paths(span) for span in spans]
    if "[*]" in path:
        pattern = re.compile(re.escape(path).replace(re.escape("[*]"), r"\[\d+\]"), re.IGNORECASE)
        every = [part for paths in known for here, part in paths.items() if pattern.fullmatch(here)]
        if every:
            return every
    for wanted in (str, str.lower):
        found = [next((part for here, part in paths.items() if wanted(here) == wanted(path)), None) for paths in known]
        if any(found):
            return [part for part in found if part is not None]
    import difflib

    near = difflib.get_close_matches(path, dict.fromkeys(here for paths in known for here in paths), 3, 0.5)
    raise UnknownName("field", path, tuple(near))


def _paths(span: Span) -> dict[str, Span]:
    out: dict[str, Span] = {}
    for here, part in span.walk():
        if part.type not in ("tag", "tagged", "header", "message"):
            out.setdefault(here, part)
    return out
