"""Connections of other protocols: what they are, and what the broker will have logged of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kwire.counted import counted
from kwire.render.exchanges import ExchangeLines
from kwire.render.lines import Line, clean, flowing, paragraph

if TYPE_CHECKING:
    from kwire.session.conversation import Conversation


def lines_of(conversation: Conversation, width: int, start: int | None) -> list[Line]:
    """A line with the endpoints and the verdict, and what follows from it beneath."""
    found = conversation.verdict
    assert found is not None
    verdict, (client, broker) = found.verdict, conversation.ends
    time = f"{ExchangeLines(width, start).time(conversation.connection.first_time):>11}"
    sizes = f"{counted(found.sizes[found.client], 'byte')} sent, {found.sizes[1 - found.client]:,} got"
    ends = [f"{client} → {broker}"] if len(client + broker) + 16 <= width else [client, f"→ {broker}"]
    parts = [(time, "offset"), *((end, "") for end in ends), (verdict.what, "error"), (sizes, "dim")]
    lines = flowing(parts, width, " " * 13)
    said = [clean(text) for text in (verdict.detail, found.answer, found.advice) if text]
    if found.logged:
        said.append(f"The broker logs: {found.logged}")
    for text in said:
        lines += paragraph(text, width, " " * 13, "dim", breaks=True)
    return lines


def row_of(conversation: Conversation) -> dict[str, Any]:
    """The same as a row."""
    found = conversation.verdict
    assert found is not None
    verdict, (client, broker) = found.verdict, conversation.ends
    return {
        "capture": conversation.capture,
        "connection": f"{client}>{broker}#{conversation.connection.epoch}",
        "time": conversation.connection.first_time,
        "what": verdict.what,
        "detail": verdict.detail or None,
        "answer": found.answer,
        "sent": found.sizes[found.client],
        "got": found.sizes[1 - found.client],
        "first_bytes_as_size": verdict.size,
        "logged": found.logged,
        "advice": found.advice,
    }
