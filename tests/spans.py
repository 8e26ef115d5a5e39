"""What every span tree keeps to."""

from __future__ import annotations

from collections.abc import Iterable

from kwire.codec.span import Span


def gap(spans: Iterable[Span], start: int, end: int) -> str | None:
    """Where spans and what is below them leave a byte out, or take one twice: they lie from start to end, children from
    the end of their parent's own bytes to its end, or fill its buffer. None where all is right."""
    at = start
    for span in spans:
        if span.start != at:
            return f"{span.name} begins at {span.start}, not at {at}"
        if not span.start <= span.own_end <= span.end:
            return f"{span.name} from {span.start} to {span.end} has bytes of its own up to {span.own_end}"
        below = None
        if span.buffer is not None:
            below = gap(span.children, 0, len(span.buffer))
        elif span.children:
            below = gap(span.children, span.own_end, span.end)
        if below is not None:
            return f"{span.name}: {below}"
        at = span.end
    return None if at == end else f"ends at {at}, not at {end}"
