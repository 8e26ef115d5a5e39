"""Tables in text, json, csv and markdown; the words that choose rows."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence

import pytest

from kwire.cli.tables import FORMATS, Row, chosen, print_table
from kwire.errors import Exit

ROWS: list[Row] = [
    {"code": 1, "name": "A_FIRST", "retriable": True, "in short": "Do a | b, then c.", "cause": None},
    {"code": 27, "name": "SECOND", "retriable": False, "in short": "Short.", "cause": 'a "hidden" word'},
]
COLUMNS = ("code", "name", "retriable", "in short")


def _printed(form: str, rows: Sequence[Row], capsys: pytest.CaptureFixture[str]) -> tuple[Exit, str, str]:
    status = print_table(rows, COLUMNS, form, {"code": "dim"}, ("code",))
    return status, *capsys.readouterr()


def test_text_is_aligned(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert _printed("text", ROWS, capsys) == (
        Exit.OK,
        "code  name     retriable  in short\n"
        "   1  A_FIRST  yes        Do a | b, then c.\n"
        "  27  SECOND   no         Short.\n",
        "",
    )


def test_json_holds_all_that_a_row_has(capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(_printed("json", ROWS, capsys)[1]) == ROWS


def test_csv_holds_all_that_a_row_has(capsys: pytest.CaptureFixture[str]) -> None:
    _, text, _ = _printed("csv", ROWS, capsys)
    assert "\r" not in text
    assert list(csv.reader(io.StringIO(text))) == [
        ["code", "name", "retriable", "in short", "cause"],
        ["1", "A_FIRST", "yes", "Do a | b, then c.", ""],
        ["27", "SECOND", "no", "Short.", 'a "hidden" word'],
    ]


def test_markdown_shows_the_columns_and_escapes_bars(capsys: pytest.CaptureFixture[str]) -> None:
    assert _printed("markdown", ROWS, capsys)[1] == (
        "| code | name | retriable | in short |\n"
        "| ---: | --- | --- | --- |\n"
        "| 1 | A_FIRST | yes | Do a \\| b, then c. |\n"
        "| 27 | SECOND | no | Short. |\n"
    )


@pytest.mark.parametrize(
    ("form", "out"),
    [
        ("text", ""),
        ("json", "[]\n"),
        ("csv", "code,name,retriable,in short\n"),
        ("markdown", "| code | name | retriable | in short |\n| ---: | --- | --- | --- |\n"),
    ],
)
def test_no_row_leaves_the_head(form: str, out: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _printed(form, [], capsys) == (Exit.MALFORMED, out, "")


@pytest.mark.parametrize(
    ("words", "codes"),
    [
        ([], [1, 27]),
        (["first"], [1]),
        (["27"], [27]),
        (["7"], []),
        (["a | b"], [1]),
        (["SECOND", "no"], [27]),
        (["first", "second"], []),
        (["hidden"], [27]),
        (["yes", "hidden"], []),
    ],
)
def test_words_choose_among_what_is_shown_then_among_all(words: list[str], codes: list[int]) -> None:
    assert [row["code"] for row in chosen(ROWS, words, COLUMNS)] == codes


def test_the_forms() -> None:
    assert FORMATS == ("text", "json", "csv", "markdown")


def test_a_number_is_a_key_before_it_is_anything_else() -> None:
    rows: list[Row] = [{"key": 11, "since": "0.9.0"}, {"key": 21, "since": "0.11.0"}, {"key": 3, "since": "v 7"}]
    assert chosen(rows, ["11"], ["key", "since"]) == rows[:1]
    assert chosen(rows, ["21", "3"], ["key", "since"]) == rows[1:]
    assert chosen(rows, ["7"], ["key", "since"]) == rows[2:]
    assert chosen(rows, ["0.11"], ["key", "since"]) == rows[1:2]


def test_words_that_no_row_holds_are_said_with_the_nearest_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert chosen(ROWS, ["secnd"], COLUMNS) == []
    assert chosen(ROWS, ["nothing", "else"], COLUMNS) == []
    said = "kwire: no row holds secnd; did you mean SECOND?\nkwire: no row holds nothing and else\n"
    assert capsys.readouterr().err == said
