"""The broker's error codes are those of the reference."""

from __future__ import annotations

from kwire.broker.codes import Code, Refused
from kwire.schema.errorcodes import errors


def test_names_and_numbers_are_kafkas() -> None:
    assert {code.name: code.value for code in Code} == {code.name: errors[code.name].code for code in Code}


def test_a_refusal_says_what_and_why() -> None:
    refused = Refused(Code.INVALID_CONFIG, "no such thing")
    assert (refused.code, refused.why, str(refused)) == (40, "no such thing", "no such thing")
