"""Packet references as every command prints them: N, or FILE:N where there are several captures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import NamedTuple

import click


class PacketReference(NamedTuple):
    """A packet by its number in a file, which is Wireshark's frame number. file: empty where none is named."""

    file: str
    number: int

    def __str__(self) -> str:
        return f"{self.file}:{self.number}" if self.file else str(self.number)


class Packet(click.ParamType[PacketReference]):
    """N or FILE:N."""

    name = "packet"

    def convert(
        self, value: str | PacketReference, param: click.Parameter | None, ctx: click.Context | None
    ) -> PacketReference:
        if isinstance(value, PacketReference):
            return value
        file, _, number = value.strip().rpartition(":")
        if not number.isascii() or not number.isdecimal() or len(number) > 18:
            self.fail(f"{value} is no packet; a packet is N, or FILE:N", param, ctx)
        if int(number) < 1:
            self.fail(f"{number} is not in the range x>=1.", param, ctx)
        return PacketReference(file, int(number))


def captures_of(paths: Sequence[str], wanted: Sequence[PacketReference]) -> list[str]:
    """The captures to read: those that are named, else those that the references name, else stdin."""
    return list(paths) or list(dict.fromkeys(one.file for one in wanted if one.file)) or ["-"]


def settled(wanted: Sequence[PacketReference], names: dict[str, str]) -> list[PacketReference]:
    """The references with the names that captures go by. names: by path. Raises click.UsageError for a capture that is
    not among them, and where a reference could mean several."""
    out = []
    for one in wanted:
        if not one.file and len(names) > 1:
            could = " or ".join(f"{name}:{one.number}" for name in list(names.values())[:3])
            more = " or …" if len(names) > 3 else ""
            raise click.UsageError(f"--frame {one.number}: of several captures it is FILE:N, as {could}{more}")
        found = [name for path, name in names.items() if not one.file or _means(one.file, path, name)]
        if len(found) != 1:
            there = ", ".join(list(names.values())[:6]) + (", …" if len(names) > 6 else "")
            which = "none of the captures is" if not found else "several captures are"
            raise click.UsageError(f"--frame {one}: {which} {one.file} ({there})")
        out.append(PacketReference(found[0], one.number))
    return out


def _means(file: str, path: str, name: str) -> bool:
    """Whether a reference's file is the capture: by its name, its path, or the end of that."""
    parts = PurePath(file).parts
    return file in (name, path) or (bool(parts) and PurePath(path).parts[-len(parts) :] == parts)
