"""Merging what two releases say of a message: layouts and names of the newer one, words and secrets of either."""

from __future__ import annotations

import pytest

from kwire.errors import SchemaError
from kwire.schema import merge, text
from kwire.schema.model import MessageSchema, Renamed, Versions


def message(versions: str, *fields: str, flexible: str = "") -> MessageSchema:
    """A message written as in the text form: each field a line, nested ones indented by two blanks more."""
    lines = "\n".join(f"  {line}" if not line.startswith("struct ") else f"\n{line}" for line in fields)
    head = f"fields {versions}" + (f" flexible {flexible}" if flexible else "")
    return text.parse(f"message Sample\n\n{head}\n{lines}\n").messages[0]


def fields_of(one: MessageSchema) -> list[str]:
    """Each field as its path, type and versions."""
    return [f"{path} {field.type} {field.versions}" for path, field in one.walk()]


NEWER = message("1-3", "Group  string  0+", "Epoch  int32  0+", "Rack  string?  3+  = null", flexible="3+")
OLDER = message("0-2", "Group  string  0+", "Epoch  int32  0+", "Old  int8  0")


def test_the_union_of_versions_and_fields() -> None:
    merged, differs = merge.merge(NEWER, OLDER, "4.0")
    assert (merged.versions, merged.flexible) == (Versions(0, 3), Versions.parse("3+"))
    assert fields_of(merged) == ["Group string 0+", "Epoch int32 0+", "Old int8 0", "Rack string 3+"]
    assert differs == ()


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_every_version_keeps_the_layout_of_the_side_it_came_from(version: int) -> None:
    merged = merge.merge(NEWER, OLDER, "4.0").message
    source = NEWER if version in NEWER.versions else OLDER
    assert merge.shape(merged, version) == merge.shape(source, version)


def test_merging_a_message_with_itself_changes_nothing() -> None:
    assert merge.merge(NEWER, NEWER, "4.0") == merge.Merged(NEWER, ())


@pytest.mark.parametrize(
    ("newer", "older", "merged"), [("", "1+", "1"), ("2+", "", "2+"), ("2+", "1+", "1+"), ("", "", "none")]
)
def test_versions_that_only_the_older_side_has_stay_flexible(newer: str, older: str, merged: str) -> None:
    field = "A  string  0+"
    both = merge.merge(message("2-3", field, flexible=newer), message("0-1", field, flexible=older), "4.0").message
    assert str(both.flexible) == merged


def test_versions_that_only_the_older_side_has_keep_their_nulls_and_tags() -> None:
    newer = message("2-3", "A  string  0+", "B  int8  0+", flexible="0+")
    older = message("0-2", "A  string?0-1  0+", "B  int8  0+  tag 4@0-1", flexible="0+")
    merged = merge.merge(newer, older, "4.0").message
    a, b = merged.fields
    assert a.nullable == Versions(0, 1)
    assert (b.tag, b.tagged) == (4, Versions(0, 1))


# ---------------------------------------------------------------- names


def test_a_renamed_field_is_recorded_with_the_release_that_renamed_it() -> None:
    newer = message("0-1", "GenerationIdOrMemberEpoch  int32  0+")
    older = message("0", "GenerationId  int32  0+")
    merged = merge.merge(newer, older, "3.6").message
    assert merged.fields[0].name == "GenerationIdOrMemberEpoch"
    assert merged.fields[0].was == (Renamed("GenerationId", "3.6"),)


def test_older_names_stay_and_a_name_that_returns_is_no_older_name() -> None:
    newer = message("0", "First  int32  0+")
    older = message("0", "Second  int32  0+  was First<3.1  was Zeroth<3.0")
    was = merge.merge(newer, older, "3.6").message.fields[0].was
    assert was == (Renamed("Zeroth", "3.0"), Renamed("Second", "3.6"))


def test_a_rename_is_recorded_once() -> None:
    newer = message("0", "New  int32  0+")
    older = message("0", "Old  int32  0+")
    once = merge.merge(newer, older, "3.6").message
    assert merge.merge(newer, once, "3.7").message == once


def test_a_rename_inside_a_struct_is_found_by_its_place() -> None:
    newer = message("0", "Parts  []Part  0+", "  New  int32  0+")
    older = message("0", "Parts  []Part  0+", "  Old  int32  0+")
    assert merge.merge(newer, older, "3.6").message.fields[0].fields[0].was == (Renamed("Old", "3.6"),)


def test_without_a_release_neither_names_nor_differences_are_recorded() -> None:
    newer = message("0", "New  int32  0+")
    merged, differs = merge.merge(newer, message("0", "Old  int64  0+"), "")
    assert (merged, differs) == (newer, ())


# ---------------------------------------------------------------- differences


