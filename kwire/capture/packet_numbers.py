"""Packet references: packets of captures that follow each other are numbered through, references count within a file.

A packet reference is N, or FILE:N where there are several captures; every command prints it so, and kwire decode
--frame takes it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from pathlib import PurePath

import numpy as np

from kwire.wire.columns import Ints


class PacketFiles:
    """The files of a numbered-through sequence of packets. several: whether references name the file."""

    def __init__(self, several: bool = False) -> None:
        self.several = several
        self._befores: list[int] = []
        self._names: list[str] = []

    def begin(self, name: str, before: int) -> None:
        """Begins a file. before: number of packets in the files before."""
        if not self._names or self._befores[-1] != before or self._names[-1] != name:
            self._befores.append(before)
            self._names.append(name)

    def of(self, number: int) -> tuple[str, int]:
        """The file and the packet's number in it; "" and the number itself before any file."""
        at = bisect_right(self._befores, number - 1) - 1
        return (self._names[at], number - self._befores[at]) if at >= 0 else ("", number)

    def counted(self, file: str, number: int) -> list[int]:
        """The numbered-through numbers of a file's packet; several where files have equal names."""
        return [before + number for name, before in zip(self._names, self._befores, strict=True) if name == file]

    @property
    def names(self) -> list[str]:
        """The files' names, in order."""
        return self._names

    def split(self, numbers: Ints) -> tuple[Ints, Ints]:
        """of() for many packets: indexes into names, and numbers within the files."""
        befores = np.array(self._befores, np.int64)
        at = np.maximum(np.searchsorted(befores, numbers - 1, "right") - 1, 0)
        return at, numbers - befores[at]

    def text(self, number: int) -> str:
        """A packet's reference: "17", or "ring2.pcap:17"."""
        name, packet = self.of(number)
        return reference(name, packet, self.several)


def reference(name: str, packet: int, several: bool) -> str:
    """A packet's reference, with its file where there are several."""
    return f"{name}:{packet}" if several and name else str(packet)


def labels(paths: Iterable[object]) -> dict[str, str]:
    """Short names of paths: the last part, and as many before it as needed to be unique; "stdin" for "-"."""
    parts = {str(path): PurePath(str(path)).parts or (str(path),) for path in paths}
    out = {}
    for path, own in parts.items():
        others = [other for name, other in parts.items() if name != path]
        depth = next((n for n in range(1, len(own)) if all(other[-n:] != own[-n:] for other in others)), len(own))
        out[path] = "stdin" if path == "-" else str(PurePath(*own[-depth:]))
    return out
