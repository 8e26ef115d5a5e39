"""Notes of damage are bounded, and a search for the next good place costs in proportion to how far it goes."""

from __future__ import annotations

import pytest

from kwire.capture.damage import MOST_NOTES, STRETCH, Damage, stretches_of


def test_notes_are_kept_in_words_up_to_a_bound_and_counted_beyond() -> None:
    damage = Damage()
    assert (bool(damage), damage.notes) == (False, [])
    damage.say("cut")
    damage.skip(1000, 2345)
    assert (bool(damage), damage.notes) == (True, ["cut", "damaged at byte 1,000: 2,345 bytes skipped"])
    for number in range(MOST_NOTES):
        damage.skip(number, 1000)
    assert len(damage.notes) == MOST_NOTES + 1
    assert damage.notes[-1] == "2 more places damaged, 2,000 bytes skipped there"


def test_what_skips_nothing_is_counted_without_bytes() -> None:
    damage = Damage()
    for _ in range(MOST_NOTES + 1200):
        damage.say("the block is too short")
    assert damage.notes[-1] == "1,200 more places damaged"


@pytest.mark.parametrize("length", [0, 1, STRETCH[0], STRETCH[0] + 1, 5 * STRETCH[1] + 3])
def test_stretches_cover_all_and_grow(length: int) -> None:
    found = list(stretches_of(7, 7 + length))
    assert [low for low, _ in found] == [7, *(high for _, high in found[:-1])][: len(found)]
    assert (found[-1][1] if found else 7) == 7 + length
    sizes = [high - low for low, high in found]
    assert all(size <= max(2 * sum(sizes[:at]), STRETCH[0]) for at, size in enumerate(sizes))
    assert max(sizes, default=0) <= STRETCH[1]
