"""The frame of pages in a browser: fits every window, reads well in light and dark, asks for nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

WIDTHS = (1200, 390)
STOPPED = "fixtures/captures/evict-stopped.pcap.gz"
PAGES = [
    pytest.param(["decode", STOPPED, "--frame", "465", "--format", "html"], id="decode"),
    pytest.param(["stats", STOPPED, "--format", "html"], id="stats"),
    pytest.param(["trace", STOPPED, "--format", "html"], id="trace"),
    pytest.param(["explain", "FetchResponse", "--format", "html"], id="explain"),
    pytest.param(["groups", STOPPED, "--format", "html"], id="groups"),
    pytest.param(["doctor", STOPPED, "--format", "html"], id="doctor"),
]


@pytest.mark.parametrize("arguments", PAGES)
def test_a_page_fits_reads_well_and_loads_nothing(
    arguments: list[str], tmp_path: Path, kwire: Callable[..., Any], visit: Callable[..., Any]
) -> None:
    file = tmp_path / "page.html"
    file.write_bytes(kwire(*arguments).out)
    for width in WIDTHS:
        seen = visit(file, width=width, dark=width < 500)
        assert seen.overflow() <= 0
        assert seen.violations() == []
        assert seen.complaints == []
        assert seen.requests == []
