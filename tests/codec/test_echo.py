"""Our own password, as a peer sends it back: withheld in every field, every form and every buffer."""

from __future__ import annotations

import base64

import pytest

import kwire
from kwire.codec.echo import Echo
from kwire.codec.secrets import Withheld
from kwire.codec.span import Span
from kwire.payloads.open import open_payloads
from kwire.records.build import build

WORD = "s3cret-wörd"
ECHO = Echo("app", WORD)
TOKEN = f"\0app\0{WORD}".encode()


@pytest.mark.parametrize(
    "back",
    [
        WORD,
        f"no user app with {WORD}!",
        base64.b64encode(WORD.encode()).decode(),
        base64.b64encode(TOKEN).decode(),
        "s3cret-w%C3%B6rd",
        WORD.encode().hex(),
        WORD.encode().hex(" "),
    ],
)
def test_whatever_form_it_comes_in(back: str) -> None:
    assert "withheld" in ECHO.text(back)
    assert back not in ECHO.text(back)
    assert ECHO.plain({"a": [back, 1, None], "b": {"c": back}}) == {
        "a": [ECHO.text(back), 1, None],
        "b": {"c": ECHO.text(back)},
    }


def test_other_words_stay() -> None:
    assert ECHO.text("login refused: no user app") == "login refused: no user app"


def test_a_short_password_counts_where_it_is_a_word() -> None:
    echo = Echo("app", "or")
    assert echo.text("orders or others") == "orders withheld others"


def test_without_a_password_nothing_is_withheld() -> None:
    span = kwire.annotate("HeartbeatResponse", 4, bytes(7))
    assert Echo("", "").text("") == ""
    assert Echo("", "").span(span, bytes(7)) is span


def leaves(span: Span) -> list[object]:
    return [part.value for part in span.below() if not part.children]


def test_every_field_that_holds_it() -> None:
    groups = [{"GroupId": name, "ProtocolType": "consumer"} for name in ("billing", f"x{WORD}x")]
    data = kwire.encode("ListGroupsResponse", 5, {"Groups": groups})
    shown = ECHO.span(kwire.annotate("ListGroupsResponse", 5, data), data)
    assert [value for value in leaves(shown) if isinstance(value, Withheld)] == [Withheld(len(WORD.encode()) + 3)]
    assert "billing" in leaves(shown)
    assert WORD not in repr(shown)


def test_what_could_not_be_read_and_what_was_compressed() -> None:
    data = kwire.encode("ListGroupsResponse", 5, {"Groups": []}) + WORD.encode()
    assert WORD.encode() not in str(leaves(ECHO.span(kwire.annotate("ListGroupsResponse", 5, data), data))).encode()
    records = build([(b"key", f"a {WORD} ".encode() * 20)], compression="gzip")
    part = {"Partitions": [{"PartitionIndex": 0, "Records": records}]}
    data = kwire.encode("FetchResponse", 12, {"Responses": [{"Topic": "orders"} | part]})
    span = open_payloads(kwire.annotate("FetchResponse", 12, data), data, "FetchResponse")
    assert WORD.encode() in b"".join(value for value in leaves(span) if isinstance(value, bytes))
    shown = ECHO.span(span, data)
    assert WORD.encode() not in b"".join(value for value in leaves(shown) if isinstance(value, bytes))
    assert b"key" in leaves(shown)
