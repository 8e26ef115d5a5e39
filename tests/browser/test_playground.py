"""The playground in a browser: kwire itself, by Pyodide, in the page. Every fixture frame that is pasted gives the text
that the command line gives; nothing is asked of anybody else; what is hostile stays text.

Pyodide comes from KWIRE_PYODIDE, or node_modules/pyodide; without one the tests are skipped, and say so. That of npm
has no numpy, without which a capture cannot be read: that test is skipped too then.
"""

from __future__ import annotations

import base64
import functools
import http.server
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from hostilenames import hostile_capture

from kwire.codec.library import builtin_library
from kwire.records.build import build
from kwire.records.read import Record
from kwire.site.bundle import Pyodide, pyodide_at
from kwire.site.write import write_site

Visits = Callable[..., Any]
PATIENCE = 240_000  # ms for what Python does in the page: it is loaded first
FRAMES = sorted((ROOT / "fixtures/frames").glob("*.bin"))
HOSTILE = '<img src=x onerror="document.title=1">\u202e\x1b[31m</pre>'


@pytest.fixture(scope="module")
def pyodide() -> Pyodide:
    places = [os.environ.get("KWIRE_PYODIDE"), str(ROOT / "node_modules/pyodide")]
    place = next((place for place in places if place and Path(place, "pyodide.mjs").is_file()), None)
    if place is None:
        pytest.skip("no Pyodide (KWIRE_PYODIDE or node_modules/pyodide): the playground is not tried")
    return pyodide_at(place)


@pytest.fixture(scope="module")
def address(pyodide: Pyodide, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a server of this test shows the site."""
    folder = tmp_path_factory.mktemp("site")
    write_site(folder, builtin_library(), pyodide)

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/playground/index.html"
        server.shutdown()
        thread.join()


def _decoded(seen: Any) -> tuple[str, int]:
    """The diagram's text and the columns it was laid out for, once it is there."""
    out = seen.page.locator("#out[data-status]")
    out.wait_for(state="attached", timeout=PATIENCE)
    return str(out.text_content()), int(out.get_attribute("data-columns"))


def _captured(seen: Any, path: Path) -> Any:
    """The rows of a capture's exchanges, once they are there."""
    seen.page.locator("#file").set_input_files(str(path))
    rows = seen.page.locator("#exchanges tbody tr")
    rows.first.wait_for(timeout=PATIENCE)
    return rows


def _again(seen: Any) -> None:
    seen.page.locator("#out").evaluate("out => out.removeAttribute('data-status')")


def _pasted(seen: Any, text: str) -> tuple[str, int]:
    _again(seen)
    seen.page.locator("#bytes").fill(text)
    seen.page.locator("#go").click()
    return _decoded(seen)


def _own(seen: Any, address: str) -> None:
    """Nothing was asked of anybody but the site, nothing complained of."""
    site = address.partition("playground/")[0]
    assert [asked for asked in seen.requests if not asked.startswith((site, "data:,"))] == []
    assert seen.complaints == []


def test_every_fixture_frame_gives_the_text_of_the_command_line(address: str, visit: Visits, kwire: Any) -> None:
    """Pasted as hex and as base64 in turn."""
    seen = visit(address)
    for number, frame in enumerate(FRAMES):
        data = frame.read_bytes()
        pasted = data.hex(" ") if number % 2 else base64.b64encode(data).decode()
        text, columns = _pasted(seen, pasted)
        assert text == kwire("decode", stdin=pasted.encode(), columns=columns).text, frame.name
    _own(seen, address)


def test_a_link_holds_the_bytes(address: str, visit: Visits) -> None:
    given = "#as=HeartbeatResponse&v=3&hex=0000000a0000001100000000001b"
    seen = visit(address + given)
    text, _ = _decoded(seen)
    assert "REBALANCE_IN_PROGRESS" in text
    seen.page.locator("#share").click()
    seen.page.wait_for_url("**/index.html#as=HeartbeatResponse&v=3&d=*")
    assert _decoded(visit(seen.page.url))[0] == text
    assert seen.overflow() <= 0
    _own(seen, address)
    assert seen.violations() == []


def test_hostile_names_are_inert(address: str, visit: Visits, kwire: Any) -> None:
    seen = visit(address, width=390)
    body = '{"Topics": [{"Name": "<img src=x onerror=alert(1)>"}]}'
    named = ("--size", "--hex", "--client-id", HOSTILE)
    frame = kwire("encode", "MetadataRequest", "-v", "1", body, *named).text
    _again(seen)
    seen.page.locator("#as").fill("MetadataRequest")
    seen.page.locator("#v").fill("1")
    text, _ = _pasted(seen, frame)
    assert "<img src=x" in text
    assert not {"\u202e", "\x1b"} & set(text)
    assert seen.page.locator("#out img").count() == 0
    assert seen.page.title() == "Playground"
    assert seen.overflow() <= 0
    _own(seen, address)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_records_of_every_compression(codec: str, address: str, visit: Visits) -> None:
    batch = build([Record(0, 0, b"k", b"a value " * 40, [])], compression=codec)
    seen = visit(f"{address}#as=records&format=json&hex={batch.hex()}")
    text, _ = _decoded(seen)
    old = codec == "zstd" and "there is no zstd in this Python" in text  # before Pyodide 314
    assert old or base64.b64encode(b"a value " * 40).decode() in text or "a value a value" in text


def test_what_is_wrong_is_said(address: str, visit: Visits) -> None:
    seen = visit(address)
    seen.page.locator("#as").fill("Fecth")
    seen.page.locator("#v").fill("3")
    _pasted(seen, "00 01")
    assert "did you mean Fetch" in seen.page.locator("#said").text_content()


def test_a_capture_gives_its_exchanges_and_their_diagrams(
    address: str, pyodide: Pyodide, visit: Visits, kwire: Any
) -> None:
    if not pyodide.numpy:
        pytest.skip("this Pyodide has no numpy: captures are not read in the page")
    capture = "fixtures/captures/evict-stopped.pcap.gz"
    seen = visit(address)
    rows = _captured(seen, ROOT / capture)
    assert rows.count() == kwire("read", capture, "--format", "json").text.count('"kind": "request"')
    rows.first.locator("button").click()
    text, columns = _decoded(seen)
    connection = str(rows.first.locator("td").nth(2).text_content())
    expected = kwire("decode", capture, "--connection", connection, "--index", "0", columns=columns).text
    assert text == expected
    _own(seen, address)


def test_hostile_names_of_a_capture_are_inert(address: str, pyodide: Pyodide, visit: Visits, tmp_path: Path) -> None:
    if not pyodide.numpy:
        pytest.skip("this Pyodide has no numpy: captures are not read in the page")
    seen = visit(address, width=390)
    rows = _captured(seen, hostile_capture(tmp_path))
    names = seen.page.locator("#exchanges").text_content()
    assert "<script>window.hit=1</script>" in names
    assert "\\u202egnp.exe" in names
    for number in (0, 2, 3):
        _again(seen)
        rows.nth(number).locator("button").click()
        assert "window.hit" in _decoded(seen)[0]
    assert seen.page.evaluate("() => window.hit") is None
    assert not set(names + seen.page.locator("#out").text_content()) & set("\u202e\u2066\u200b\x1b\x07")
    assert seen.page.locator("#exchanges script, #exchanges svg, #exchanges img, #out *:not(span)").count() == 0
    assert seen.overflow() <= 0
    _own(seen, address)
