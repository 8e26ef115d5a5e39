"""kwire browse, driven by its keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from browsing import CAPTURES, browsing, run
from textual.events import Key

from kwire.browse.pictures import picture

CONSUMER, CLASSIC = CAPTURES / "consumer848.pcap", CAPTURES / "classic.pcap.gz"


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50)])
def test_the_first_screen_shows_list_diagram_and_bytes(size: tuple[int, int]) -> None:
    async def test() -> None:
        async with browsing(CONSUMER, size=size) as session:
            screen = session.screen()
            assert "consumer848.pcap · 1 of 102 exchanges" in screen
            assert "ApiVersions v4" in screen
            assert "Request Header v2 · flexible" in screen
            assert ("0000  00 00 00 35" in screen) == (size[0] > 80)

    run(test)


def test_keys_move_in_the_list_and_the_frame_follows() -> None:
    async def test() -> None:
        async with browsing(CONSUMER) as session:
            await session.press("j", "j", "j")
            assert "CreateTopicsRequest v7" in session.screen()
            await session.press("k")
            assert "ApiVersionsRequest v4" in session.screen()
            await session.press("G")
            assert "102 of 102 exchanges" in session.text("title")
            await session.press("r")
            assert "Response Header" in session.screen()
            await session.press("g")
            assert "ApiVersionsResponse" in session.screen()

    run(test)


def test_a_field_and_its_bytes_light_each_other_up() -> None:
    async def test() -> None:
        async with browsing(CONSUMER) as session:
            app = session.app
            await session.press("enter", "j", "j")
            field = app.diagram.field
            assert field is not None
            assert (field.start, field.end) == app.bytes.lit == (6, 8)  # request_api_version
            await session.press("tab", "l", "l")
            assert app.bytes.byte == 8
            assert app.bytes.lit == (8, 12)
            field = app.diagram.field
            assert field is not None
            assert (field.start, field.end) == (8, 12)

    run(test)


def test_tab_stacks_the_panes_of_a_narrow_terminal() -> None:
    async def test() -> None:
        async with browsing(CONSUMER, size=(80, 24)) as session:
            assert "diagram (Tab: bytes)" in session.text("about")
            await session.press("tab")
            assert "int32 · 4B" in session.screen()
            await session.press("tab")
            assert "0000  00 00 00 35" in session.screen()
            assert "int32 · 4B" not in session.screen()
            await session.press("escape")
            assert session.app.pane is session.app.rows
            await session.press("shift+tab", "shift+tab")
            assert "int32 · 4B" in session.screen()

    run(test)


def test_f_filters_and_escape_shows_all_again() -> None:
    async def test() -> None:
        async with browsing(CONSUMER) as session:
            await session.press("f")
            await session.type("api=Fetch slower=100ms client=*-c1")
            listed = len(session.app.rows.view)
            assert 0 < listed < 102
            assert f"1 of {listed} of 102 exchanges · api=Fetch slower=100ms client=*-c1" in session.text("title")
            assert "FetchRequest" in session.screen()
            await session.press("escape")
            assert "of 102 exchanges" in session.text("title")
            assert len(session.app.rows.view) == 102

    run(test)


@pytest.mark.parametrize(
    ("line", "shown", "said"),
    [
        ("api=Fecth", "1 of 102 exchanges", "no message Fecth; did you mean Fetch"),  # wrong ones change nothing
        ("colour=red", "1 of 102 exchanges", "colour"),
        ("slower=", "1 of 102 exchanges", "slower"),
        ("'", "1 of 102 exchanges", "no filter"),
        ("topic=order", "0 of 102 exchanges", "no topic order; 1 there is: consumer848-payments"),
        ("api=Heartbeat client=nobody", "0 of 102 exchanges", "no client id nobody; "),
        ("error=FENCED_INSTANCE_ID", "0 of 102 exchanges", "no error FENCED_INSTANCE_ID; "),
        ("api=Fetch id=1", "0 of 102 exchanges", "no exchange fits all of it at once"),
    ],
)
def test_what_a_filter_that_is_wrong_or_fits_nothing_says(line: str, shown: str, said: str) -> None:
    async def test() -> None:
        async with browsing(CONSUMER) as session:
            await session.press("f")
            await session.type(line)
            assert f"· {shown}" in session.text("title")
            assert said in session.text("status")

    run(test)


def test_a_terminal_that_changes_its_size_shows_the_same_exchange() -> None:
    async def test() -> None:
        async with browsing(CONSUMER, size=(200, 50)) as session:
            await session.press("G", "k")
            chosen = session.app.rows.row
            for width, height in ((80, 24), (40, 10), (120, 40)):
                await session.pilot.resize_terminal(width, height)
                await session.settled()
                lines = session.screen().splitlines()
                assert len(lines) <= height
                assert max(map(len, lines)) <= width
                assert session.app.rows.row == chosen
                assert any("▸" in line for line in lines)

    run(test)


def test_searching_goes_from_hit_to_hit() -> None:
    async def test() -> None:
        async with browsing(CLASSIC) as session:
            await session.press("slash")
            await session.type("member_id_required")
            first = session.app.rows.cursor
            assert "MEMBER_ID_REQ" in session.screen().split("request")[0]
            await session.press("n")
            assert session.app.rows.cursor > first
            assert "MEMBER_ID_REQ" in session.screen().split("request")[0]
            await session.press("N")
            assert session.app.rows.cursor == first
            await session.press("slash")
            await session.type("nowhere to be found")
            assert "not found: nowhere to be found" in session.text("status")

    run(test)


def test_one_connection_and_one_id() -> None:
    async def test() -> None:
        async with browsing(CONSUMER) as session:
            await session.press("j", "j", "c")
            assert "connection=127.0.0.1:55836>127.0.0.1:9092#1" in session.text("title")
            assert len(session.app.rows.view) == 2
            assert session.app.rows.cursor == 0
            await session.press("c", "i")
            assert session.app.filter_line == "id=2"

    run(test)


def test_help_and_quit() -> None:
    async def test() -> None:
        async with browsing(CONSUMER, size=(80, 24)) as session:
            await session.press("question_mark")
            assert "keys of kwire browse" in session.screen()
            await session.press("q")
            assert "102 exchanges" in session.screen()
            await session.press("q")
            assert session.app._exit

    run(test)


def test_several_captures_name_their_packets(tmp_path: Path) -> None:
    async def test() -> None:
        other = tmp_path / "second.pcap"
        other.write_bytes((CAPTURES / "share.pcap").read_bytes())
        async with browsing(CONSUMER, other) as session:
            await session.press("G")
            assert "packet second.pcap:" in session.screen()

    run(test)


def test_a_bug_ends_it_without_a_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    async def test() -> None:
        async with browsing(CONSUMER) as session:

            def fail(_: bool) -> None:
                raise KeyError("planted")

            monkeypatch.setattr(session.app, "action_ends", fail)
            session.app.post_message(Key("G", "G"))
            await session.until(lambda: session.app.failure)

    with pytest.raises(KeyError, match="planted"):
        run(test)
    assert "Traceback" not in "".join(capsys.readouterr())


def test_a_frame_that_fails_is_told_and_the_others_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: Any) -> Any:
        if given[0].correlation_id == 1:
            raise ValueError("planted")
        return picture(*given)

    monkeypatch.setattr("kwire.browse.reader.picture", fail)  # before the process is forked

    async def test() -> None:
        async with browsing(CONSUMER) as session:
            await session.press("j")
            assert "a bug in kwire: ValueError: planted" in session.text("about")
            await session.press("j")
            assert "ApiVersionsRequest v4" in session.screen()

    run(test)
