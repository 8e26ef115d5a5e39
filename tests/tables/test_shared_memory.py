"""What one process writes into a slot others see, whatever its size."""

from __future__ import annotations

import os

import pytest

from kwire.tables import shared_memory
from kwire.tables.shared_memory import MemorySlot


@pytest.mark.parametrize(
    ("pieces", "places"),
    [
        ([], []),
        ([b""], [(0, 0)]),
        ([b"abc"], [(0, 3)]),
        ([b"abc", b"", b"x" * 64, b"y" * 65, b"z"], [(0, 3), (64, 64), (64, 128), (128, 193), (256, 257)]),
    ],
    ids=["nothing", "empty", "one", "several"],
)
def test_pieces_lie_where_write_says(pieces: list[bytes], places: list[tuple[int, int]]) -> None:
    slot = MemorySlot()
    assert slot.write(pieces) == places
    assert [bytes(slot.look(place)) for place in places] == pieces


def test_a_slot_grows_and_is_written_again() -> None:
    slot = MemorySlot()
    for size in (10, 100_000, 7, 3_000_000):
        data = os.urandom(size)
        (place,) = slot.write([data])
        assert bytes(slot.look(place)) == data


def test_more_pieces_than_one_call_takes() -> None:
    slot, pieces = MemorySlot(), [bytes([number % 256]) * (number % 70) for number in range(3 * shared_memory.AT_ONCE)]
    assert [bytes(slot.look(place)) for place in slot.write(pieces)] == pieces


def test_what_one_call_does_not_take_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    def some(file: int, pieces: list[bytes], at: int) -> int:
        return os.pwrite(file, b"".join(pieces)[:5], at)

    monkeypatch.setattr(os, "pwritev", some)
    slot, pieces = MemorySlot(), [b"abcdefgh" * 20, b"tail"]
    assert [bytes(slot.look(place)) for place in slot.write(pieces)] == pieces


def test_another_process_sees_it() -> None:
    slot = MemorySlot()
    read, write = os.pipe()
    child = os.fork()
    if not child:
        slot.write([b"from the child"])
        os.write(write, b"x")
        os._exit(0)
    os.read(read, 1)
    os.waitpid(child, 0)
    assert bytes(slot.look((0, 14))) == b"from the child"
