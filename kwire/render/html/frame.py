"""The frame of every HTML page: its head with a policy that forbids all loads, the style, what the page is about at the
top, and the body beneath.

A page is one file: style and script are in it, allowed by their hashes (Content-Security-Policy), so that nothing that
came from the wire can ever run or load, even if it got into the markup.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

from kwire.render.colors import classes, variables
from kwire.render.html.markup import EMPTY, LINE, Content, Markup, element, joined, markup
from kwire.render.lines import Line

Facts = Iterable[tuple[str, Content]]
NOTHING: Mapping[str, str] = {}
IN, DEEP = 9, 18  # blanks from which on a line stands in a block, or in a block of a block (page.css)


def page(
    title: str, body: Markup, *, facts: Facts = (), navigation: Markup | None = None, style: str = "",
    script: str = "", links: Iterable[Markup] = (), allow: Mapping[str, str] = NOTHING, own: bool = True,
) -> str:  # fmt: skip
    """A whole page. facts: what it is about, by names as "capture", shown beneath the title; navigation: links, above
    everything; style and script: beyond the common style; links: elements for the head; allow: what the policy allows
    besides, by directive, as {"connect-src": "'self'"}; own: whether the common style is in the page, or of a file that
    links name."""
    css = common_style() + style if own else style
    head = [
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy(css, script, allow)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", title),
        *links,
        Markup(f"<style>{css}</style>") if css else EMPTY,
    ]
    told = [joined([element("dt", name), element("dd", value)]) for name, value in facts]
    top = element(
        "header", element("h1", title),
        element("dl", *(element("div", one) for one in told), class_="facts") if told else None,
    )  # fmt: skip
    parts = [
        navigation,
        top,
        element("main", body, id="content"),
        Markup(f"<script>{script}</script>") if script else None,
    ]
    content = joined((part for part in parts if part is not None), LINE)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{joined(head, LINE)}\n</head>\n<body>\n{content}\n</body>\n</html>'
    )


def policy(style: str, script: str, allow: Mapping[str, str] = NOTHING) -> str:
    """The Content-Security-Policy of a page with that style and that script in it, and nothing else."""
    rules = {"default-src": "'none'", "base-uri": "'none'", "form-action": "'none'"}
    if style:
        rules["style-src"] = digest(style)
    if script:
        rules["script-src"] = digest(script)
    for name, sources in allow.items():
        rules[name] = f"{rules.get(name, '')} {sources}".strip()
    return "; ".join(f"{name} {sources}" for name, sources in rules.items())


def digest(text: str) -> str:
    """How a policy names an inline style or script."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def common_style() -> str:
    """The style that all pages share."""
    return variables() + classes() + files("kwire.render.html").joinpath("page.css").read_text("utf-8")


def pre(lines: Iterable[Line]) -> Markup:
    """Lines as text in columns; what is wider than the window goes on beneath."""
    rows = (element("span", *(_piece(text, style) for text, style in _stripped(line)), class_=_class(line))
            for line in lines)  # fmt: skip
    return element("pre", joined(rows, LINE), class_="lines")


def _class(line: Line) -> str:
    """How far what goes on beneath is indented: as far as the line."""
    text = "".join(text for text, _ in line[:2])
    blanks = len(text) - len(text.lstrip(" "))
    return "l deep" if blanks >= DEEP else "l in" if blanks >= IN else "l"


def _stripped(line: Line) -> Line:
    """Without the blanks at its end."""
    kept = list(line)
    while kept and not kept[-1][0].strip(" "):
        kept.pop()
    if kept:
        kept[-1] = kept[-1][0].rstrip(" "), kept[-1][1]
    return kept


def _piece(text: str, style: str) -> Markup:
    return element("span", text, class_=style) if style and text.strip() else markup(text)
