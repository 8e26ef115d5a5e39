"""Quantities in options: durations, sizes, times."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import click

UNITS = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "m": 60_000_000_000}
SIZES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


class Duration(click.ParamType[int]):
    """100ms, 1.5s, 250us: nanoseconds. A bare number is seconds."""

    name = "duration"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        found = re.fullmatch(r"(\d{1,12}(?:\.\d+)?)\s*(ns|us|µs|ms|s|m)?", str(value).strip())
        if found is None:
            self.fail(f"{value} is no duration; as 100ms, 1.5s", param, ctx)
        return round(float(found[1]) * UNITS[found[2] or "s"])


class Size(click.ParamType[int]):
    """64m, 512k: bytes."""

    name = "size"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        found = re.fullmatch(r"(\d+)\s*([kmg]?)i?b?", str(value).strip(), re.IGNORECASE)
        if found is None:
            self.fail(f"{value} is no size; as 512k, 64m", param, ctx)
        return int(found[1]) * SIZES[found[2].lower()]


class Moment(click.ParamType[tuple[bool, int]]):
    """Seconds since the capture's start (12.5), or a time, UTC (2026-11-21T14:03:22.5): (absolute, ns)."""

    name = "time"

    def convert(
        self, value: str | tuple[bool, int], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[bool, int]:
        if isinstance(value, tuple):
            return value
        if re.fullmatch(r"\+?\d{1,12}(\.\d+)?s?", value):
            return False, round(float(value.strip("+s")) * 1e9)
        try:
            parsed = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value} is no time; as 12.5 (seconds from the start) or 2026-11-21T14:03:22.5", param, ctx)
        moment = parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
        whole = int(moment.replace(microsecond=0).timestamp())
        return True, whole * 1_000_000_000 + moment.microsecond * 1000
