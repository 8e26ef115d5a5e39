"""kwire browse for tests: the application on a capture, driven by keys, without a terminal."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from textual.pilot import Pilot
from textual.widgets import Static

from kwire.browse.app import Browser
from kwire.browse.link import ReaderLink
from kwire.browse.setting import BrowseSetting
from kwire.cli.browse import Filters, export
from kwire.session.reading import Reading

ROOT = Path(__file__).parents[1]
CAPTURES = ROOT / "fixtures" / "captures"
PATIENCE = 60  # seconds, for what comes at once where nothing else runs


class Session:
    """press(*keys) and type(text), each until nothing is on its way; screen() is what stands there."""

    def __init__(self, app: Browser, pilot: Pilot[None]) -> None:
        self.app, self.pilot = app, pilot

    async def until(self, holds: Callable[[], object]) -> None:
        end = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < end, f"it never came; the screen is\n{self.screen()}"
            await asyncio.sleep(0.01)
        await self.pilot.pause()

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.pilot.press(key)
            await self.settled()

    async def type(self, text: str) -> None:
        """Text into the line at the bottom, and Enter."""
        from textual.widgets import Input

        self.app.query_one("#prompt", Input).value = text
        await self.press("enter")

    async def settled(self) -> None:
        await self.pilot.pause()
        await self.until(lambda: self.app.quiet)

    def screen(self) -> str:
        """All lines, as text."""
        screen = self.app.screen
        return "\n".join(
            "".join(segment.text for segment in strip).rstrip()
            for strip in screen._compositor.render_strips(self.app.size)
        )

    def text(self, id: str) -> str:
        return str(self.app.screen_stack[0].query_one(f"#{id}", Static).render())


@asynccontextmanager
async def browsing(
    *paths: str | Path, size: tuple[int, int] = (120, 40), line: str = "", wait: bool = True, **more: Any
) -> AsyncIterator[Session]:
    """The application on captures; wait: when all of them are read."""
    reading = Reading(list(paths), tracking=True, follow=bool(more.get("live")))
    link = ReaderLink(reading, export)
    title = ", ".join(reading.names.values())
    filters = Filters(reading)
    app = Browser(BrowseSetting(title, tuple(map(str, paths)), (), filters, filters.absent, line, **more), link)
    try:
        async with app.run_test(size=size) as pilot:
            session = Session(app, pilot)
            if wait:
                if not more.get("live"):
                    await session.until(lambda: app.ended is not None)
                await session.settled()
            yield session
    finally:
        link.close()


def run(test: Callable[[], Awaitable[None]]) -> None:
    """Runs what awaits."""

    async def whole() -> None:
        await test()

    asyncio.run(whole())
