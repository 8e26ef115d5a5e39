"""The options of spark.read.format("kwire"), and their errors."""

from __future__ import annotations

import difflib
import functools
import glob
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import ParamSpec, TypeVar

from kwire.capture.ip import MAPPED
from kwire.errors import KwireError, OptionError, UnknownName
from kwire.pipeline.capture_folders import CaptureFolder, Keeps, every, folders, keys
from kwire.pipeline.columns import nearest
from kwire.pipeline.increments import LATENESS
from kwire.pipeline.paths import is_elsewhere, local
from kwire.pipeline.splits import SIZE
from kwire.pipeline.stores import Stores
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
    of capture time that a file waits for earlier ones. hadoop: settings of file systems, as fs.s3a.endpoint."""

    paths: tuple[str, ...]
    table: str = "messages"
    split_size: int = SIZE
    ports: frozenset[int] = frozenset()
    hosts: frozenset[tuple[int, int]] = frozenset()
    state: str = ""
    max_files: int = 0
    lateness: int = LATENESS
    hadoop: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, given: Mapping[str, str], hadoop: Mapping[str, str] | None = None) -> PipelineOptions:
        """From a Spark reader's options, with names in any case. hadoop: settings of the session. Raises OptionError,
        UnknownName."""
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
            tuple(local(str(path)) for path in paths), table, size_of(low.get("splitsize", "128m")),
            frozenset(_port(text) for text in low.get("port", "").split(",") if text.strip()),
            frozenset(_host(text) for text in low.get("host", "").split(",") if text.strip()),
            local(low.get("statelocation", "")), _count("maxFilesPerTrigger", low.get("maxfilespertrigger", "0")),
            _count("lateness", low.get("lateness", str(LATENESS // SECOND))) * SECOND,
            dict(hadoop or {}) | {name: value for name, value in low.items() if name.startswith("fs.")},
        )  # fmt: skip

    def stores(self) -> Stores:
        """The file systems of the captures."""
        return Stores(self.hadoop.get)

    def divided_by(self) -> list[str]:
        """The keys of folders KEY=VALUE, which become columns; a stream's do not. Raises FilesUnreachable, OSError."""
        taken = {name for name, _, _ in COLUMNS[self.table]}
        return [] if self.state else [key for key in keys(self.paths, self.stores()) if key.lower() not in taken]

    def folders(self, stores: Stores, keeps: Keeps = every) -> list[CaptureFolder]:
        """The captures by folder. Raises OptionError, FilesUnreachable, OSError."""
        found = folders(self.paths, stores, keeps)
        if not found and keeps is every:
            raise OptionError(f"{', '.join(self.paths)}: no captures there")
        return found

    def arrived(self, stores: Stores) -> list[str]:
        """The captures that are there by now, those of patterns too. Raises OptionError, FilesUnreachable, OSError."""
        there = [path for path in self.paths if not glob.has_magic(path) or glob.glob(path) or is_elsewhere(path)]
        return [path for folder in folders(there, stores) for path in folder.paths]

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
