"""Fresh messages of the official Kafka classes, other ones at every run: we read what they write, and write the same.

Needs Java, KWIRE_ORACLE (the folder of vectors.sh) and ORACLE_JARS (the folder of the official jars); skipped without.
"""

# mypy: disable-error-code="union-attr"

from __future__ import annotations

import base64
import gzip
import json
import os
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kwire.codec.library import builtin_library
from kwire.errors import KwireError
from kwire.render.jsonform import from_json

Row = dict[str, Any]


def missing() -> str | None:
    """What the oracle lacks here; None when it can be asked."""
    for name, needed in (("KWIRE_ORACLE", "vectors.sh"), ("ORACLE_JARS", "4.4.0/jars")):
        folder = os.environ.get(name)
        if not folder:
            return f"the official classes are not asked: {name} is not set (the folder that holds {needed})"
        if not (Path(folder) / needed).exists():
            return f"the official classes are not asked: {name} is {folder}, and {needed} is not there"
    return None if shutil.which("java") else "the official classes are not asked: there is no java"


pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.skipif(missing() is not None, reason=missing() or "")]


@pytest.fixture(scope="module")
def seed() -> str:
    return str(random.SystemRandom().randrange(1 << 31))


@pytest.fixture(scope="module")
def folder(seed: str, tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Path:
    """The official vectors of the seed, which is printed past pytest's capturing."""
    with pytestconfig.pluginmanager.get_plugin("capturemanager").global_and_fixture_disabled():
        print(f"\nvectors.sh {seed} 1: about a minute")
    made = tmp_path_factory.mktemp("oracle")
    script = Path(os.environ["KWIRE_ORACLE"]) / "vectors.sh"
    done = subprocess.run([script, seed, "1", made], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"seed {seed}: {done.stderr}"
    assert "missing: none - failed lines: 0" in done.stdout, f"seed {seed}: {done.stdout}"
    return made


def rows(path: Path) -> list[Row]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).decode().split("\n") if line]


def official(value: Any) -> Any:
    """Our value as the official JsonConverter gives it; what it does not show is left out."""
    if isinstance(value, dict):
        return {name[0].lower() + name[1:]: official(inner) for name, inner in value.items() if name != "_tagged"}
    if isinstance(value, list):
        return [official(inner) for inner in value]
    if isinstance(value, UUID):
        return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def capitals(value: Any) -> Any:
    """The official JSON under our names."""
    if isinstance(value, dict):
        return {name[0].upper() + name[1:]: capitals(inner) for name, inner in value.items()}
    return [capitals(inner) for inner in value] if isinstance(value, list) else value


def complaint(row: Row) -> str | None:
    """What differs between the official reading of a message and ours, in either direction."""
    codec = builtin_library().codec(row["name"], row["version"])
    data = bytes.fromhex(row["hex"])
    try:
        message = codec.decode(data)
        if json.dumps(official(message), sort_keys=True) != json.dumps(row["json"], sort_keys=True):
            return "decoded otherwise"
        if codec.encode(message) != data:
            return "what was decoded is encoded otherwise"
        given = from_json(codec.plan, json.dumps(capitals(row["json"])))
        if not row.get("unknownTags") and codec.encode(given) != data:
            return "the official JSON is encoded otherwise"
    except KwireError as error:
        return str(error)
    return None


@pytest.mark.parametrize(("name", "count"), [("requests", 368), ("responses", 368), ("data", 127)])
def test_fresh_official_messages_are_read_and_written_byte_for_byte(
    folder: Path, seed: str, name: str, count: int
) -> None:
    found = rows(folder / f"{name}.jsonl.gz")
    wrong = {f"{row['name']} v{row['version']}": reason for row in found if (reason := complaint(row))}
    assert wrong == {}, f"seed {seed}"
    assert len(found) == count
