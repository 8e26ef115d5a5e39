"""Files that come with the package: beside the modules, or in the zip from which Python imports them.

A folder is a plain path, which costs no more than a look whether it is there. What lies in a zip is copied into memory
once: processes that fork would share an open zip's place in it, and read each other's bytes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


def folder_of(package: str) -> Traversable:
    """The folder of a package that is imported."""
    folder = Path(str(sys.modules[package].__file__)).parent
    return folder if folder.is_dir() else _copied(package)


def listed(folder: Traversable, suffix: str) -> dict[str, Traversable]:
    """The files of a folder that end so, by their names without the ending, sorted; none where it is no folder."""
    if not folder.is_dir():
        return {}
    found = {path.name.removesuffix(suffix): path for path in folder.iterdir() if path.name.endswith(suffix)}
    return dict(sorted(found.items()))


@cache
def _copied(package: str) -> Traversable:
    from importlib.resources import files
    from io import BytesIO
    from zipfile import Path as ZipPath
    from zipfile import ZipFile

    sink = BytesIO()
    with ZipFile(sink, "w") as copy:
        for name, path in _all(files(package)):
            copy.writestr(name, path.read_bytes())
    return ZipPath(ZipFile(sink))


def _all(folder: Traversable, before: str = "") -> Iterator[tuple[str, Traversable]]:
    for path in folder.iterdir():
        name = before + path.name
        if path.is_dir():
            yield from _all(path, f"{name}/")
        elif not name.endswith((".py", ".pyc")):
            yield name, path
