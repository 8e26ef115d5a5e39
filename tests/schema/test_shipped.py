"""Files that come with the package are the same from a folder and from a zip of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import kwire
from kwire.schema.shipped import folder_of, listed

ROOT = Path(kwire.__file__).parent

READ = """
import json, os, sys
import kwire
from kwire.broker.configs import known
from kwire.render.types import read_types
from kwire.schema.errorcodes import errors
from kwire.schema.registry import Registry, builtin
from kwire.tables.sqltext import reports
frame = bytes.fromhex("00000017001200030000000700036c696200046c696204312e3000")
two = builtin().api(3).name, builtin().response(1).name, builtin().name_of(18)
read = []
names = Registry().names()
if hasattr(os, "fork"):  # what forks reads right, both at once
    for at in range(2):
        child = os.fork()
        if not child:
            os._exit(not set(names) == {*builtin().names()})
        read.append(child)
forked = [os.waitpid(child, 0)[1] for child in read]
print(json.dumps({
    "frame": str(kwire.decode_frame(frame)), "apis": len(builtin().keys()), "names": names,
    "errors": [error.name for error in errors], "types": sorted(read_types()), "configs": sorted(known("topic")),
    "reports": reports(), "two": two, "forked": forked, "explain": str(kwire.explain("Fetch")),
    "where": kwire.__file__,
}))
"""


@pytest.fixture(scope="module")
def zipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as a zip."""
    path = tmp_path_factory.mktemp("zip") / "kwire.zip"
    with zipfile.ZipFile(path, "w") as file:
        for found in sorted(ROOT.rglob("*")):
            if found.is_file() and "__pycache__" not in found.parts:
                file.write(found, Path("kwire") / found.relative_to(ROOT))
    return path


def read_from(place: Path, code: str = READ) -> str:
    environment = os.environ | {"PYTHONPATH": str(place), "PYTHONSAFEPATH": "1"}
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=place.parent, capture_output=True, text=True, timeout=60
    )
    assert ran.stderr == ""
    return ran.stdout


def test_all_that_is_read_from_a_folder_is_read_from_a_zip(zipped: Path) -> None:
    packed, plain = json.loads(read_from(zipped)), json.loads(read_from(ROOT.parent))
    assert Path(packed.pop("where")).is_relative_to(zipped)
    assert Path(plain.pop("where")).is_relative_to(ROOT)
    assert packed == plain
    assert (packed["two"], packed["forked"]) == (["Metadata", "FetchResponse", "ApiVersions"], [0, 0])
    assert "ClientSoftwareVersion" in packed["frame"]


def test_a_capture_is_read_from_a_zip(zipped: Path) -> None:
    path = Path(__file__).parents[2] / "fixtures" / "captures" / "kafkajs.pcap"
    code = f"import sys; from kwire.cli.main import main; sys.argv[1:] = ['stats', {str(path)!r}]; main()"
    found = read_from(zipped, code)
    assert found == read_from(ROOT.parent, code)
    assert "Produce" in found


def test_a_folder_is_a_path_and_files_are_listed_by_name(tmp_path: Path) -> None:
    assert folder_of("kwire.schema") == ROOT / "schema"
    for name in ("b.txt", "a.txt", "c.md"):
        (tmp_path / name).touch()
    assert listed(tmp_path, ".txt") == {"a": tmp_path / "a.txt", "b": tmp_path / "b.txt"}
    assert listed(tmp_path / "none", ".txt") == {}
