"""Lists the captures of a data source: files, patterns, and folders, which may be divided by folders named KEY=VALUE,
as point=a/date=2026-11-21/; the keys become columns.

The captures of one such folder are joined with each other and with no others: so what a filter on a key leaves out need
not even be listed, and what is left does not change.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple
from urllib.parse import unquote

from pyarrow import fs

from kwire.errors import FilesUnreachable, OptionError
from kwire.pipeline.paths import is_elsewhere
from kwire.pipeline.splits import expand
from kwire.pipeline.stores import Stores, within

DIVIDED = re.compile(r"([^=/]+)=(.*)")
NULL = "__HIVE_DEFAULT_PARTITION__"

Values = tuple[tuple[str, str | None], ...]  # (key, value) of the folders, the outermost first
Keeps = Callable[[str, str | None], bool]  # whether captures in a folder KEY=VALUE are wanted


def every(_: str, __: str | None) -> bool:
    """All are wanted."""
    return True


class CaptureFolder(NamedTuple):
    """The captures below folders with the same keys and values. size: bytes."""

    values: Values
    paths: list[str]
    size: int


def folders(paths: Sequence[str], stores: Stores, keeps: Keeps = every) -> list[CaptureFolder]:
    """The captures by folder; notes their sizes and times in stores. Raises OptionError, FilesUnreachable, OSError."""
    out: dict[Values, list[str]] = {}
    for path in paths:
        for values, found in _found(path, stores, keeps):
            out.setdefault(values, []).append(found)
    return [CaptureFolder(values, found, sum(map(stores.sizes.__getitem__, found))) for values, found in out.items()]


def keys(paths: Sequence[str], stores: Stores) -> list[str]:
    """The keys of the folders, of which the first on each level is looked at. Raises FilesUnreachable, OSError."""
    out: dict[str, None] = {}
    for path in paths:
        store, inner, _ = placed(path, stores)
        while store.get_file_info(inner).type == fs.FileType.Directory:
            there = store.get_file_info(fs.FileSelector(inner))
            divided = sorted(info.path for info in there if info.type == fs.FileType.Directory and _pair(info))
            if not divided:
                break
            inner = divided[0]
            out[inner.rpartition("/")[2].partition("=")[0]] = None
    return list(out)


def _found(path: str, stores: Stores, keeps: Keeps) -> Iterator[tuple[Values, str]]:
    store, inner, root = placed(path, stores)
    if store.get_file_info(inner).type == fs.FileType.Directory:
        yield from _below(store, inner, root, stores, keeps)
    elif root:
        yield from (((), found) for found in stores.listed(path))
    else:
        there = [path] if os.path.exists(path) else sorted(glob.glob(path))
        if not there:
            raise OptionError(f"{path}: no such file or folder")
        for found in expand(there):
            about = os.stat(found)
            stores.sizes[found], stores.times[found] = about.st_size, about.st_mtime_ns
            yield (), found


def _below(store: fs.FileSystem, inner: str, root: str, stores: Stores, keeps: Keeps) -> Iterator[tuple[Values, str]]:
    for info in sorted(store.get_file_info(fs.FileSelector(inner)), key=lambda info: str(info.path)):
        if info.base_name.startswith((".", "_")):
            continue
        if info.type == fs.FileType.File:
            stores.sizes[root + info.path], stores.times[root + info.path] = int(info.size), int(info.mtime_ns or 0)
            yield (), root + info.path
        elif (pair := _pair(info)) and keeps(*pair):
            yield from (((pair, *values), found) for values, found in _below(store, info.path, root, stores, keeps))


def _pair(info: fs.FileInfo) -> tuple[str, str | None] | None:
    """Key and value of a folder's name."""
    found = DIVIDED.fullmatch(info.base_name)
    return found and (found[1], None if found[2] == NULL else unquote(found[2]))


def placed(path: str, stores: Stores) -> tuple[fs.FileSystem, str, str]:
    """A path's file system, the path in it, and what stands before that. Raises FilesUnreachable."""
    store = stores.of(path)
    if store is not None:
        inner = within(path)
        return store, inner.rstrip("/"), path[: len(path) - len(inner)]
    if is_elsewhere(path):
        raise FilesUnreachable(
            f"{path} is not on this machine, and cannot be read from here: kwire pipeline run reads it, or load what "
            "kwire.pipeline.binary_files.bring(spark, [path], folder) gives"
        )
    return fs.LocalFileSystem(), path.rstrip("/") or "/", ""
