"""Chosen columns of the message record, a line a message: for awk, cut and spreadsheets."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from kwire.wire.visible import cell, clean

if TYPE_CHECKING:
    from kwire.render.bodies import BodyRenderer
    from kwire.session.exchange import Exchange

FORMS = ("tsv", "csv")
ABOUT = ("topics", "group", "transactional_id")
DEFAULT = "time,connection,kind,client_id,api,api_version,correlation_id,size,latency_ns,error,quality"


class ColumnsParam(click.ParamType[tuple[str, ...]]):
    """Names of columns of the message record, with commas between them."""

    name = "fields"

    def convert(
        self, value: str | tuple[str, ...], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        from difflib import get_close_matches

        from kwire.tables.columns import COLUMNS

        if isinstance(value, tuple):
            return value
        known = [*(name for name, _, _ in COLUMNS["messages"]), *ABOUT, "body"]
        names = tuple(name.strip() for name in value.split(","))
        for name in names:
            if name not in known:
                near = get_close_matches(name, known, 2)
                hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}"
                self.fail(f"no field {name}; {hint}", param, ctx)
        return names


def printer(names: tuple[str, ...], form: str, bodies: BodyRenderer) -> Callable[[Exchange], None]:
    """What writes an exchange's messages to stdout. tsv has no head, as cut and awk like it; csv has one."""
    from kwire.session.record import about_row, records

    about = frozenset(ABOUT)

    def texts(exchange: Exchange) -> list[list[str]]:
        rows = []
        for message, row in records(exchange):
            if not about.isdisjoint(names):
                row |= about_row(exchange.about)
            if "body" in names:
                row["body"] = bodies.json(message)
            rows.append([_text(row[name] if name in row else row[name.removesuffix("_ns")]) for name in names])
        return rows

    if form == "tsv":

        def tabs(exchange: Exchange) -> None:
            for row in texts(exchange):
                sys.stdout.write("\t".join(map(clean, row)) + "\n")

        return tabs
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(names)

    def commas(exchange: Exchange) -> None:
        writer.writerows([*map(_cell, row)] for row in texts(exchange))

    return commas


def _text(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(value)
    return "" if value is None else str(value)


def _cell(text: str) -> str:
    """A number stays one, be it negative."""
    return text if text.removeprefix("-").isdecimal() else cell(text)
