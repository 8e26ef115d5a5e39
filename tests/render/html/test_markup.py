"""Markup: text is inert in every place that it can be put into."""

from __future__ import annotations

import pytest

from kwire.render.html.markup import Markup, element, joined, markup

HOSTILE = "<script>alert(1)</script>\"'&\x1b[31m\u202eevil\udcff"
INERT = "&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#x27;&amp;\\x1b[31m\\u202eevil\\xff"


def test_text_is_escaped_and_its_controls_are_spelled() -> None:
    assert markup(HOSTILE) == INERT
    assert element("b", HOSTILE) == f"<b>{INERT}</b>"
    assert element("b", "x", title=HOSTILE) == f'<b title="{INERT}">x</b>'
    assert joined(["a", HOSTILE], Markup("<br>")) == f"a<br>{INERT}"


def test_markup_stays_as_it_is() -> None:
    made = element("b", element("i", 1), Markup("<br>"), None)
    assert made == "<b><i>1</i><br></b>"
    assert isinstance(made, Markup)
    assert isinstance(joined([made, made]), Markup)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"class_": "a", "for_": "b"}, '<p class="a" for="b"></p>'),
        ({"data_sort": 3, "aria_label": "x y"}, '<p data-sort="3" aria-label="x y"></p>'),
        ({"open": True, "hidden": False, "id": None}, "<p open></p>"),
    ],
)
def test_attributes(given: dict[str, str | int | bool | None], expected: str) -> None:
    assert element("p", **given) == expected


def test_elements_without_an_end() -> None:
    assert element("meta", charset="utf-8") == '<meta charset="utf-8">'
