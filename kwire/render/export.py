"""Lines as an SVG picture or an HTML page: each style of lines.py a class, dark or light as the reader has it.

Neither needs anything from elsewhere: no script, no font, no picture. In the SVG every piece has its place and its
length, so that columns stay columns whatever the font's own width is.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from kwire.render.lines import Line, plain

FONT = "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace"
SIZE, ADVANCE, LEADING, MARGIN = 14, 8.4, 19, 16  # pixels: letters, a column, a line, around all of it

# the background, then for each style its color on dark and on light, and whether it is bold
GROUND = ("#14171c", "#ffffff")
COLORS = {
    "": ("#d5d9e0", "#24292f", False),
    "title": ("#ffffff", "#000000", True),
    "section": ("#56b6e9", "#0550ae", True),
    "head": ("#8b93a1", "#6e7781", False),
    "offset": ("#8b93a1", "#6e7781", False),
    "dim": ("#8b93a1", "#6e7781", False),
    "type": ("#8fc973", "#116329", False),
    "value": ("#e5b567", "#8a4600", False),
    "bytes": ("#86a8f0", "#3450b0", False),
    "note": ("#d190dd", "#8250df", False),
    "error": ("#ff7b72", "#cf222e", True),
    "good": ("#8fc973", "#116329", False),
    "c0": ("#56b6e9", "#0550ae", False),
    "c1": ("#e5b567", "#8a4600", False),
    "c2": ("#d190dd", "#8250df", False),
    "c3": ("#8fc973", "#116329", False),
    "c4": ("#86a8f0", "#3450b0", False),
}


def html(lines: Iterable[Line], title: str) -> str:
    """A page with the lines as text."""
    body = "\n".join("".join(_span(text, style) for text, style in line).rstrip() for line in lines)
    style = f"body {{ margin: 1.5em }}\npre {{ font: {SIZE}px/1.36 {FONT} }}\n" + _rules("color", "body", "background")
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(title)}</title>\n'
        f"<style>\n{style}</style>\n</head>\n<body>\n<pre>{body}\n</pre>\n</body>\n</html>"
    )


def _span(text: str, style: str) -> str:
    known = style in COLORS and style and text.strip()
    return f'<span class="{style}">{escape(text, quote=False)}</span>' if known else escape(text, quote=False)


def svg(lines: Iterable[Line], title: str) -> str:
    """A picture of the lines, as large as they are."""
    shown = list(lines)
    width = 2 * MARGIN + ADVANCE * max((len(plain(line)) for line in shown), default=0)
    height = 2 * MARGIN + LEADING * len(shown)
    texts = "\n".join(text for number, line in enumerate(shown) for text in _texts(line, number))
    style = f"text {{ font: {SIZE}px {FONT}; white-space: pre }}\n" + _rules("fill", "rect", "fill")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height}" '
        f'viewBox="0 0 {width:g} {height}">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n"
        f'<rect width="100%" height="100%"/>\n{texts}\n</svg>'
    )


def _texts(line: Line, number: int) -> Iterable[str]:
    column = 0
    for text, style in line:
        start = column + len(text) - len(text.lstrip())
        bare = text.strip()
        column += len(text)
        if bare:
            x, y = MARGIN + ADVANCE * start, MARGIN + LEADING * number + SIZE
            look = f' class="{style}"' if style in COLORS and style else ""
            length = f'textLength="{ADVANCE * len(bare):g}"'
            yield f'<text x="{x:g}" y="{y}" {length} xml:space="preserve"{look}>{escape(bare, quote=False)}</text>'


def _rules(color: str, ground: str, fill: str) -> str:
    """CSS for every style: dark, and light where the reader's system says so."""

    def scheme(index: int) -> str:
        rules = [f"{ground} {{ {fill}: {GROUND[index]} }}"]
        for name, (*colors, bold) in COLORS.items():
            weight = "; font-weight: bold" if bold else ""
            rules.append(f"{f'.{name}' if name else 'text, body'} {{ {color}: {colors[index]}{weight} }}")
        return "\n".join(rules)

    return f"{scheme(0)}\n@media (prefers-color-scheme: light) {{\n{scheme(1)}\n}}\n"
