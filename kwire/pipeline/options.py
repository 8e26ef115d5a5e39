"""What spark.read.format("kwire").option(...) may say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address

from kwire.capture.ip import MAPPED
from kwire.errors import KwireError, UnknownName
from kwire.pipeline.addresses import is_elsewhere, local
from kwire.pipeline.increments import LATENESS
from kwire.pipeline.splits import SIZE
from kwire.session.reader import Settings
from kwire.tables.columns import COLUMNS

SECOND = 1_000_000_000  # ns
UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


class OptionError(KwireError):
    """An option has a value that it cannot have."""


@dataclass(frozen=True, slots=True)
class Options:
    """paths: files and folders. split_size in bytes; ports, hosts: only these connections, as in session.reader. Of
    streams: state, the folder of what is kept between batches; max_files of a batch, 0 all; lateness, ns of the
    captures' time for which a file waits for one that belongs before it."""

    paths: tuple[str, ...]
    table: str = "messages"
    split_size: int = SIZE
    ports: frozenset[int] = frozenset()
    hosts: frozenset[tuple[int, int]] = frozenset()
    state: str = ""
    max_files: int = 0
    lateness: int = LATENESS

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Options:
        """From the options of a reader, whose names come in any case. Raises OptionError, UnknownName."""
        low = {name.lower(): value for name, value in given.items()}
        table = low.get("table", "messages")
        if table not in COLUMNS:
            raise UnknownName("table", table, tuple(COLUMNS))
        paths = json.loads(low["paths"]) if low.get("paths") else [low["path"]] if "path" in low else []
        return cls(
            tuple(_local(str(path)) for path in paths), table, size_of(low.get("splitsize", "128m")),
            frozenset(_port(text) for text in low.get("port", "").split(",") if text.strip()),
            frozenset(_host(text) for text in low.get("host", "").split(",") if text.strip()),
            _local(low.get("statelocation", "")), _count("maxFilesPerTrigger", low.get("maxfilespertrigger", "0")),
            _count("lateness", low.get("lateness", str(LATENESS // SECOND))) * SECOND,
        )  # fmt: skip

    def settings(self) -> Settings:
        """How captures are to be read."""
        return Settings(self.ports, self.hosts)


def size_of(text: str) -> int:
    """Bytes of a size as 128m, 64MiB, 500. Raises OptionError."""
    cut = text.strip().lower().removesuffix("ib").removesuffix("b") or "?"
    unit = cut[-1] if cut[-1] in UNITS else ""
    number = cut.removesuffix(unit).strip()
    if not number.isdecimal() or not int(number):
        raise OptionError(f"{text} is no size; as 128MiB, 512k, 4000")
    return int(number) * UNITS[unit]


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
        raise OptionError(f"{path} is not on this machine: kwire pipeline run reads it, or contents.from_column")
    return local(path)
