"""What the command line hands over: what is read, and what of it kwire.cli knows how to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kwire.browse.index import IndexNames
from kwire.session.select import Selection

Chooser = Callable[[str], Selection]  # a line of filters; raises KwireError with what is wrong in it
Absent = Callable[[IndexNames], str]  # what that line asks for and is not there; "" where all of it is


class BrowseSetting(NamedTuple):
    """title: what is read; paths: the captures, as other commands take them; options: of those commands, which
    connections are looked at and with which keys; live: the capture grows; follow: its end is shown; color: whether
    there is color; first: the line of filters to begin with; alert: what else there is to say now and then."""

    title: str
    paths: tuple[str, ...]
    options: tuple[str, ...]
    choose: Chooser
    absent: Absent
    first: str = ""
    utc: bool = False
    secrets: bool = False
    live: bool = False
    follow: bool = False
    color: bool = True
    alert: Callable[[], str] = str
