"""The site in a browser, from the disk: it fits every window, reads well, asks for nothing elsewhere; one version at a
time and lit bytes without JavaScript; the search."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kwire.codec.library import builtin_library
from kwire.render.versions import compared
from kwire.site.bundle import Pyodide
from kwire.site.write import write_site

Visits = Callable[..., Any]
PAGES = [
    "index.html", "apis/index.html", "fetch/index.html", "heartbeat/index.html#response-v4", "kips/index.html",
    "errors/rebalance-in-progress/index.html", "detectors/acl-denied/index.html", "types/string/index.html",
    "guide/bytes/index.html", "request-header/index.html", "releases/index.html", "playground/index.html",
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = tmp_path_factory.mktemp("site")
    write_site(made, builtin_library(), Pyodide())
    return made


def _go(visit: Visits, folder: Path, place: str, **how: Any) -> Any:
    """A page of the site; a part of it by its mark."""
    page, _, part = place.partition("#")
    seen = visit(folder / page, **how)
    if part:
        seen.page.goto(f"{(folder / page).as_uri()}#{part}")
    return seen


@pytest.mark.parametrize("place", PAGES)
def test_a_page_fits_reads_well_and_asks_for_nothing_elsewhere(place: str, folder: Path, visit: Visits) -> None:
    for width in (1200, 390):
        seen = _go(visit, folder, place, width=width, dark=width < 500)
        assert seen.overflow() <= 0
        assert seen.complaints == []
        assert [asked for asked in seen.requests if not asked.startswith((folder.as_uri(), "data:,"))] == []
        assert seen.violations() == []  # last: axe itself asks for the style sheets


def _shown(seen: Any) -> list[str]:
    """The versions that can be seen."""
    versions = seen.page.locator("section.version").all()
    return [version.get_attribute("id") for version in versions if version.is_visible()]


@pytest.mark.parametrize(
    ("place", "version"),
    [("fetch/index.html", "v18"), ("fetch/index.html#v4", "v4"), ("fetch/index.html#response-v16", "v16")],
)
def test_one_version_at_a_time_without_scripts(place: str, version: str, folder: Path, visit: Visits) -> None:
    seen = _go(visit, folder, place, scripts=False)
    assert _shown(seen) == [version]
    seen.page.locator("nav.switch a", has_text="v11").click()
    assert _shown(seen) == ["v11"]


def test_a_short_address_leads_on(folder: Path, visit: Visits) -> None:
    seen = visit(folder / "fetch/v16/index.html", scripts=False)
    seen.page.wait_for_url("**/fetch/index.html#v16")
    assert _shown(seen) == ["v16"]


def test_touching_a_field_lights_up_its_bytes_and_back(folder: Path, visit: Visits) -> None:
    seen = _go(visit, folder, "heartbeat/index.html#response-v4", scripts=False)
    example = seen.page.locator("#response-v4 details.ex")
    row, raw = example.locator("tr.k1"), example.locator("b.k1")
    color = "element => getComputedStyle(element).backgroundColor"
    unlit = raw.evaluate(color)
    row.hover()
    lit = raw.evaluate(color)
    assert lit != unlit
    raw.hover()
    assert row.evaluate(color) == lit
    assert example.locator("tr.k0").evaluate(color) == unlit


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("rebalance", "REBALANCE_IN_PROGRESS"),
        ("too large", "TOO_LARGE"),
        ("isolationl", "ListOffsets"),
        ("zigz", "varint"),
    ],
)
def test_the_search_finds_what_explain_finds(words: str, first: str, folder: Path, visit: Visits) -> None:
    seen = visit(folder / "guide/start/index.html")
    seen.page.keyboard.press("/")
    seen.page.keyboard.type(words)
    found = seen.page.locator("#found a")
    found.first.wait_for()
    assert any(first in text for text in found.all_text_contents()[:3])
    seen.page.keyboard.press("ArrowDown")
    seen.page.keyboard.press("Enter")
    seen.page.wait_for_url(lambda address: "guide/start" not in address)
    assert seen.complaints == []


def test_the_search_leads_to_a_field(folder: Path, visit: Visits) -> None:
    seen = visit(folder / "index.html")
    seen.page.locator("#q").fill("isolationlevel")
    seen.page.locator("#found a", has_text="Fetch.IsolationLevel").first.click()
    seen.page.wait_for_url("**/fetch/index.html#f-isolationlevel")
    assert seen.page.locator("#f-isolationlevel").is_visible()


def test_hostile_words_are_inert(folder: Path, visit: Visits) -> None:
    seen = visit(folder / "index.html")
    seen.page.locator("#q").fill('<img src=x onerror="document.title=1"> \\ (.*')
    seen.page.locator("#found li").wait_for()
    assert (seen.page.title() != "1", seen.complaints) == (True, [])


def test_two_versions_side_by_side_as_explain_has_them(folder: Path, visit: Visits) -> None:
    library = builtin_library()
    seen = _go(visit, folder, "fetch/index.html#diff-4-16")
    table = seen.page.locator("#compare table").nth(1)
    rows = [row.locator("td").all_text_contents() for row in table.locator("tbody tr").all()]
    expected = compared(library.plan("FetchResponse", 4), library.plan("FetchResponse", 16))
    assert sorted(rows) == sorted([path, a or "not there", b or "not there"] for path, a, b in expected if a != b)
    assert seen.violations() == []
    assert seen.overflow() <= 0
