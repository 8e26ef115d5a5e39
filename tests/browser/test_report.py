"""kwire report in a browser: readable without scripts, sorted and filtered with them, inert whatever the names are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hostilenames import hostile_capture

CAPTURE = "fixtures/captures/evict-stopped.pcap.gz"
Visits = Callable[..., Any]
Runs = Callable[..., Any]


@pytest.fixture
def report(tmp_path: Path, kwire: Runs) -> Callable[[str], Path]:
    """report(capture): the page of a capture, as a file."""

    def make(capture: str) -> Path:
        file = tmp_path / "report.html"
        kwire("report", capture, "-o", str(file))
        return file

    return make


@pytest.mark.parametrize(("width", "dark"), [(1200, False), (800, True), (390, False)])
def test_it_fits_reads_well_and_loads_nothing(
    report: Callable[[str], Path], visit: Visits, width: int, dark: bool
) -> None:
    seen = visit(report(CAPTURE), width=width, dark=dark)
    assert seen.page.title() == "kwire report"
    assert seen.page.locator("h2").all_inner_texts()[:3] == ["Overview", "Findings", "Over time"]
    seen.page.evaluate("() => document.querySelectorAll('details').forEach(one => { one.open = true })")
    assert seen.overflow() <= 0
    assert seen.violations() == []
    assert seen.complaints == []
    assert seen.requests == []


@pytest.mark.parametrize("width", [1200, 390])
def test_a_tall_table_does_not_make_the_page_tall(
    report: Callable[[str], Path], visit: Visits, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setattr("kwire.render.report.sheets.TALL", 8)
    seen = visit(report(CAPTURE), width=width)
    seen.page.set_viewport_size({"width": width, "height": 500})
    box = seen.page.locator("div.tall", has=seen.page.locator("#apis"))
    held, whole, across = box.evaluate("it => [it.clientHeight, it.scrollHeight, it.scrollWidth - it.clientWidth]")
    assert held < whole
    assert across <= 0
    assert seen.violations() == []
    seen.page.get_by_label("Filter: APIs").fill("JoinGroup")
    left = seen.page.locator("#apis tbody tr:visible th").all_inner_texts()
    assert left == ["JoinGroup v5 *", "JoinGroup v7 *"]
    seen.page.emulate_media(media="print")
    held, whole = box.evaluate("it => [it.clientHeight, it.scrollHeight]")
    assert held == whole


def test_it_is_whole_without_scripts(report: Callable[[str], Path], visit: Visits) -> None:
    seen = visit(report(CAPTURE), scripts=False)
    assert seen.page.locator("button:visible").count() == 0
    assert seen.page.locator("input").count() == 0
    assert seen.page.locator("#apis tbody tr").count() == 22
    seen.page.locator("summary", has_text="frame 465").click()
    assert "UNKNOWN_MEMBER_ID" in seen.page.locator("details[open] pre").inner_text()
    assert seen.complaints == []


def test_tables_sort_and_filter_and_numbers_lead_to_commands(report: Callable[[str], Path], visit: Visits) -> None:
    seen = visit(report(CAPTURE))
    rows, heads = seen.page.locator("#apis tbody tr:visible th"), seen.page.locator("#apis thead th")
    heads.nth(6).locator("button").click()
    assert heads.nth(6).get_attribute("aria-sort") == "descending"
    assert rows.all_inner_texts()[0].startswith("JoinGroup v7")
    heads.nth(0).locator("button").press("Enter")
    assert rows.all_inner_texts()[0] == "ApiVersions v3"
    seen.page.get_by_label("Filter: APIs by version").fill("heartbeat")
    assert rows.all_inner_texts() == ["Heartbeat v3", "Heartbeat v4"]
    seen.page.locator("#apis tr", has_text="Heartbeat v4").locator("td.error button").click()
    told = seen.page.locator("#command")
    assert told.locator("code").inner_text() == "kwire read evict-stopped.pcap.gz --api Heartbeat --errors"
    seen.page.keyboard.press("Escape")
    assert not told.is_visible()


def test_on_paper_it_is_light_and_whole(report: Callable[[str], Path], visit: Visits) -> None:
    seen = visit(report(CAPTURE), dark=True)
    seen.page.emulate_media(media="print", color_scheme="dark")
    assert seen.page.locator("#apis thead button").first.is_visible()
    assert seen.page.locator("#apis td.n button").first.is_visible()
    assert not seen.page.locator(".tool, nav, #command").first.is_visible()
    ground = seen.page.evaluate("() => getComputedStyle(document.documentElement).backgroundColor")
    assert ground == "rgb(255, 255, 255)"


def test_a_link_to_a_frame_unfolds_it(report: Callable[[str], Path], visit: Visits) -> None:
    seen = visit(report(CAPTURE))
    seen.page.locator("#groups-of ~ * a", has_text="frame 465").click()
    seen.page.locator("#frame-1[open] pre").wait_for()


def test_hostile_names_are_inert(tmp_path: Path, report: Callable[[str], Path], visit: Visits) -> None:
    seen = visit(report(str(hostile_capture(tmp_path))))
    seen.page.evaluate("() => document.querySelectorAll('details').forEach(one => { one.open = true })")
    for button in seen.page.locator("thead button").all():
        button.click()
    assert seen.page.evaluate("() => window.hit") is None
    assert seen.page.locator("main img, main iframe, main object, main script").count() == 0
    assert seen.page.locator("main").is_visible()
    assert seen.overflow() <= 0
    assert seen.complaints == []
    assert seen.requests == []
