"""The colors and fonts of all pictures and pages: each style of lines.py on dark and on light ground."""

from __future__ import annotations

from collections.abc import Iterator

FONT = "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace"
PROSE = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif"

# the background, then for each style its color on dark and on light, and whether it is bold; each stands out from the
# grounds and panels at least 4.5 : 1 (WCAG AA)
GROUND = ("#14171c", "#ffffff")
COLORS = {
    "": ("#d5d9e0", "#24292f", False),
    "title": ("#ffffff", "#000000", True),
    "section": ("#56b6e9", "#0550ae", True),
    "head": ("#9aa2b0", "#59636e", False),
    "offset": ("#9aa2b0", "#59636e", False),
    "dim": ("#9aa2b0", "#59636e", False),
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
PANELS = {"panel": ("#1d2128", "#f6f8fa"), "edge": ("#39404b", "#d0d7de"), "mark": ("#2c3a55", "#ddebff")}


def variables() -> str:
    """CSS: every color as a variable (--dim, --error, --ground, …), light or dark as the reader's system says; paper
    is light."""
    dark, light = (" ".join(_each(index)) for index in (0, 1))
    return (
        f":root {{ color-scheme: light dark; {light} --mono: {FONT}; --prose: {PROSE} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"
        f"@media print {{ :root {{ color-scheme: light; {light} }} }}\n"
    )


def classes() -> str:
    """CSS: the class of each style, in those variables."""
    rules = []
    for name, (*_, bold) in COLORS.items():
        if name:
            rules.append(f".{name} {{ color: var(--{name}){'; font-weight: 600' if bold else ''} }}")
    return "\n".join(rules) + "\n"


def palette(index: int) -> dict[str, str]:
    """The color of each style: 0 on dark, 1 on light."""
    return {name: (dark, light)[index] for name, (dark, light, _) in COLORS.items()}


def _each(index: int) -> Iterator[str]:
    yield f"--ground: {GROUND[index]};"
    for name, color in palette(index).items():
        yield f"--{name or 'text'}: {color};"
    for name, pair in PANELS.items():
        yield f"--{name}: {pair[index]};"
