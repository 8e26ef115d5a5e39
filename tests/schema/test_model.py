"""Versions, releases, names in snake case, and walking a message's fields."""

from __future__ import annotations

import pytest

from kwire.schema.model import (
    NONE,
    OPEN,
    Definition,
    Field,
    MessageSchema,
    Release,
    Struct,
    Versions,
    release_order,
    snake,
)

INNER = Field("Index", "int32", Versions(0, OPEN))
SHARED = Struct("Cursor", Versions(0, OPEN), (Field("Topic", "string", Versions(0, OPEN)),))
TREE = MessageSchema(
    "TreeRequest",
    "request",
    Versions(0, 2),
    NONE,
    (
        Field("Name", "string", Versions(0, OPEN)),
        Field("Parts", "[]Part", Versions(0, OPEN), fields=(INNER,)),
        Field("Next", "Cursor", Versions(1, OPEN)),
        Field("Lost", "Nowhere", Versions(1, OPEN)),
    ),
    (SHARED,),
)


@pytest.mark.parametrize(
    ("text", "versions"),
    [
        ("3", Versions(3, 3)),
        ("2-5", Versions(2, 5)),
        ("4+", Versions(4, OPEN)),
        ("0+", Versions(0, OPEN)),
        ("none", NONE),
    ],
)
def test_versions_are_read_and_written_alike(text: str, versions: Versions) -> None:
    assert Versions.parse(text) == versions
    assert str(versions) == text


@pytest.mark.parametrize("text", ["", None])
def test_no_text_means_no_versions(text: str | None) -> None:
    assert Versions.parse(text) == NONE


@pytest.mark.parametrize("text", ["x", "+", "1-x", "v3", "1..2", "-"])
def test_anything_else_is_no_range(text: str) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        Versions.parse(text)


@pytest.mark.parametrize(
    ("version", "inside"), [(1, False), (2, True), (5, True), (6, False), ("3", False), (None, False), (2.5, False)]
)
def test_a_range_holds_whole_numbers_between_its_ends(version: object, inside: bool) -> None:
    assert (version in Versions(2, 5)) is inside


def test_none_is_empty_and_false() -> None:
    assert not NONE
    assert list(NONE.each()) == []
    assert 0 not in NONE
    assert str(Versions(3, 2)) == "none"


@pytest.mark.parametrize(
    ("one", "two", "both", "either"),
    [
        ("0-5", "3+", "3-5", "0+"),
        ("0-2", "4-5", "none", "0-5"),
        ("none", "1-2", "none", "1-2"),
        ("2", "2", "2", "2"),
    ],
)
def test_ranges_meet_and_join(one: str, two: str, both: str, either: str) -> None:
    first, second = Versions.parse(one), Versions.parse(two)
    assert first.within(second) == second.within(first) == Versions.parse(both)
    assert first.join(second) == second.join(first) == Versions.parse(either)


def test_what_two_ranges_do_not_share_is_the_one_empty_range() -> None:
    assert Versions(0, 2).within(Versions(7, 9)) == NONE


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("OffsetForLeaderEpoch", "offset_for_leader_epoch"),
        ("Fetch", "fetch"),
        ("KRaftVersionRecord", "k_raft_version_record"),
        ("LeaderAndIsr", "leader_and_isr"),
        ("V3AndBelowTopics", "v3_and_below_topics"),
        ("ACLRecord", "acl_record"),
        ("Enable2Pc", "enable2_pc"),
    ],
)
def test_names_in_snake_case(name: str, expected: str) -> None:
    assert snake(name) == expected


def test_releases_are_ordered_by_number_not_by_letter() -> None:
    releases = ["2.10", "2.9", "4.0", "3.9", "10.0"]
    assert sorted(releases, key=release_order) == ["2.9", "2.10", "3.9", "4.0", "10.0"]
    assert Release("2.10", NONE, -1).order == (2, 10)


@pytest.mark.parametrize(
    ("kind", "element", "is_array", "is_struct"),
    [
        ("int32", "int32", False, False),
        ("[]string", "string", True, False),
        ("Cursor", "Cursor", False, True),
        ("[]Cursor", "Cursor", True, True),
        ("uint16", "uint16", False, False),
        ("records", "records", False, False),
    ],
)
def test_a_fields_type(kind: str, element: str, is_array: bool, is_struct: bool) -> None:
    field = Field("X", kind, Versions(0, 0))
    assert (field.element, field.is_array, field.is_struct) == (element, is_array, is_struct)


def test_walking_names_every_field_with_its_path_parents_first() -> None:
    assert [path for path, _ in TREE.walk()] == ["Name", "Parts", "Parts.Index", "Next", "Next.Topic", "Lost"]


def test_inner_fields_come_from_the_field_itself_or_from_a_shared_struct() -> None:
    _, parts, following, lost = TREE.fields
    assert TREE.fields_of(parts) == (INNER,)
    assert TREE.fields_of(following) == SHARED.fields
    assert TREE.fields_of(lost) == ()


@pytest.mark.parametrize(("kind", "is_api"), [("request", True), ("data", False), ("header", False)])
def test_a_definition_is_an_api_when_it_begins_with_a_request(kind: str, is_api: bool) -> None:
    message = MessageSchema("X", kind, Versions(0, 0), NONE, ())
    assert Definition("X", None, (message,)).is_api is is_api
