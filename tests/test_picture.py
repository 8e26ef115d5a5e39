"""The pictures of how data flows, and the order of the folders in the guide, are those of the imports."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from test_circles import ROOMS, ROOT, imports

PICTURES = (ROOT.parent / "README.md", ROOT / "guide" / "internals.md")
CHAIN = re.compile(r"^    \w+(?: ─+► \w+)+$", re.M)


def imported(room: str) -> set[str]:
    """The rooms that a room's files import from."""
    files = (ROOT / room).rglob("*.py")
    names = (name.split(".") for file in files for name in imports(file, ()))
    return {parts[1] for parts in names if parts[0] == "kwire" and len(parts) > 1}


@pytest.mark.parametrize("file", PICTURES, ids=lambda file: file.name)
def test_data_flows_to_who_imports(file: Path) -> None:
    chains = [re.findall(r"\w+", found) for found in CHAIN.findall(file.read_text(encoding="utf-8"))]
    assert [chain[0] for chain in chains] == ["bytes", "schema"]
    for chain in chains:
        rooms = [room for room in chain if room != "bytes"]
        assert set(rooms) <= set(ROOMS)
        for at, room in enumerate(rooms):
            uses = imported(room)
            assert rooms[max(at - 1, 0) : at] == [] or rooms[at - 1] in uses, (room, uses)
            assert uses & set(rooms[at + 1 :]) == set(), room


def test_the_guide_tells_the_layers_of_the_import_contract() -> None:
    contracts = tomllib.loads((ROOT.parent / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    rooms = [re.findall(r"kwire\.(\w+)", layer) for layer in layers]
    told = re.search(r"holds them to it: (.*?)\.\s", (ROOT / "guide" / "internals.md").read_text("utf-8"), re.S)
    assert told is not None
    said = [re.findall(r"`(\w+)`", layer) for layer in told[1].split(">")]
    assert said == [kept for kept in ([room for room in layer if room in ROOMS] for layer in rooms) if kept]
