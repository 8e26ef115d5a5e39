"""Where packets are: captures that follow each other are counted through, people count within a file.

A packet reference is N, or FILE:N where there are several captures; every command prints it so, and kwire decode
--frame takes it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from pathlib import PurePath

import numpy as np

from kwire.wire.columns import Ints


class Places:
    """begin(name, before) says that the packets of a file follow; the rest takes their numbers counted through."""

    def __init__(self, several: bool = False) -> None:
        self.several = several
        self._befores: list[int] = []
        self._names: list[str] = []

    def begin(self, name: str, before: int) -> None:
        """The packets behind so many are those of a file."""
        if not self._names or self._befores[-1] != before or self._names[-1] != name:
            self._befores.append(before)
            self._names.append(name)

    def of(self, number: int) -> tuple[str, int]:
        """The file and the packet's number in it; no name where none was told."""
        at = bisect_right(self._befores, number - 1) - 1
        return (self._names[at], number - self._befores[at]) if at >= 0 else ("", number)

    def counted(self, file: str, number: int) -> list[int]:
        """The number counted through of a file's packet; several where files have one name."""
        return [before + number for name, before in zip(self._names, self._befores, strict=True) if name == file]

    @property
    def names(self) -> list[str]:
        """Of the files, in their order."""
        return self._names

    def split(self, numbers: Ints) -> tuple[Ints, Ints]:
        """As of(), of many packets: the places of their files in names, and their numbers there."""
        befores = np.array(self._befores, np.int64)
        at = np.maximum(np.searchsorted(befores, numbers - 1, "right") - 1, 0)
        return at, numbers - befores[at]

    def text(self, number: int) -> str:
        """As "17", or "ring2.pcap:17"."""
        name, packet = self.of(number)
        return reference(name, packet, self.several)


def reference(name: str, packet: int, several: bool) -> str:
    """As "17"; with its file where there are several."""
    return f"{name}:{packet}" if several and name else str(packet)


def labels(paths: Iterable[object]) -> dict[str, str]:
    """What each path goes by: its last part, and as many before it as tell it from the others; stdin as that."""
    parts = {str(path): PurePath(str(path)).parts or (str(path),) for path in paths}
    out = {}
    for path, own in parts.items():
        others = [other for name, other in parts.items() if name != path]
        depth = next((n for n in range(1, len(own)) if all(other[-n:] != own[-n:] for other in others)), len(own))
        out[path] = "stdin" if path == "-" else str(PurePath(*own[-depth:]))
    return out
