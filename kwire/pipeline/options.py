"""The options of spark.read.format("kwire"), and their errors."""

from __future__ import annotations

import difflib
import functools
import glob
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import ParamSpec, TypeVar

from kwire.capture.ip import MAPPED
from kwire.errors import KwireError, OptionError, UnknownName
from kwire.pipeline.columns import nearest
from kwire.pipeline.increments import LATENESS
from kwire.pipeline.paths import is_elsewhere, local
from kwire.pipeline.splits import SIZE, expand
from kwire.session.reader import Settings
from kwire.tables.columns import COLUMNS

SECOND = 1_000_000_000  # ns
UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
NAMES = ("path", "table", "splitSize", "port", "host", "stateLocation", "maxFilesPerTrigger", "lateness")

SPELLED = 0.8  # of 1: how like an option a name must be to be meant as that one

Given = ParamSpec("Given")
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class PipelineOptions:
    """paths: files, folders and patterns. split_size: bytes; ports, hosts: only these connections, as in
    session.reader. For streams: state: folder of the state between batches; max_files: per batch, 0 all; lateness: ns
    of capture time that a file waits for earlier ones."""

    paths: tuple[str, ...]
    table: str = "messages"
    split_size: int = SIZE
    ports: frozenset[int] = frozenset()
    hosts: frozenset[tuple[int, int]] = frozenset()
    state: str = ""
    max_files: int = 0
    lateness: int = LATENESS

    @classmethod
    def of(cls, given: Mapping[str, str]) -> PipelineOptions:
        """From a Spark reader's options, with names in any case. Raises OptionError, UnknownName."""
        low = {name.lower(): value for name, value in given.items()}
        for name in low:
            _spelled(name)
        table = low.get("table", "messages")
        if table not in COLUMNS:
            raise UnknownName("table", table, nearest(table, tuple(COLUMNS)))
        paths = json.loads(low["paths"]) if low.get("paths") else [low["path"]] if "path" in low else []
        if not any(paths):
            raise OptionError("no captures: load() needs a file, a folder or several of them")
        return cls(
            tuple(_local(str(path)) for path in paths), table, size_of(low.get("splitsize", "128m")),
            frozenset(_port(text) for text in low.get("port", "").split(",") if text.strip()),
            frozenset(_host(text) for text in low.get("host", "").split(",") if text.strip()),
            _local(low.get("statelocation", "")), _count("maxFilesPerTrigger", low.get("maxfilespertrigger", "0")),
            _count("lateness", low.get("lateness", str(LATENESS // SECOND))) * SECOND,
        )  # fmt: skip

    def files(self, some: bool = True) -> list[str]:
        """The existing captures, those of folders sorted by name. some: raise if there are none. Raises OptionError."""
        out: list[str] = []
        for path in self.paths:
            there = [path] if os.path.exists(path) else sorted(glob.glob(path))
            if not there and (some or not glob.has_magic(path)):
                raise OptionError(f"{path}: no such file or folder")
            out += expand(there)
        if some and not out:
            raise OptionError(f"{', '.join(self.paths)}: no captures there")
        return out

    def settings(self) -> Settings:
        """The settings to read captures with."""
        return Settings(self.ports, self.hosts)


def in_short(work: Callable[Given, Made]) -> Callable[Given, Made]:
    """Wraps a function so that its errors reach Spark as one line without a traceback."""

    @functools.wraps(work)
    def tell(*args: Given.args, **kwargs: Given.kwargs) -> Made:
        try:
            return work(*args, **kwargs)
        except KwireError as error:
            raise error.with_traceback(None) from None
        except OSError as error:
            raise OptionError(f"{error.filename}: {error.strerror}" if error.filename else str(error)) from None

    return tell


def size_of(text: str) -> int:
    """Bytes of a size as 128m, 64MiB, 500. Raises OptionError."""
    cut = text.strip().lower().removesuffix("ib").removesuffix("b") or "?"
    unit = cut[-1] if cut[-1] in UNITS else ""
    number = cut.removesuffix(unit).strip()
    if not number.isdecimal() or not int(number):
        raise OptionError(f"{text} is no size; as 128MiB, 512k, 4000")
    return int(number) * UNITS[unit]


def _spelled(name: str) -> None:
    """Raises UnknownName for a misspelled option; quite different names may be meant for others."""
    known = {option.lower(): option for option in NAMES}
    near = difflib.get_close_matches(name, known, 1, SPELLED)
    if name not in known and name != "paths" and near:
        raise UnknownName("option", name, (known[near[0]],))


def _count(name: str, text: str) -> int:
    if not text.strip().isdecimal():
        raise OptionError(f"{name}: {text} is no number")
    return int(text)


def _port(text: str) -> int:
    if not text.strip().isdecimal() or not 0 < int(text) < 1 << 16:
        raise OptionError(f"{text} is no port")
    return int(text)


def _host(text: str) -> tuple[int, int]:
    try:
        address = ip_address(text.strip())
    except ValueError:
        raise OptionError(f"{text} is no address") from None
    number = int(address) | (MAPPED if address.version == 4 else 0)
    return number >> 64, number & (1 << 64) - 1


def _local(path: str) -> str:
    if is_elsewhere(path):
        raise OptionError(
            f"{path} is not on this machine: kwire pipeline run reads it, or load what "
            "kwire.pipeline.binary_files.bring(spark, [path], folder) gives"
        )
    return local(path)
