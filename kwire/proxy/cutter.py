"""One direction of a connection: what comes is cut where frames begin, and given on in as few pieces as possible.

A frame with an edit waits until it is whole; of all others nothing is kept. Besides bytes there are pieces that say
when something goes out, and where all ends: they are for connection.py to obey.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Wait(NamedTuple):
    """What follows goes out so much later."""

    ns: int


class End(NamedTuple):
    """The connection ends here."""

    why: str


class Dead(NamedTuple):
    """From here on the client is neither heard nor answered, and its connection stays open."""


Piece = bytes | memoryview | Wait | End | Dead
Edit = Callable[[bytes], bytes | list[Piece]]


class Short(Exception):
    """More of the frame is needed before it is known what it is; args[0]: so many bytes of it."""


class Cutter:
    """begins(data, at) says of the frame at a place its length, size prefix included, and its edit, once for each
    frame; it raises Short when it needs more of it. between() gives what is put between two frames. stopped: where the
    last call left off in its data, when it was to begin only so many frames."""

    def __init__(
        self,
        begins: Callable[[bytes | bytearray, int], tuple[int, Edit | None]],
        between: Callable[[], list[Piece]] | None = None,
    ) -> None:
        self._begins, self._between = begins, between
        self.held = bytearray()  # the beginning of a frame
        self._need = 0  # bytes that held must have before it is looked at again
        self._edit: Edit | None = None  # of the frame in held, when it is known
        self._left = 0  # bytes of the current frame that pass as they come
        self.stopped = 0

    def __call__(self, data: bytes, start: int = 0, frames: int | None = None) -> list[Piece]:
        """From start on; frames: that may begin here."""
        out: list[Piece] = []
        at = since = start
        size = len(data)
        view = memoryview(data)
        while True:
            if self._between is not None and not self._left and not self.held and (put := self._between()):
                out += [view[since:at], *put]
                since = at
            if at == size:
                break
            if self._left:
                step = min(self._left, size - at)
                self._left -= step
                at += step
            elif self.held:
                since = at = at + self._fill(view[at:], out)
            else:
                if frames is not None:
                    if not frames:
                        break
                    frames -= 1
                done = self._begin(data, at)
                if done is None:  # it waits for more
                    out.append(view[since:at])
                    self.held += view[at:]
                    since = at = size
                elif done:
                    total, edit = done
                    out.append(view[since:at])
                    _put(out, edit(bytes(view[at : at + total])))
                    since = at = at + total
        self.stopped = at
        if since < at:
            out.append(view[since:at])
        return [piece for piece in out if not isinstance(piece, bytes | memoryview) or len(piece)]

    def _begin(self, data: bytes, at: int) -> tuple[int, Edit] | tuple[()] | None:
        """The frame at a place: () when it passes, None when it must be held, its length and edit when it is whole."""
        try:
            total, edit = self._begins(data, at)
        except Short as short:
            self._need = short.args[0]
            return None
        if edit is None:
            self._left = total
            return ()
        if len(data) - at < total:
            self._need, self._edit = total, edit
            return None
        return total, edit

    def _fill(self, data: memoryview, out: list[Piece]) -> int:
        """Adds to what is held; gives on what is ready, and says how many bytes of data were taken."""
        taken = min(self._need - len(self.held), len(data))
        self.held += data[:taken]
        if len(self.held) < self._need:
            return taken
        if self._edit is None:
            try:
                total, edit = self._begins(self.held, 0)
            except Short as short:
                self._need = short.args[0]
                return taken
            if edit is None:
                out.append(bytes(self.held))
                self._left = total - len(self.held)
                self.held = bytearray()
                return taken
            self._need, self._edit = total, edit
            if len(self.held) < total:
                return taken
        whole, edit = bytes(self.held), self._edit
        self.held, self._edit = bytearray(), None
        _put(out, edit(whole))
        return taken


def _put(out: list[Piece], made: bytes | list[Piece]) -> None:
    if isinstance(made, bytes):
        out.append(made)
    else:
        out += made
