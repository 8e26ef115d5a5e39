"""The documentation as pages: what `kwire help` shows, and what reads well as files too.

A page is NAME.md: a heading, a paragraph that says what it is for, then sections.
"""

from __future__ import annotations

import difflib
from typing import NamedTuple

from kwire.errors import UnknownName
from kwire.schema.shipped import folder_of, listed

ORDER = (
    "start", "bytes", "captures", "browse", "wrong", "evictions", "upgrades", "comparing", "what-if",
    "sharing", "in-between", "encrypted", "monitoring", "wireshark", "test-broker", "conformance", "asking", "tables",
    "questions", "spark", "reference", "newer-kafka", "python", "speed", "security", "internals", "changes", "commands",
)  # fmt: skip


class Guide(NamedTuple):
    """A page: its name, its heading, the first sentence beneath it, and all of it as Markdown."""

    name: str
    title: str
    summary: str
    text: str


def names() -> list[str]:
    """Every page, as one reads them: those that ORDER knows, then the others."""
    found = listed(folder_of(__name__), ".md")
    return [name for name in ORDER if name in found] + [name for name in found if name not in ORDER]


def page(name: str) -> Guide:
    """A page by its name. Raises UnknownName with the nearest ones."""
    file = listed(folder_of(__name__), ".md").get(name)
    if file is None:
        raise UnknownName("page", name, tuple(difflib.get_close_matches(name, names(), 3, 0.5)))
    text = file.read_text(encoding="utf-8")
    title, _, rest = text.partition("\n")
    paragraph = " ".join(rest.strip().partition("\n\n")[0].split())
    return Guide(name, title.lstrip("# "), paragraph.partition(". ")[0].rstrip(".:"), text)
