"""The site as files: every page is there, every link leads somewhere, nothing is loaded from elsewhere."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from kwire import guide
from kwire.analyze import detectors
from kwire.codec.example import example
from kwire.codec.library import builtin_library
from kwire.codec.values import Codec
from kwire.render.types import read_types
from kwire.schema.errorcodes import errors
from kwire.schema.registry import builtin
from kwire.site.links import definition_place, error_place

LIMIT = 12_000_000  # bytes of all pages and scripts


class Reader(HTMLParser):
    """A page's ids, the targets of its links, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loads: list[str] = []
        self.policy = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        self.loads += [given["src"]] if "src" in given else []
        self.loads += [given["href"]] if tag == "link" else []
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"]
        assert not any(name.startswith("on") or name == "style" for name in given)


@pytest.fixture(scope="session")
def pages(site: Path) -> dict[Path, Reader]:
    return {file: Reader(file.read_text("utf-8")) for file in site.rglob("*.html")}


def _places() -> list[str]:
    definitions = [*builtin().apis(), *builtin().data()]
    places = [definition_place(one) for one in definitions] + [error_place(error) for error in errors]
    places += [f"{definition_place(one)}/v{v}" for one in definitions for v in one.messages[0].versions.each()]
    places += [f"errors/{error.code}" for error in errors] + [f"types/{name}" for name in read_types()]
    places += [f"detectors/{name}" for name in detectors.names()] + [f"guide/{name}" for name in guide.names()]
    return [*places, "", "apis", "names", "errors", "types", "detectors", "kips", "releases", "guide", "playground"]


def test_everything_has_a_page_of_its_own(site: Path) -> None:
    places = _places()
    assert len(places) == len(set(places))
    assert {file.parent.relative_to(site).as_posix() for file in site.rglob("*.html")} == {
        place or "." for place in places
    }


@pytest.mark.slow
def test_every_link_leads_somewhere(pages: dict[Path, Reader]) -> None:
    ids = {file.resolve(): set(page.ids) for file, page in pages.items()}
    broken = []
    for file, page in pages.items():
        for link in page.links:
            path, _, part = link.partition("#")
            target = (file.parent / path).resolve() if path else file.resolve()
            if target not in ids or (part and part not in ids[target] and "=" not in part):
                broken.append((file.parent.name, link))
    assert broken == []


def test_ids_are_given_once(pages: dict[Path, Reader]) -> None:
    assert [file for file, page in pages.items() if len(page.ids) != len(set(page.ids))] == []


def test_nothing_comes_from_elsewhere(site: Path, pages: dict[Path, Reader]) -> None:
    for file, page in pages.items():
        for load in page.loads:
            assert load == "data:," or (file.parent / load).resolve().is_relative_to(site.resolve())
            assert load == "data:," or (file.parent / load).is_file()


def test_every_page_has_a_policy(pages: dict[Path, Reader]) -> None:
    moved = [page for page in pages.values() if not page.policy]
    assert all(page.links and not page.loads for page in moved)  # redirects, which hold nothing
    assert all("default-src 'none'" in page.policy for page in pages.values() if page not in moved)
    assert not any("unsafe-inline" in page.policy or "http" in page.policy for page in pages.values())


def test_it_is_small(site: Path) -> None:
    assert sum(file.stat().st_size for file in site.rglob("*") if file.is_file()) < LIMIT


def test_a_version_is_a_permalink_and_fields_have_places(pages: dict[Path, Reader], site: Path) -> None:
    fetch = pages[site / "fetch/index.html"]
    assert {"v16", "request-v16", "response-v16", "f-isolationlevel", "errors", "versions"} <= set(fetch.ids)
    assert pages[site / "fetch/v16/index.html"].links == ["../../fetch/index.html#v16"]


def test_errors_and_apis_lead_to_each_other(pages: dict[Path, Reader], site: Path) -> None:
    error = "errors/rebalance-in-progress/index.html"
    assert f"../{error}" in pages[site / "heartbeat/index.html"].links
    assert "../../heartbeat/index.html" in pages[site / error].links
    assert pages[site / "errors/27/index.html"].links == [f"../../{error}"]


def test_the_example_is_what_encode_writes(site: Path) -> None:
    text = (site / "heartbeat/index.html").read_text("utf-8")
    shown = re.search(r'id="response-v4".*?<pre class="hex">(.*?)</pre>', text, re.DOTALL)
    assert shown
    plan = builtin_library().plan("HeartbeatResponse", 4)
    assert bytes.fromhex(re.sub(r"<[^>]+>", "", unescape(shown[1]))) == Codec(plan).encode(example(plan))
