"""Files of a lake, in any file system that Arrow opens: written, listed, moved and removed.

Paths are as users write them. store: their file system (stores.py), None for local ones. Object stores know no folders:
there a file is all or nothing, and moving it is a copy that the store makes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, BinaryIO, TypeAlias
from uuid import uuid4

from pyarrow import fs

from kwire.pipeline.partitions import KEPT
from kwire.pipeline.stores import each, within
from kwire.staging import staging

Store: TypeAlias = fs.FileSystem | None
WITHOUT_FOLDERS = ("s3", "gcs")  # by Arrow's names
LOCAL = fs.LocalFileSystem()


def make_folder(path: str, store: Store = None) -> None:
    """Makes a folder and those above, if they are not there. Raises OSError."""
    found, inner = _at(path, store)
    found.create_dir(inner)


def create(path: str, store: Store = None) -> BinaryIO:
    """A new file to be written, in a folder that is made too. Raises OSError."""
    found, inner = _at(path, store)
    if not _without_folders(found):
        found.create_dir(os.path.dirname(inner))
    file: BinaryIO = found.open_output_stream(inner)
    return file


def read(path: str, store: Store = None) -> bytes | None:
    """The file's bytes; None if there is none. Raises OSError."""
    found, inner = _at(path, store)
    if found.get_file_info(inner).type != fs.FileType.File:
        return None
    with found.open_input_stream(inner) as file:
        data: bytes = file.read()
    return data


def put(path: str, data: bytes, store: Store = None) -> None:
    """Writes a file, in place of one that may be there; whoever reads it meanwhile sees the whole of either, or, in
    HDFS, none for a moment. Raises OSError."""
    found, inner = _at(path, store)
    atomic = _without_folders(found)
    with create(path if atomic else f"{path}.part", store) as file:
        file.write(data)
    if atomic:
        return
    if store is not None and found.get_file_info(inner).type == fs.FileType.File:
        found.delete_file(inner)  # HDFS moves nothing over a file
    found.move(f"{inner}.part", inner)


def move(pairs: Iterable[tuple[str, str]], store: Store = None) -> None:
    """Moves files, each to its new path. Raises OSError."""
    found, _ = _at("", store)
    moves = {_at(old, store)[1]: _at(new, store)[1] for old, new in pairs}
    if not _without_folders(found):
        for folder in {os.path.dirname(new) for new in moves.values()}:
            found.create_dir(folder)
    each(lambda old: found.move(old, moves[old]), moves)


def files_of(folder: str, store: Store = None, recursive: bool = True) -> Iterator[str]:
    """The paths of a folder's files; nothing where there is no such folder. Raises OSError."""
    found, inner = _at(folder, store)
    root = folder[: len(folder) - len(inner)]
    for info in found.get_file_info(fs.FileSelector(inner, recursive=recursive, allow_not_found=True)):
        if info.type == fs.FileType.File:
            yield root + info.path


def remove(paths: Iterable[str], store: Store = None) -> None:
    """Removes files. Raises OSError."""
    found, _ = _at("", store)
    each(found.delete_file, [_at(path, store)[1] for path in paths])


def empty(folder: str, store: Store = None) -> None:
    """Removes what is in a folder, which is made if it is not there. Raises OSError."""
    found, inner = _at(folder, store)
    found.delete_dir_contents(inner, missing_dir_ok=True)
    found.create_dir(inner)


@contextmanager
def staged(folder: str, store: Store = None) -> Iterator[str]:
    """A folder of a stream's for files that are not yet in their tables; at the end it is gone. What a killed stream
    left is removed. Raises OSError."""
    if store is None:
        with staging(folder) as path:
            yield path
        return
    place = os.path.join(folder, KEPT, "staged")
    clear = partial(store.delete_dir_contents, within(place), missing_dir_ok=True)
    clear()
    try:
        yield os.path.join(place, uuid4().hex)
    finally:
        clear()


def _at(path: str, store: Store) -> tuple[Any, str]:
    return (LOCAL, path) if store is None else (store, within(path).rstrip("/"))


def _without_folders(store: Any) -> bool:
    return getattr(store, "base_fs", store).type_name in WITHOUT_FOLDERS
