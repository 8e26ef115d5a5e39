"""No file imports in a circle with others, of its room or of another; imports that only types need count too."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1] / "kwire"
ROOMS = sorted(path.parent.name for path in ROOT.glob("*/__init__.py"))


def imports(path: Path, files: Collection[str]) -> Iterator[str]:
    """Those of the files that a file imports, wherever in it, as "kwire.session.batch"."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{name.name}" for name in node.names]
            yield from (name if name in files else node.module for name in names)


def graph(room: str) -> dict[str, set[str]]:
    """Who imports whom of a room's files, of all for ""; a folder's __init__ is the folder."""
    files = {
        ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__"): path
        for path in (ROOT / room).rglob("*.py")
    }
    return {
        name: {used for used in imports(path, files.keys()) if used in files and used != name}
        for name, path in files.items()
    }


def circles(uses: dict[str, set[str]]) -> list[list[str]]:
    """Files that can reach each other (Kosaraju's algorithm)."""

    def visit(name: str, edges: dict[str, set[str]], seen: set[str]) -> list[str]:
        order, stack = [], [(name, iter(sorted(edges[name])))]
        seen.add(name)
        while stack:
            other = next((one for one in stack[-1][1] if one not in seen), None)
            if other is None:
                order.append(stack.pop()[0])
            else:
                seen.add(other)
                stack.append((other, iter(sorted(edges[other]))))
        return order

    seen: set[str] = set()
    order = [name for first in uses if first not in seen for name in visit(first, uses, seen)]
    used: dict[str, set[str]] = {name: {other for other in uses if name in uses[other]} for name in uses}
    seen = set()
    found = [visit(name, used, seen) for name in reversed(order) if name not in seen]
    return [sorted(one) for one in found if len(one) > 1]


def test_no_circles() -> None:
    assert circles(graph("")) == []
