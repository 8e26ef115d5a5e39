"""The commands that a report leads to, as a shell takes them: what came from the wire is quoted, and what cannot be
typed stands as a ?, which matches it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

Option = tuple[str, str | int]
FEW = 3  # captures that every command names; more stand behind a name of the shell
ARRAY = '"${captures[@]}"'
LONGEST = 150  # characters of a name; of a longer one its beginning and *


@dataclass(frozen=True, slots=True)
class Commands:
    """words: the captures, as arguments; bounds: the options with which they were read, which every command repeats."""

    words: Sequence[str]
    bounds: Sequence[str] = ()

    def __call__(self, name: str, *options: Option) -> str:
        """As "kwire read x.pcap --topic orders"."""
        captures = map(quoted, self.words) if len(self.words) <= FEW else [ARRAY]
        return " ".join(["kwire", name, *captures, *map(quoted, self.bounds), *map(option, options)])

    @property
    def definition(self) -> str:
        """What a shell has to be told first; empty when that is nothing."""
        return f"captures=({' '.join(map(shlex.quote, self.words))})" if len(self.words) > FEW else ""


def option(given: Option) -> str:
    """An option with its value; of an empty value the option alone."""
    name, value = given
    text = typed(str(value))
    if text.startswith("-"):
        return f"{name}={quoted(text)}"
    return f"{name} {quoted(text)}" if text else name


def typed(text: str) -> str:
    """A name as a pattern of characters that anybody can type."""
    some = text if len(text) <= LONGEST else text[:LONGEST] + "*"
    return "".join(char if char.isprintable() else "?" for char in some)


def quoted(text: str) -> str:
    """A word for a shell."""
    return shlex.quote(typed(text))