@pytest.mark.parametrize(
    ("newer", "older", "sentence"),
    [
        (("A  int64  0+",), ("A  int32  0+",), "had A (int32); lacked A (int64)"),
        (("A  int8  0+",), ("A  int8  0+", "B  int8  0+"), "had B (int8)"),
        (("A  int8  0+", "B  int8  0+  tag 0"), ("A  int8  0+",), "lacked B (int8 tag 0)"),
        (("A  int8  0+", "B  int8  0+"), ("B  int8  0+", "A  int8  0+", "C  int8  0+"), "had C (int8)"),
        (("A  string?  0+",), ("A  string  0+",), "had A (string); lacked A (string?)"),
        (("P  []P  0+", "  A  int8  0+"), ("P  []P  0+", "  A  int16  0+"), "had P.A (int16); lacked P.A (int8)"),
        (("A  int8  0+", "B  int16  0+"), ("B  int16  0+", "A  int8  0+"), "had another order of fields"),
    ],
)
def test_layouts_that_differ_are_recorded(newer: tuple[str, ...], older: tuple[str, ...], sentence: str) -> None:
    merged, differs = merge.merge(message("0-1", *newer), message("0-1", *older), "3.7")
    assert differs == (f"Sample v0-1 before 3.7 {sentence}",)
    assert merge.shape(merged, 0) == merge.shape(message("0-1", *newer), 0)


@pytest.mark.parametrize(("newer", "older", "was"), [("1+", "2+", "was not flexible"), ("2+", "1+", "was flexible")])
def test_a_version_that_became_flexible_is_another_layout(newer: str, older: str, was: str) -> None:
    field = "A  string  0+"
    differs = merge.merge(message("0-2", field, flexible=newer), message("0-2", field, flexible=older), "3.7").differs
    assert differs == (f"Sample v1 before 3.7 {was}",)


# ---------------------------------------------------------------- words and marks

SPOKEN = message(
    "0",
    "Word  bytes  0+  secret",
    "  : What it is.",
    "Kind  int8  0+  topicName  error",
    "  = 1 ONE  the first",
    "Parts  []Part  0+",
    "  Index  int32  0+",
    "    : Which one.",
)
SILENT = message(
    "0-1", "Word  bytes  0+", "Kind  int8  0+", "Parts  []Part  0+", "  Index  int32  0+", "More  int8  1+"
)


@pytest.mark.parametrize("spoken_leads", [False, True])
def test_words_and_marks_stay_whichever_side_has_them(spoken_leads: bool) -> None:
    newer, older = (SPOKEN, SILENT) if spoken_leads else (SILENT, SPOKEN)
    fields = dict(merge.merge(newer, older, "4.0").message.walk())
    spoken = dict(SPOKEN.walk())
    for path in ("Word", "Kind", "Parts", "Parts.Index"):
        assert fields[path] == spoken[path]
    assert fields["More"].note == ""


def test_words_follow_a_field_that_is_renamed() -> None:
    newer = message("0", "New  bytes  0+")
    older = message("0", "Old  bytes  0+  secret", "  : What it is.")
    field = merge.merge(newer, older, "4.0").message.fields[0]
    assert (field.secret, field.note) == (True, "What it is.")


def test_the_newer_sides_words_win() -> None:
    newer = message("0", "A  bytes  0+  brokerId", "  : New words.")
    older = message("0", "A  bytes  0+  topicName", "  : Old words.")
    field = merge.merge(newer, older, "4.0").message.fields[0]
    assert (field.note, field.entity) == ("New words.", "brokerId")


# ---------------------------------------------------------------- structs


def test_a_struct_made_shared_takes_over_the_words_of_the_inline_one() -> None:
    newer = message("0-1", "Parts  []Part  0+", "More  []Part  1+", "struct Part 0+", "Index  int32  0+")
    older = message("0", "Parts  []Part  0+", "  Index  int32  0+  secret", "    : Which one.")
    field = merge.merge(newer, older, "4.0").message.structs[0].fields[0]
    assert (field.note, field.secret) == ("Which one.", True)


def test_a_shared_struct_that_only_older_versions_use_is_kept() -> None:
    newer = message("1", "A  int8  1+")
    older = message("0", "Old  Cursor  0", "struct Cursor 0", "At  int64  0")
    assert fields_of(merge.merge(newer, older, "4.0").message) == ["Old Cursor 0", "Old.At int64 0", "A int8 1+"]


def test_a_shared_struct_that_nothing_uses_any_more_goes() -> None:
    newer = message("0", "A  int8  0+")
    older = message("0", "A  int8  0+", "Old  Cursor  1", "struct Cursor 1", "At  int64  1")
    assert merge.merge(newer, older, "4.0").message.structs == ()


# ---------------------------------------------------------------- what cannot be merged


@pytest.mark.parametrize(("newer", "older"), [("1-2", "0-3"), ("3", "0-1"), ("0-1", "3-4")])
def test_versions_with_a_hole_between_them(newer: str, older: str) -> None:
    with pytest.raises(SchemaError) as caught:
        merge.merge(message(newer, "A  int8  0+"), message(older, "A  int8  0+"), "4.0")
    assert str(caught.value) == f"Sample: versions {older} and {newer} leave a hole"


def test_a_layout_that_would_change_on_the_way() -> None:
    newer = message("0", "A  int64  0+")
    older = message("0-1", "A  int32  0+")
    with pytest.raises(SchemaError) as caught:
        merge.merge(newer, older, "4.0")
    assert str(caught.value) == "Sample v1: the merged layout is not the one that was read"
