"""What the playground runs on: kwire's own code as a zip, with click, and where Pyodide lies.

The zip is made of the kwire that runs, and holds the rooms that decode, explain, encode and read need.
"""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from kwire.errors import KwireError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

CODE = "kwire.zip"
ABSENT = {"broker", "proxy", "client", "pipeline", "tables", "redact", "site", "__pycache__"}  # of kwire's rooms
CORE = ("pyodide.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
SCRIPTS = ("pyodide.asm.mjs", "pyodide.asm.js")  # one of them: newer releases have the first
FOLDER = "pyodide"
EPOCH = (1980, 1, 1, 0, 0, 0)  # of all files in the zip, so that the same code gives the same bytes


class Pyodide(NamedTuple):
    """Where Pyodide lies: in a folder, which is copied; at an address; or nowhere, and there is no playground.

    numpy: the file in the folder that holds it, which captures need.
    """

    folder: Path | None = None
    address: str = ""
    numpy: str = ""

    @property
    def there(self) -> bool:
        return self.folder is not None or bool(self.address)

    @property
    def origin(self) -> str:
        """What the page's policy must allow, for an address elsewhere."""
        parts = urlsplit(self.address)
        return f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""

    def copy_into(self, folder: Path) -> int:
        """Copies the files that are needed; gives their bytes."""
        if self.folder is None:
            return 0
        target, size = folder / FOLDER, 0
        target.mkdir(parents=True, exist_ok=True)
        names = [*CORE, *(name for name in SCRIPTS if (self.folder / name).is_file()), *filter(None, [self.numpy])]
        for name in names:
            shutil.copyfile(self.folder / name, target / name)
            size += (target / name).stat().st_size
        return size


def pyodide_at(place: str | None) -> Pyodide:
    """Pyodide by the folder or the address that was given. Raises KwireError for what is neither."""
    if place is None:
        return Pyodide()
    parts = urlsplit(place)
    if parts.scheme in ("http", "https") and parts.netloc:
        return Pyodide(address=place.rstrip("/") + "/")
    folder = Path(place)
    missing = [name for name in CORE if not (folder / name).is_file()]
    if missing:
        raise KwireError(f"{place}: no Pyodide there, {missing[0]} is missing (npm's package pyodide holds it)")
    packages = json.loads((folder / "pyodide-lock.json").read_text("utf-8")).get("packages", {})
    name = str(packages.get("numpy", {}).get("file_name", ""))
    return Pyodide(folder, numpy=name if name and Path(name).name == name and (folder / name).is_file() else "")


def own_code() -> bytes:
    """The zip."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as made:
        for package in ("kwire", "click"):
            for name, file in sorted(_files(files(package), package)):
                made.writestr(zipfile.ZipInfo(name, EPOCH), file.read_bytes(), zipfile.ZIP_DEFLATED)
    return sink.getvalue()


def _files(folder: Traversable, path: str) -> Iterator[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        name = f"{path}/{entry.name}"
        if entry.is_dir():
            if entry.name not in ABSENT:
                yield from _files(entry, name)
        elif not entry.name.endswith((".pyc", ".so")):
            yield name, entry
