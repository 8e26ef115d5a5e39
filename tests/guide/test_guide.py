"""The guide: its pages are found, and what they tell to type runs on the capture that the first page makes."""

from __future__ import annotations

import re
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kwire import guide
from kwire.errors import UnknownName

ELSEWHERE = {"sniff", "browse", "call", "walk", "broker", "proxy", "fault", "pipeline", "demo"}  # broker, Spark, root …
FOLDER = Path(guide.__file__).parent
COMMANDS = [
    pytest.param(line.strip(), id=f"{path.stem}: {line.strip()[:60]}")
    for path in (FOLDER.parents[1] / "README.md", *sorted(FOLDER.glob("*.md")))
    for line in re.findall(r"^    (kwire [^$\n]*demo\.pcapng[^\n]*)$", path.read_text("utf-8"), re.MULTILINE)
]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with demo.pcapng, as the first page has it made."""
    import subprocess
    import sys

    folder = tmp_path_factory.mktemp("demo")
    made = subprocess.run(
        [sys.executable, "-m", "kwire", "demo", "--capture", "demo.pcapng"],
        cwd=folder, capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    assert (made.returncode, (folder / "demo.pcapng").exists()) == (0, True)
    return folder


@pytest.mark.parametrize("line", COMMANDS)
def test_what_a_page_tells_to_type_runs(line: str, demo: Path, kwire: Any) -> None:
    words = shlex.split(re.split(r"\s{2,}|\s+[|<]\s|\s+#\s", line)[0])
    if words[1] in ELSEWHERE or words[1:] == ["sql", "demo.pcapng"]:
        pytest.skip("needs a broker, Spark, an interface or a person")
    within = [
        str(demo / word) if word == "demo.pcapng" or before in ("-o", "-w") else word
        for before, word in pairwise(words)
    ]
    ran = kwire(*within)
    assert ran.status in (0, 1), ran.err
    assert ran.text or ran.err or "--not-kafka" in words


def test_every_page_has_a_heading_and_a_summary() -> None:
    pages = [guide.page(name) for name in guide.names()]
    assert len(pages) > 12
    assert all(page.text.startswith("# ") and page.title and page.summary for page in pages)


def test_order_names_pages_that_there_are() -> None:
    assert set(guide.ORDER) - set(guide.names()) == set()


def test_an_unknown_page_gets_the_nearest() -> None:
    with pytest.raises(UnknownName) as raised:
        guide.page("eviction")
    assert raised.value.nearest[0] == "evictions"
