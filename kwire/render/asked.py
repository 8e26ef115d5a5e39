"""Frames that a client sent and got: their diagrams, and their bodies as values, without secrets."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from kwire.codec.echo import Echo
from kwire.codec.frames import Frame
from kwire.codec.identify import Item, shown
from kwire.codec.library import Library
from kwire.codec.span import Span
from kwire.payloads.open import open_payloads
from kwire.render.decoded import item_lines, record
from kwire.render.lines import Line, joined


def frame_lines(
    frame: Frame, data: bytes, library: Library, view: str, width: int, *,
    full: bool = False, notes: bool = False, elements: int = 0, show_secrets: bool = False,
    echo: Echo | None = None,
) -> list[Line]:  # fmt: skip
    """A title, remarks, and the view: text (the diagram), tree or hex. echo: what is withheld of an answer too."""
    span = _opened(frame, data, library, show_secrets, echo)
    return item_lines(_item(frame, data, library), span, data, view, width, full, notes, elements)


def frame_record(
    frame: Frame, data: bytes, library: Library, inner: bool = False, show_secrets: bool = False,
    echo: Echo | None = None,
) -> dict[str, Any]:  # fmt: skip
    """What decode says of the frame as JSON. inner: records and other formats in fields as objects."""
    row = record(_item(frame, data, library), _opened(frame, data, library, show_secrets, echo), inner)
    return {name: value for name, value in row.items() if name != "start"}


def _item(frame: Frame, data: bytes, library: Library) -> Item:
    message = None if frame.api_key is None else library.api_message(frame.api_key, frame.kind == "request")
    return Item(0, len(data), frame.span, message, frame)


def _opened(frame: Frame, data: bytes, library: Library, show_secrets: bool, echo: Echo | None) -> Span:
    item = _item(frame, data, library)
    span = open_payloads(item.span, data, item.message.name) if item.message else item.span
    if show_secrets:
        return span
    clear = shown(item, span)
    return echo.span(clear, data) if echo and frame.kind == "response" else clear


def call_line(about: dict[str, Any], width: int) -> list[Line]:
    """Who asked whom, when, and how long the answer took."""
    took = about["took_ns"]
    parts = [(f"{about['client']} → {about['broker']}", ""), (clock(about["time"]), "dim")]
    parts.append((f"answered in {took_text(took)}" if took is not None else "no answer is due", "dim"))
    return joined(parts, width)


def clock(ns: int) -> str:
    """14:03:22.501, UTC."""
    return datetime.fromtimestamp(ns / 1e9, UTC).strftime("%H:%M:%S.%f")[:-3]


def took_text(ns: int) -> str:
    """0.42 ms, 12 ms, 3.0 s."""
    ms = ns / 1e6
    return f"{ms / 1000:.1f} s" if ms >= 1000 else f"{ms:.0f} ms" if ms >= 10 else f"{ms:.1f} ms"
