"""A refusal holds the code for the wire and the words for people."""

from __future__ import annotations

from kwire.broker.refused import Refused
from kwire.schema import codes


def test_a_refusal_says_what_and_why() -> None:
    refused = Refused(codes.INVALID_CONFIG, "no such thing")
    assert (refused.code, refused.why, str(refused)) == (40, "no such thing", "no such thing")
