"""Freed pieces of memory go back to the system, though others lie between them."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import pytest

from kwire.session.heap import give_back


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="told by Linux")
def test_what_is_freed_between_pieces_that_stay_is_given_back() -> None:
    pieces = [bytes([1]) * 7_000 for _ in range(8_000)]
    before = resident()
    stay = pieces[::100]
    del pieces
    give_back()
    assert before - resident() > 8_000 * 7_000 // 2
    assert len(stay) == 80
