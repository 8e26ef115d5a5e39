"""Quantities in options: durations, sizes, times."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from fractions import Fraction
from typing import NamedTuple

import click

UNITS = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "m": 60_000_000_000}
SECOND = 1_000_000_000
DAY = 86_400 * SECOND
TIMES = "as 12.5 or +5s (from the start), 14:03:22.5, or 2026-11-21T14:03:22.5 (UTC)"
CLOCK = re.compile(
    r"(?:(\d{4}-\d\d-\d\d)(?:[T ]|$))?(?:(\d\d?):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(Z|[+-]\d\d(?::?\d\d)?)?)?"
)
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


class Instant(NamedTuple):
    """A moment as it was given: ns from base, and the ns that its last digit stands for. base is "start" of the
    capture, "day" (midnight, UTC, of a day that the capture tells) or "epoch"."""

    base: str
    ns: int
    digit: int

    def of(self, first: Callable[[], int], last: Callable[[], int]) -> int:
        """ns since the epoch. first and last: the capture's first and last time, asked only when they are needed."""
        if self.base == "epoch":
            return self.ns
        if self.base == "start":
            return first() + self.ns
        begun = first()
        moment = begun - begun % DAY + self.ns
        return moment + DAY if moment + self.digit <= begun and moment + DAY <= last() else moment


class Moment(click.ParamType[Instant]):
    """What kwire shows as a time: seconds since the capture's start (12.5), a time of day (22:46:53.12), one with its
    date (2026-11-21T14:03:22.5), or ns since the epoch, as JSON has them. UTC unless a zone is given."""

    name = "time"

    def convert(self, value: str | Instant, param: click.Parameter | None, ctx: click.Context | None) -> Instant:
        if isinstance(value, Instant):
            return value
        text = value.strip()
        passed = re.fullmatch(r"\+?(\d{1,12}(?:\.(\d{1,9}))?)\s*(ns|us|µs|ms|s|m)?", text)
        if passed is not None:  # 15.5 is 15.5; of 15.512 and longer ones kwire has cut the rest away
            unit, digits = UNITS[passed[3] or "s"], len(passed[2] or "")
            return Instant("start", round(Fraction(passed[1]) * unit), max(unit // 10**digits, 1) if digits > 2 else 1)
        if re.fullmatch(r"\d{16,19}", text):
            return Instant("epoch", int(text), 1)
        given = CLOCK.fullmatch(text)
        if given is None or text == "":
            self.fail(f"{value} is no time; {TIMES}", param, ctx)
        date, hour, minute, second, fraction, zone = given.groups(default="")
        clock = f"{hour or '0':0>2}:{minute or '00'}:{second or '00'}{zone or '+00:00'}"
        try:
            ns = int(datetime.fromisoformat(f"{date or '1970-01-01'}T{clock}").timestamp()) * SECOND
        except ValueError:
            self.fail(f"{value} is no time; {TIMES}", param, ctx)
        ns += int(fraction.ljust(9, "0")) if fraction else 0
        digit = SECOND // 10 ** len(fraction) if second else 60 * SECOND if hour else DAY
        return Instant("epoch", ns, digit) if date else Instant("day", ns % DAY, digit)
