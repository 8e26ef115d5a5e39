"""A stream's state as bytes: a pickle behind a line that says which kwire wrote it, and which fields its classes had.

A state with other fields would load, and break in the middle of a batch; so fields are compared first. Where they are
the same, another version goes on with it.
"""

from __future__ import annotations

import io
import json
import pickle
from enum import EnumType
from importlib import import_module
from types import FunctionType
from typing import Any, BinaryIO

from pyarrow import fs

import kwire
from kwire.errors import OutputError

FORM = 1  # to be raised when the same fields come to mean something else
FIRST = b"kwire stream state "


def saved(state: object) -> bytes:
    """The state as bytes, for loaded. File systems in it become None."""
    file = io.BytesIO()
    pickler = _Pickler(file)
    pickler.dump(state)
    classes = {name: _fields(name) for name in sorted(pickler.classes)}
    said = {"form": FORM, "kwire": kwire.__version__, "classes": classes}
    return FIRST + json.dumps(said).encode() + b"\n" + file.getvalue()


def loaded(data: bytes, where: str) -> Any:
    """The state from saved. where: what it was read from. A pickle: load only what kwire itself wrote. Raises
    OutputError if another version's does not fit."""
    line, _, rest = data.partition(b"\n")
    if not line.startswith(FIRST):
        raise _other(where, "an older version" if data[:1] == b"\x80" else "something else")
    said = json.loads(line.removeprefix(FIRST))
    if said["form"] != FORM or any(_fields(name) != fields for name, fields in said["classes"].items()):
        raise _other(where, f"version {said['kwire']}")
    return _Unpickler(io.BytesIO(rest)).load()


class _Pickler(pickle.Pickler):
    """Leaves out the file systems that captures are read from, which hold credentials. classes: those of kwire's that
    it met, and functions that make their objects, as module:name."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        self.classes: set[str] = set()

    def persistent_id(self, found: object) -> str | None:
        """Called with each object, classes and functions among them."""
        if isinstance(found, (type, FunctionType)) and found.__module__.partition(".")[0] == "kwire":
            self.classes.add(f"{found.__module__}:{found.__qualname__}")
        return "store" if isinstance(found, fs.FileSystem) else None


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, _: str) -> None:
        return None


def _fields(name: str) -> list[str] | None:
    """The names of what an object of the class holds, or of what the function that makes one takes; None if there is
    neither."""
    module, _, inner = name.partition(":")
    try:
        known = getattr(import_module(module), inner)
    except (ImportError, AttributeError):
        return None
    if isinstance(known, EnumType):
        return list(known.__members__)
    if isinstance(known, FunctionType):
        return list(known.__code__.co_varnames[: known.__code__.co_argcount])
    fields = getattr(known, "_fields", None) or getattr(known, "__slots__", None)
    return sorted(fields or known.__init__.__code__.co_names)


def _other(where: str, whose: str) -> OutputError:
    return OutputError(
        where, f"this stream's state is of {whose} of kwire, and this is {kwire.__version__}: go on with that one, or "
        "begin anew in another folder"
    )  # fmt: skip
