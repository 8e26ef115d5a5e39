"""Where tests let the fast path lead to."""

from __future__ import annotations

from kwire.session.bulk import Batch


class Kept:
    """A sink that keeps batches."""

    scans = True

    def __init__(self) -> None:
        self.batches: list[Batch] = []

    def accepts(self, _: object) -> bool:
        return True

    def batch(self, batch: Batch) -> tuple[()]:
        self.batches.append(batch)
        return ()
