"""What the playground runs on: the zip of kwire's code, and where Pyodide lies."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from kwire.errors import KwireError
from kwire.site.bundle import CORE, Pyodide, own_code, pyodide_at

PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
from kwire.cli.playground import run
asked = json.dumps(["decode", "--as", "HeartbeatResponse", "-v", "3"])
print(run(asked, b"00 00 00 00 00 1b", 80))
"""


def _pyodide(folder: Path, *more: str) -> Path:
    for name in (*CORE, *more):
        (folder / name).write_text("x")
    packages = {"numpy": {"file_name": "numpy-2.whl"}}
    (folder / "pyodide-lock.json").write_text(json.dumps({"packages": packages}))
    return folder


def test_the_zip_decodes_and_explains_alone(tmp_path: Path) -> None:
    """From a folder, as the playground unpacks it, without what is installed here."""
    with zipfile.ZipFile(io.BytesIO(own_code())) as code:
        code.extractall(tmp_path)
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, timeout=120
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "The group is rebalancing" in ran.stdout


def test_the_zip_is_the_same_each_time_and_small() -> None:
    code = own_code()
    assert code == own_code()
    assert len(code) < 3_000_000
    assert not [name for name in zipfile.ZipFile(io.BytesIO(code)).namelist() if "broker/" in name or ".pyc" in name]


def test_a_folder_with_pyodide_is_copied(tmp_path: Path) -> None:
    (tmp_path / "from").mkdir()
    pyodide = pyodide_at(str(_pyodide(tmp_path / "from", "pyodide.asm.mjs", "numpy-2.whl", "console.html")))
    assert pyodide.numpy == "numpy-2.whl"
    assert pyodide.copy_into(tmp_path / "to") > 0
    copied = {file.name for file in (tmp_path / "to/pyodide").iterdir()}
    assert copied == {*CORE, "pyodide.asm.mjs", "numpy-2.whl"}


def test_numpy_is_there_or_not(tmp_path: Path) -> None:
    assert pyodide_at(str(_pyodide(tmp_path))).numpy == ""


@pytest.mark.parametrize(
    ("place", "origin"),
    [("https://a.example/pyodide/full", "https://a.example"), ("http://localhost:8000/p/", "http://localhost:8000")],
)
def test_an_address(place: str, origin: str) -> None:
    assert pyodide_at(place).origin == origin
    assert pyodide_at(place).address.endswith("/")


def test_none() -> None:
    assert pyodide_at(None) == Pyodide()
    assert not Pyodide().there


def test_a_folder_without_pyodide_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KwireError, match=r"no Pyodide there, pyodide\.mjs is missing"):
        pyodide_at(str(tmp_path))
