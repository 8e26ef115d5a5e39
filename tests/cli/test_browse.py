"""What kwire browse says where it cannot be, and what its filters mean."""

from __future__ import annotations

import builtins
import sys
from pathlib import Path
from typing import Any

import pytest

from kwire.cli.browse import Filters
from kwire.cli.browse_live import line_of
from kwire.cli.quantities import Moment
from kwire.cli.wanted import Wanted
from kwire.errors import KwireError
from kwire.session.reading import Reading
from kwire.session.select import Selection

CAPTURE = "fixtures/captures/consumer848.pcap"
NOTHING = Wanted((), (), (), (), (), (), False, (), None, None, None, (), (), (), False)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((CAPTURE,), "needs a terminal; kwire read -x shows the same as text"),
        (("-",), "browse reads files: stdin is the keyboard"),
        (("-f", CAPTURE, CAPTURE), "--follow takes one capture"),
        ((), "Missing argument 'CAPTURE...'"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], said: str, kwire: Any) -> None:
    ran = kwire("browse", *arguments)
    assert said in ran.err
    assert (ran.status, ran.out) == (2, b"")


def test_without_textual_a_line_says_what_is_missing(kwire: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    there = builtins.__import__

    def without(name: str, *given: Any) -> Any:
        if name.partition(".")[0] == "textual":
            raise ImportError(name)
        return there(name, *given)

    monkeypatch.setattr(builtins, "__import__", without)
    ran = kwire("browse", CAPTURE)
    assert ran.err == "kwire: kwire browse needs Textual: pip install 'kwire[tui]'\n"
    assert ran.status == 2


def test_reading_does_not_load_textual(kwire: Any) -> None:
    before = {name for name in sys.modules if name.startswith("textual")}
    kwire("read", CAPTURE)
    assert {name for name in sys.modules if name.startswith("textual")} == before


@pytest.mark.parametrize(
    ("line", "selection"),
    [
        ("api=Fetch slower=100ms", Selection.of(api="Fetch", slower=100_000_000)),
        ("api=Fetch api=Produce", Selection.of(api=["Fetch", "Produce"])),
        ("client=cart-*", Selection.of(client_id="cart-*")),
        ("client=10.0.0.7 broker=:9092", Selection.of(client="10.0.0.7", broker=":9092")),
        ("client=[::1]:9092", Selection.of(client="[::1]:9092")),
        ("errors topic='a b'", Selection.of(errors=True, topic="a b")),
        ("error=27 id=3", Selection.of(error="27", id=3)),
    ],
)
def test_a_line_of_filters_is_what_read_takes(line: str, selection: Selection) -> None:
    assert Filters(Reading([CAPTURE]))(line) == selection


@pytest.mark.parametrize("line", ["api=Nope", "errors=1", "id=x", "help", "'", "Fetch", "-x", "slower=fast"])
def test_a_line_that_is_none_is_told_in_one_line(line: str) -> None:
    with pytest.raises(KwireError) as told:
        Filters(Reading([CAPTURE]))(line)
    assert len(str(told.value).splitlines()) == 1


def test_filters_of_sniff_become_a_line() -> None:
    wanted = NOTHING._replace(apis=("Fetch",), client_ids=("a b",), errors=True, slower=1_500_000, ids=(3,))
    line = line_of(wanted)
    assert line == "errors api=Fetch 'client-id=a b' id=3 slower=1500000ns"
    assert Filters(Reading([CAPTURE]))(line) == Selection.of(
        api="Fetch", client_id="a b", errors=True, slower=1_500_000, id=3
    )


def test_times_do_not_go_with_what_is_live() -> None:
    with pytest.raises(Exception, match="--from and --to"):
        line_of(NOTHING._replace(start=Moment().convert("12.5", None, None)))


def test_the_capture_must_be_one(kwire: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kwire.cli.browse.needed", lambda: None)
    (tmp_path / "x").write_bytes(b"no capture at all")
    ran = kwire("browse", str(tmp_path / "x"))
    assert "neither pcap nor pcapng" in ran.err
    assert ran.status == 2
