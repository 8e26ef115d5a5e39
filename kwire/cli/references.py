"""Packet references as every command prints them: N, or FILE:N where there are several captures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

import click

if TYPE_CHECKING:
    from kwire.session.batch import ExchangeBatch
    from kwire.session.exchange import Exchange


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


class Holders:
    """of(batch) gives the exchanges of which a packet that is wanted holds bytes; missing: those not met so far."""

    def __init__(self, wanted: Sequence[PacketReference]) -> None:
        self.missing = set(wanted)
        self._wanted = frozenset(wanted)

    def of(self, batch: ExchangeBatch) -> ExchangeBatch:
        import numpy as np

        rows = np.zeros(len(batch), bool)
        for places in {id(known.places): known.places for known in batch.connections}.values():
            for one in self._wanted:
                for number in places.counted(*one):
                    for side in (batch.request, batch.response):
                        rows |= (side.start >= 0) & (side.packet <= number) & (number <= side.last_packet)
        for row in np.flatnonzero(rows).tolist():
            held = self._wanted & self._packets(batch[row])
            self.missing -= held
            rows[row] = bool(held)
        return batch if rows.all() else batch.part(rows)

    @staticmethod
    def _packets(exchange: Exchange) -> set[PacketReference]:
        """With and without the file: one capture's packets are named without it."""
        places = exchange.connection.places
        out = set()
        for message in (exchange.request, exchange.response):
            numbers = [] if message is None else [number for _, number in message.marks] or [message.packet]
            out |= {PacketReference(*places.of(number)) for number in numbers}
        return out
