"""A server in a thread and a loop of its own, for programs that have none: what they ask is done over there."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Protocol, TypeVar

from kwire.errors import KwireError

T = TypeVar("T")
START = 30.0  # seconds


class Stoppable(Protocol):
    async def stop(self) -> None: ...


class LoopThread:
    """name: of the thread, and what runs in it ("kwire broker")."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._stopping: asyncio.Event
        self._failed: BaseException | None = None

    @property
    def running(self) -> bool:
        return self._thread is not None

    def start(self, begin: Callable[[], Awaitable[Stoppable]]) -> None:
        """begin makes and starts the server, in the thread; what it raises is raised here."""
        if self._thread is not None:
            raise KwireError(f"this {self.name.removeprefix('kwire ')} runs already")
        ready = threading.Event()
        self._failed = None

        async def run() -> None:
            try:
                server = await begin()
            except BaseException as error:
                self._failed = error
                ready.set()
                return
            self._stopping = asyncio.Event()
            self._loop = asyncio.get_running_loop()
            ready.set()
            await self._stopping.wait()
            await server.stop()

        self._thread = threading.Thread(target=lambda: asyncio.run(run()), name=self.name, daemon=True)
        self._thread.start()
        ready.wait(START)
        if self._failed is not None:
            self._thread.join()
            self._thread = None
            raise self._failed

    def stop(self) -> None:
        """Stops the server and waits for it; safe to call twice."""
        if self._thread is None or self._loop is None:
            return
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()
        self._thread = self._loop = None

    def call(self, act: Callable[[], T]) -> T:
        """In the thread, while it runs."""
        loop = self._loop
        if loop is None or threading.current_thread() is self._thread:
            return act()

        async def run() -> T:
            return act()

        return asyncio.run_coroutine_threadsafe(run(), loop).result()

    def run(self, act: Callable[[], Coroutine[None, None, T]]) -> T:
        """A coroutine, in the thread. Raises KwireError when it does not run."""
        if self._loop is None:
            raise KwireError(f"this {self.name.removeprefix('kwire ')} does not run")
        return asyncio.run_coroutine_threadsafe(act(), self._loop).result()
