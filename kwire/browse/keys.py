"""The keys, in one table: what the application binds, and what the page of help shows."""

from __future__ import annotations

from typing import NamedTuple

from kwire.render.lines import Line


class KeyRow(NamedTuple):
    """keys: as Textual names them; shown: as people do; action: of the application."""

    keys: str
    shown: str
    action: str
    what: str


MOVING = (
    KeyRow("j,down", "j ↓", "step(1)", "down: an exchange, a field, a line of bytes"),
    KeyRow("k,up", "k ↑", "step(-1)", "up"),
    KeyRow("g,home", "g", "ends(False)", "to the first"),
    KeyRow("G,end", "G", "ends(True)", "to the last"),
    KeyRow("ctrl+d,pagedown,space", "space ^D", "page(1)", "a page down"),
    KeyRow("ctrl+u,pageup", "^U", "page(-1)", "a page up"),
    KeyRow("h,left", "h ←", "aside(-1)", "in the bytes: one back"),
    KeyRow("l,right", "l →", "aside(1)", "in the bytes: one on"),
    KeyRow("tab", "Tab", "next_pane(1)", "list, diagram, bytes: the next pane"),
    KeyRow("shift+tab", "⇧Tab", "next_pane(-1)", "the pane before"),
    KeyRow("enter", "Enter", "enter", "from the list into the diagram"),
    KeyRow("escape", "Esc", "close", "back to the list; there: without the filter"),
)
FINDING = (
    KeyRow("slash", "/", "ask('search')", "search: client, API, topic, group, address, error"),
    KeyRow("n", "n", "again(True)", "the next that was searched"),
    KeyRow("N", "N", "again(False)", "the one before"),
    KeyRow("f", "f", "ask('filter')", "filter: api=Fetch slower=100ms client=cart-*, and so on"),
    KeyRow("c", "c", "only('connection')", "this connection only, and back"),
    KeyRow("i", "i", "only('id')", "this correlation id only, and back"),
    KeyRow("F", "F", "follow", "follow: stay at the end while more comes"),
)
LOOKING = (
    KeyRow("r", "r", "partner", "the other message: request or response"),
    KeyRow("plus", "+", "elements", "all elements of arrays, or the first ones"),
    KeyRow("d", "d", "findings", "what kwire doctor finds; Enter goes to the evidence"),
    KeyRow("v", "v", "timeline", "the timeline of the exchange's group"),
    KeyRow("colon", ":", "ask('command')", "another command on this capture: stats, clients, audit --to 4.0"),
)
KEEPING = (
    KeyRow("m", "m", "mark", "mark the exchange, or take the mark away"),
    KeyRow("w", "w", "ask('save')", "write the marked exchanges' packets to a capture"),
    KeyRow("e", "e", "ask('export')", "export the frame: x.json, x.html, or a kwire call"),
)
ENDING = (
    KeyRow("question_mark", "?", "help", "this page"),
    KeyRow("q", "q", "leave", "close the page; quit"),
)
SECTIONS = (("move", MOVING), ("find", FINDING), ("look", LOOKING), ("keep", KEEPING), ("end", ENDING))
HINTS = "? keys  f filter  / search  r partner  m mark  d findings  q quit"


def help_lines() -> list[Line]:
    """The page of help."""
    lines: list[Line] = []
    for title, keys in SECTIONS:
        lines += [[(title, "section")], *([(f"  {key.shown:<9}", "value"), (key.what, "")] for key in keys), []]
    lines += [[("filters", "section")]]
    lines += [[(f"  {text}", "")] for text in FILTERS]
    return lines


FILTERS = (
    "api=Fetch  client-id=cart-*  client=10.0.0.7  broker=:9093  topic=orders  group=billing",
    "errors  error=NOT_LEADER*  slower=100ms  from=+12.5  to=14:03:22  id=17  connection=#2",
    "All that is given must hold; of one kind several times, one must.",
)
