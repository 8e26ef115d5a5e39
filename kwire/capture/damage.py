"""Notes on damage in a capture: the first ones as text, the rest only counted, so that memory stays bounded. Also the
stretches in which readers look for the next intact place."""

from __future__ import annotations

from collections.abc import Iterator

from kwire.counted import counted

MOST_NOTES = 1000  # kept as text
STRETCH = 1 << 8, 1 << 16  # bytes searched at a time: few at first, since the next good place is usually near


class Damage:
    """say() adds a note with numbers in it, skip() one about skipped bytes; notes gives them as text. A compressed file
    may hold millions of faults."""

    def __init__(self) -> None:
        self._said: list[str] = []
        self._unsaid = 0
        self._skipped = 0  # bytes skipped, in the notes that are only counted

    def __bool__(self) -> bool:
        return bool(self._said)

    def say(self, note: str, *numbers: int) -> None:
        """note: as format() takes it."""
        if len(self._said) < MOST_NOTES:
            self._said.append(note.format(*numbers))
        else:
            self._unsaid += 1

    def skip(self, pos: int, length: int) -> None:
        """length bytes from pos on make no sense."""
        if len(self._said) < MOST_NOTES:
            self._said.append(f"damaged at byte {pos:,}: {counted(length, 'byte')} skipped")
        else:
            self._unsaid += 1
            self._skipped += length

    @property
    def notes(self) -> list[str]:
        """In the order in which they were found."""
        if not self._unsaid:
            return list(self._said)
        skipped = f", {counted(self._skipped, 'byte')} skipped there" if self._skipped else ""
        return [*self._said, f"{counted(self._unsaid, 'more place')} damaged{skipped}"]


def stretches_of(pos: int, end: int) -> Iterator[tuple[int, int]]:
    """The bytes from pos to end in growing stretches, so that a search costs in proportion to how far it goes."""
    size, most = STRETCH
    while pos < end:
        yield pos, min(pos + size, end)
        pos, size = pos + size, min(2 * size, most)
