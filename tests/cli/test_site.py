"""kwire site: where it writes, and what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


@pytest.mark.slow
def test_a_site_is_written_and_written_again(kwire: Any, tmp_path: Path) -> None:
    ran = kwire("site", str(tmp_path / "out"))
    assert (ran.status, ran.err.startswith("kwire: no playground: --pyodide")) == (0, True)
    assert " pages, " in ran.text
    assert (tmp_path / "out/fetch/index.html").is_file()
    assert kwire("site", str(tmp_path / "out")).status == 0


def test_other_folders_are_left_alone(kwire: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    ran = kwire("site", str(tmp_path))
    assert (ran.status, ran.err) == (
        2,
        f"kwire: {tmp_path}: holds something else than a site; --force writes into it\n",
    )
    assert kwire("site", str(tmp_path / "mine.txt")).status == 2


def test_what_is_no_pyodide_is_refused(kwire: Any, tmp_path: Path) -> None:
    ran = kwire("site", str(tmp_path / "out"), "--pyodide", str(tmp_path))
    assert (ran.status, "no Pyodide there" in ran.err) == (2, True)
    assert not (tmp_path / "out").exists()
