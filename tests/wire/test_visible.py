"""Text that is safe to show, and cells that no spreadsheet takes for formulas."""

from __future__ import annotations

import pytest

from kwire.wire.visible import cell, clean


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("größe", "größe"),
        ("a\n\r\tb\x1b[31m", "a\\n\\r\\tb\\x1b[31m"),
        ("\u202eabc\U000e0001", "\\u202eabc\\U000e0001"),
        (b"\xff".decode("utf-8", "surrogateescape"), "\\xff"),
    ],
)
def test_what_is_not_printable_is_spelled(text: str, shown: str) -> None:
    assert clean(text) == cell(text) == shown


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "＝1", "＋1", "－1", "＠x"])
def test_a_formula_is_text(text: str) -> None:
    assert cell(text) == f"'{text}"
    assert cell(f"a{text}") == f"a{text}"


@pytest.mark.parametrize(("text", "shown"), [("\t=1", "\\t=1"), ("\r=1", "\\r=1"), ("=\n", "'=\\n"), ("", "")])
def test_one_behind_a_control_character_too(text: str, shown: str) -> None:
    assert cell(text) == shown
