"""What guessing may cost grows with the bytes looked at, up to a bound."""

from __future__ import annotations

from kwire.session.allowance import Allowance


def test_an_allowance_grows_with_the_bytes_and_is_bounded() -> None:
    allowance = Allowance(100, 3, 500)
    assert allowance.for_bytes(10) == 130
    allowance.spend(10, 90)
    assert (allowance.for_bytes(0), allowance.for_bytes(20)) == (40, 100)
    allowance.spend(20, 150)
    assert allowance.for_bytes(0) < 1
    assert allowance.for_bytes(1000) == 500 - 240
