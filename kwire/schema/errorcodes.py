"""Kafka's error codes: numbers, names, and what to do about them; read from errors.txt when first asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from kwire.errors import SchemaError, UnknownName
from kwire.schema.shipped import folder_of

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

WORDS = ("retriable", "was", "short", "means", "cause", "cure")


class ErrorCode(NamedTuple):
    """retriable: what the official Java classes say. short fits beneath a diagram's row; the rest is prose."""

    code: int
    name: str
    retriable: bool
    was: tuple[str, ...]
    short: str
    means: str
    cause: str
    cure: str


class ErrorCodes:
    """A table: errors[27], errors["REBALANCE_IN_PROGRESS"], old names too; iterates by code."""

    def __init__(self, file: Traversable | None = None) -> None:
        self._file = file

    @cached_property
    def _by_code(self) -> dict[int, ErrorCode]:
        return {error.code: error for error in parse(self._text())}

    def _text(self) -> str:
        file = self._file or folder_of("kwire.schema") / "errors.txt"
        return file.read_text(encoding="utf-8")

    @cached_property
    def _by_name(self) -> dict[str, ErrorCode]:
        names = {error.name: error for error in self}
        for error in self:
            for old in error.was:
                names.setdefault(old, error)
        return names

    def __getitem__(self, key: int | str) -> ErrorCode:
        """Raises UnknownName, with the nearest names."""
        found = self.get(key)
        if found:
            return found
        if isinstance(key, int):
            raise UnknownName("error code", str(key))
        import difflib

        raise UnknownName("error", key, tuple(difflib.get_close_matches(_fold(key), self._by_name, 2, 0.7)))

    def get(self, key: int | str) -> ErrorCode | None:
        """The error, or None."""
        return self._by_code.get(key) if isinstance(key, int) else self._by_name.get(_fold(key))

    def __iter__(self) -> Iterator[ErrorCode]:
        return iter(self._by_code.values())

    def __contains__(self, key: object) -> bool:
        return isinstance(key, int | str) and self.get(key) is not None

    def __len__(self) -> int:
        return len(self._by_code)

    def label(self, code: int) -> str:
        """ "27 REBALANCE_IN_PROGRESS"; of an unknown code the number and that it is unknown."""
        error = self.get(code)
        return f"{code} {error.name}" if error else f"{code} (no error code that kwire knows)"


def _fold(name: str) -> str:
    return name.strip().upper().replace("-", "_").replace(" ", "_")


def parse(text: str) -> Iterator[ErrorCode]:
    """Reads errors.txt: "error 27 NAME", then indented lines of a word and its text; deeper lines go on with it."""
    head: tuple[int, str] | None = None
    words: dict[str, str] = {}
    last = ""
    for number, line in enumerate([*text.split("\n"), "error 0 END"], 1):
        if not line.strip() or line.startswith("#"):
            continue
        first, _, rest = line.strip().partition(" ")
        if line.startswith("error "):
            if head:
                yield ErrorCode(
                    *head,
                    words.get("retriable") == "yes",
                    tuple(words.get("was", "").split()),
                    *(words.get(word, "") for word in WORDS[2:]),
                )
            match = re.fullmatch(r"error (-?\d+) (\w+)", line.rstrip())
            if not match:
                raise SchemaError(f"errors.txt:{number}", f"not an error: {line.strip()}")
            head, words = (int(match[1]), match[2]), {}
        elif line.startswith("    "):
            if last not in words:
                raise SchemaError(f"errors.txt:{number}", "goes on with a line, but there is none")
            words[last] = f"{words[last]} {line.strip()}"
        elif first in WORDS:
            if head is None:
                raise SchemaError(f"errors.txt:{number}", f"{first} belongs to no error")
            words[first] = rest.strip()
            last = first
        else:
            raise SchemaError(f"errors.txt:{number}", f"no line is called {first}")


errors = ErrorCodes()
