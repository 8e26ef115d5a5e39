"""The pages that kwire writes, in a real browser: the system's Chromium, headless, driven by Playwright. Without one
the tests are skipped, and say so.

Playwright's loop runs in the test's thread while a browser is open, so the browser is closed at the end of each file.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE = 60_000  # ms for whatever should come: machines may be slow


@dataclass
class Visit:
    """A page that is open. requests: what it asked for beyond itself; complaints: errors and warnings of its console,
    among them what its policy forbade."""

    page: Any
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def overflow(self) -> int:
        """By how many pixels the page is wider than its window."""
        root = "document.documentElement"
        found: int = self.page.evaluate(f"() => {root}.scrollWidth - {root}.clientWidth")
        return found

    def violations(self, *rules: str) -> list[str]:
        """What axe-core finds wrong: contrast, labels, structure. rules: only these."""
        from axe_playwright_python.sync_playwright import Axe

        options = {"runOnly": {"type": "rule", "values": list(rules)}} if rules else None
        found = Axe().run(self.page, options=options).response["violations"]
        return [
            f"{one['id']}: {node['target']} {node['failureSummary']}"[:600]
            for one in found
            for node in one["nodes"][:3]
        ]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, or a skipped test."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("no Chromium on this machine: pages are not looked at in a browser")
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="no playwright: pages are not looked at in a browser"
    )
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield opened
        opened.close()


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Visit]]:
    """visit(path or address, width=1200, dark=False, scripts=True): opens a page and notes what it asks for and
    complains of."""
    contexts = []

    def open_page(where: Path | str, width: int = 1200, dark: bool = False, scripts: bool = True) -> Visit:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light",
            java_script_enabled=scripts, offline=isinstance(where, Path),
        )  # fmt: skip
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        address = where.resolve().as_uri() if isinstance(where, Path) else where
        made = Visit(context.new_page())
        own = address.partition("#")[0]
        made.page.on("request", lambda asked: made.requests.append(asked.url) if asked.url != own else None)
        made.page.on("console", lambda said: _complain(made, said.type, said.text))
        made.page.on("pageerror", lambda error: made.complaints.append(f"error: {error}"))
        made.page.goto(address, timeout=PATIENCE)
        return made

    yield open_page
    for context in contexts:
        context.close()


def _complain(visit: Visit, kind: str, text: str) -> None:
    if kind in ("error", "warning"):
        visit.complaints.append(f"{kind}: {text}")
