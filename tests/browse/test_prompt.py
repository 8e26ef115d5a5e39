"""What comes of the line at the bottom: files, findings, other commands; and captures that grow."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from browsing import CAPTURES, browsing, run
from session.conftest import Traffic, request, response

from kwire.session.reading import Reading

CONSUMER, CLASSIC = CAPTURES / "consumer848.pcap", CAPTURES / "classic.pcap.gz"


def test_marked_exchanges_are_written(tmp_path: Path) -> None:
    async def test() -> None:
        target = tmp_path / "marked.pcapng"
        async with browsing(CONSUMER) as session:
            await session.press("j", "m", "j", "m", "w")
            assert "2 marked" in session.text("title")
            await session.type(str(target))
            assert "packets to" in session.text("status")
        ids = [exchange.correlation_id for exchange in Reading([target]).exchanges()]
        assert set(ids) >= {1, 3}

    run(test)


def test_a_frame_is_exported(tmp_path: Path) -> None:
    async def test() -> None:
        async with browsing(CONSUMER) as session:
            await session.press("j", "r", "e")
            await session.type(str(tmp_path / "x.json"))
            found = json.loads((tmp_path / "x.json").read_text())
            assert (found["api"], found["kind"], found["correlation_id"]) == ("Metadata", "response", 1)
            await session.press("e")
            await session.type(str(tmp_path / "x.html"))
            assert "MetadataResponse v13" in (tmp_path / "x.html").read_text()
            await session.press("e")
            await session.type(str(tmp_path / "x.html"))
            assert "File exists" in session.text("status")
            await session.press("e")
            await session.type("-")
            words = shlex.split("".join(line.rstrip("▐") for line in session.screen().splitlines()[1:4]))
            assert words[:4] == ["kwire", "call", "127.0.0.1:9092", "Metadata"]
            assert words[5:7] == ["-v", "13"]
            assert json.loads(words[4])["AllowAutoTopicCreation"] in (True, False)

    run(test)


def test_a_finding_leads_to_its_evidence() -> None:
    async def test() -> None:
        async with browsing(CLASSIC) as session:
            await session.press("d")
            screen = session.screen()
            assert "finding" in screen.splitlines()[0]
            packets = re.findall(r"packet (\d+)", screen)
            assert packets
            await session.press("enter")
            row = session.app.index.row(session.app.rows.row or 0)
            assert int(packets[0]) in (row["asked"], row["answered"])
            assert f"packet {packets[0]}" in session.screen()

    run(test)


def test_the_groups_timeline_and_other_commands() -> None:
    async def test() -> None:
        async with browsing(CLASSIC) as session:
            await session.press("slash")
            await session.type("joingroup")
            await session.press("v")
            assert "kwire groups --timeline --group classic-billing" in session.screen()
            assert "classic-billing" in session.screen().split("\n", 1)[1]
            await session.press("q", "colon")
            await session.type("stats")
            assert "Heartbeat" in session.screen()
            await session.press("q", "colon")
            await session.type("nosuch")
            assert "no command nosuch here; there are stats, groups" in session.text("status")
            await session.press("colon")
            await session.type("explain 27")
            assert "REBALANCE_IN_PROGRESS" in session.screen()

    run(test)


HOSTILE = "\x1b[31mred\x07\u202eevil[bold]x[/bold]\n日本"


def _hostile(path: Path) -> Path:
    traffic = Traffic()
    one = traffic.connection()
    topic: dict[str, Any] = {"Name": HOSTILE, "ErrorCode": 3}
    one.send(request("Metadata", 9, {"Topics": [{"Name": HOSTILE}]}, 7, HOSTILE))
    one.answer(response("Metadata", 9, {"Topics": [topic]}, 7))
    one.send(request("Heartbeat", 3, {"GroupId": HOSTILE}, 8, HOSTILE)).close()
    return traffic.save(path)


@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
def test_text_from_the_wire_is_shown_and_not_obeyed(tmp_path: Path, size: tuple[int, int]) -> None:
    async def test() -> None:
        async with browsing(_hostile(tmp_path / "hostile.pcap"), size=size) as session:
            for keys in (["j"], ["k", "r"], ["enter", "G"], ["tab", "tab"], ["c"], ["d"], ["q"], ["v"], ["q"]):
                await session.press(*keys)
                screen = session.screen()
                assert not set("\x1b\x07\u202e") & set(screen)
                assert all(char.isprintable() for line in screen.split("\n") for char in line)
        async with browsing(tmp_path / "hostile.pcap", size=size) as session:
            await session.press("slash")
            await session.type("[bold]")
            assert "not found" not in session.text("status")
            assert r"\x1b[31mred" in session.screen()
            assert "[bold]x[/bold]" in session.screen()

    run(test)


@pytest.mark.parametrize("name", ["sasl.pcap.gz", "sasl-v0.pcap"])
def test_secrets_are_withheld(name: str) -> None:
    """They never come to the process that draws."""

    async def test() -> None:
        async with browsing(CAPTURES / name, line="api=Sasl*") as session:
            app = session.app
            assert len(app.rows.view)
            for _ in range(min(len(app.rows.view), 12)):
                for _ in range(2):
                    picture = app.diagram.picture
                    shown = "\n".join("".join(text for text, _ in line) for line in picture.lines)
                    assert b"alice-secret" not in picture.data
                    assert "alice-secret" not in shown
                    if "AuthBytes" in shown:
                        assert picture.hidden
                        assert not any(picture.data[picture.hidden[0][0] : picture.hidden[0][1]])
                    await session.press("r")
                await session.press("j")

    run(test)


def test_a_capture_that_grows_is_followed(tmp_path: Path) -> None:
    async def test() -> None:
        traffic = Traffic()
        one = traffic.connection()
        for ident in range(5):
            one.send(request("Heartbeat", 3, {"GroupId": "a"}, ident)).answer(response("Heartbeat", 3, {}, ident))
        whole = traffic.save(tmp_path / "whole.pcap").read_bytes()
        growing = tmp_path / "growing.pcap"
        growing.write_bytes(whole[: len(whole) // 2])
        async with browsing(growing, live=True, follow=True) as session:
            app = session.app
            await session.until(lambda: len(app.index) >= 2)
            await session.settled()
            assert "live, following" in session.text("title")
            with growing.open("ab") as file:
                file.write(whole[len(whole) // 2 :])
            await session.until(lambda: len(app.index) == 5)
            await session.settled()
            assert "5 of 5 exchanges" in session.text("title")
            assert "correlation id 4" in session.screen()
            await session.press("k")
            assert "following" not in session.text("title")

    run(test)


def test_without_color_nothing_is_colored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    async def test() -> None:
        async with browsing(CONSUMER) as session:
            assert session.app.no_color
            strips = session.app.screen._compositor.render_strips(session.app.size)
            styles = [
                segment.style
                for strip in strips
                for segment in strip.apply_filter(session.app._filters[-1], session.app.screen.background_colors[0])
            ]
            assert all(
                color is None or color.is_default for style in styles if style for color in (style.color, style.bgcolor)
            )

    run(test)


def test_the_capture_goes_while_it_is_looked_at(tmp_path: Path) -> None:
    async def test() -> None:
        path = tmp_path / "x.pcap"
        shutil.copy(CONSUMER, path)
        async with browsing(path) as session:
            path.unlink()
            await session.press("G", "d")
            assert "No such file" in session.text("status")

    run(test)
