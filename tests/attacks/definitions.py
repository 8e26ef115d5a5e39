"""Definitions for --schema and schema import that mean harm: a jar that is a bomb, two milliards of versions, comments
and strings that nothing ends, structs that hold themselves."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import kwire

NAME = "common/message/HeartbeatRequest.json"
FIELDS = [{"name": "GroupId", "type": "string", "versions": "0+"}]
BASE: dict[str, Any] = {"apiKey": 12, "type": "request", "name": "HeartbeatRequest", "validVersions": "0-4"}


def _decode(folder: Path, schema: Path) -> list[str]:
    (folder / "frame.bin").write_bytes(kwire.encode("HeartbeatRequest", 0, {}))
    return ["decode", "--schema", str(schema), str(folder / "frame.bin")]


def bomb(folder: Path, scale: float) -> list[str]:
    """A jar of 2 MB with 2 GB of blanks in it."""
    jar = folder / "kafka-clients-4.4.0.jar"
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as file:
        for number in range(20):
            file.writestr(NAME.replace("Heart", f"Heart{number}"), " " * int(100_000_000 * scale))
    return _decode(folder, jar)


def definition(text: str, folder: Path, scale: float) -> list[str]:
    """One file: a definition, or a text that is as long as the scale says."""
    (folder / "schema").mkdir()
    size = 1 if text.startswith("{") else int(40_000 * scale) + 1
    (folder / "schema" / "HeartbeatRequest.json").write_text(text * size)
    return _decode(folder, folder / "schema")


HOLDS_ITSELF = [{"name": "A", "versions": "0+", "fields": [{"name": "b", "type": "[]A", "versions": "0+"}]}]
TEXTS = {
    "versions 0-2000000000": json.dumps(BASE | {"validVersions": "0-2000000000", "fields": FIELDS}),
    "a struct that holds itself": json.dumps(
        BASE | {"fields": [{"name": "a", "type": "[]A", "versions": "0+"}], "commonStructs": HOLDS_ITSELF}
    ),
    "unclosed comments": "/* ",
    "unclosed strings": '"\\',
    "commas": ", ",
    "nested arrays": "[",
}
ATTACKS: dict[str, Callable[[Path, float], list[str]]] = {
    "a jar that is a bomb": bomb,
    **{name: partial(definition, text) for name, text in TEXTS.items()},
}
