"""Error codes: equal to the official ones, found by number and by any name, each with words that fit their place."""

from __future__ import annotations

from pathlib import Path

import pytest
from vectors import jsonl

from kwire.errors import SchemaError, UnknownName
from kwire.schema.errorcodes import ErrorCode, ErrorCodes, errors, parse


def official() -> list[dict[str, object]]:
    """The newest release's codes."""
    rows = jsonl("vectors/errors")
    newest = max(row["jar"] for row in rows)
    return [row for row in rows if row["jar"] == newest]


def test_numbers_names_and_retries_are_the_official_ones() -> None:
    assert [(error.code, error.name, error.retriable) for error in errors] == [
        (row["code"], row["name"], row["retriable"]) for row in official()
    ]


def test_an_older_jar_says_nothing_else() -> None:
    rows = jsonl("vectors/errors")
    assert len({row["jar"] for row in rows}) == 2
    for row in rows:
        assert (errors[row["code"]].name, errors[row["name"]].code) == (row["name"], row["code"])


def test_there_is_no_gap() -> None:
    assert [error.code for error in errors] == list(range(-1, 137))
    assert len(errors) == 138


@pytest.mark.parametrize("error", errors, ids=lambda error: error.name)
def test_every_code_has_its_words(error: ErrorCode) -> None:
    assert 0 < len(error.short) <= 95
    assert error.short.endswith(".")
    for words in (error.means, error.cause, error.cure):
        assert words.endswith(".")
        assert "  " not in words


def test_no_two_codes_share_a_name_or_a_sentence() -> None:
    names = [name for error in errors for name in (error.name, *error.was)]
    shorts = [error.short for error in errors]
    assert len(set(names)) == len(names)
    assert len(set(shorts)) == len(shorts)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("REBALANCE_IN_PROGRESS", 27),
        ("rebalance_in_progress", 27),
        ("Rebalance-In Progress", 27),
        (" NONE ", 0),
        ("UNKNOWN", -1),
        ("GROUP_COORDINATOR_NOT_AVAILABLE", 15),
        ("CONSUMER_COORDINATOR_NOT_AVAILABLE", 15),
        ("NOT_COORDINATOR_FOR_GROUP", 16),
        ("NOT_COORDINATOR_FOR_CONSUMER", 16),
        ("GROUP_LOAD_IN_PROGRESS", 14),
        ("OFFSETS_LOAD_IN_PROGRESS", 14),
        ("NOT_LEADER_FOR_PARTITION", 6),
        ("INVALID_TOPIC", 17),
    ],
)
def test_names_in_any_spelling_old_ones_included(name: str, code: int) -> None:
    assert errors[name].code == code
    assert name in errors


@pytest.mark.parametrize("code", [-2, 137, 32767])
def test_an_unknown_number(code: int) -> None:
    assert errors.get(code) is None
    assert code not in errors
    assert errors.label(code) == f"{code} (no error code that kwire knows)"
    with pytest.raises(UnknownName) as caught:
        errors[code]
    assert str(caught.value) == f"no error code {code}"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("ILEGAL_GENERATION", "no error ILEGAL_GENERATION; did you mean ILLEGAL_GENERATION?"),
        ("xyzzy", "no error xyzzy"),
    ],
)
def test_an_unknown_name_and_the_nearest(name: str, sentence: str) -> None:
    assert errors.get(name) is None
    with pytest.raises(UnknownName) as caught:
        errors[name]
    assert str(caught.value) == sentence


@pytest.mark.parametrize("key", [None, 2.5, b"NONE"])
def test_other_keys_are_not_in_the_table(key: object) -> None:
    assert key not in errors


@pytest.mark.parametrize(
    ("code", "label"), [(0, "0 NONE"), (27, "27 REBALANCE_IN_PROGRESS"), (-1, "-1 UNKNOWN_SERVER_ERROR")]
)
def test_a_label_is_number_and_name(code: int, label: str) -> None:
    assert errors.label(code) == label


PAGE = """\
# a comment
error 5 SAMPLE
  retriable  yes
  was    OLD OLDER
  short  One line.
  means  More
         lines.

  cause  Something.

error -1 OTHER
  short  Another.
"""


def test_the_files_form() -> None:
    assert list(parse(PAGE)) == [
        ErrorCode(5, "SAMPLE", True, ("OLD", "OLDER"), "One line.", "More lines.", "Something.", ""),
        ErrorCode(-1, "OTHER", False, (), "Another.", "", "", ""),
    ]


def test_a_table_from_a_file_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "errors.txt"
    path.write_text(PAGE, "utf-8")
    table = ErrorCodes(path)
    assert (len(table), table["older"].code, table[-1].name) == (2, 5, "OTHER")


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("error 1 A\n  shrot  x\n", "errors.txt:2: no line is called shrot"),
        ("nothing\n", "errors.txt:1: no line is called nothing"),
        ("error one A\n", "errors.txt:1: not an error: error one A"),
        ("error 1\n", "errors.txt:1: not an error: error 1"),
        ("error 1 A\n      deeper\n", "errors.txt:2: goes on with a line, but there is none"),
        ("  short  x\n", "errors.txt:1: short belongs to no error"),
    ],
)
def test_an_error_in_the_file_names_its_line(page: str, message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        list(parse(page))
    assert str(caught.value) == message
