"""Lines as an SVG picture: each style of lines.py a class, dark or light as the reader has it.

It needs nothing from elsewhere: no script, no font. Every piece has its place and its length, so that columns stay
columns whatever the font's own width is.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from kwire.render.colors import COLORS, FONT, GROUND
from kwire.render.lines import Line, plain

SIZE, ADVANCE, LEADING, MARGIN = 14, 8.4, 19, 16  # pixels: letters, a column, a line, around all of it


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
