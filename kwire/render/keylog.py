"""The page of kwire explain keylog: how to get the keys of TLS sessions. Its text is keylog.txt."""

from __future__ import annotations

from typing import Any

from kwire.render.lines import Line, paragraph
from kwire.schema.shipped import folder_of

NAMES = ("keylog", "sslkeylogfile", "tls")


def text() -> str:
    """The title, then paragraphs; lines that four blanks begin are commands, and those that # begins are headings."""
    return (folder_of("kwire.render") / "keylog.txt").read_text(encoding="utf-8")


def lines(width: int) -> list[Line]:
    """The page; commands are not wrapped, so that they can be copied."""
    title, _, rest = text().partition("\n")
    out: list[Line] = [[(title, "title")]]
    for part in rest.strip().split("\n\n"):
        out.append([])
        if part.startswith("    "):
            out += [[(line, "value")] for line in part.splitlines()]
        elif part.startswith("# "):
            out.append([(part.removeprefix("# "), "head")])
        else:
            out += paragraph(" ".join(part.split()), width)
    return out


def document() -> dict[str, Any]:
    """The same as data."""
    title, _, rest = text().partition("\n")
    return {"topic": "keylog", "title": title, "text": rest.strip()}
