"""The plan: what a field is at a version, what it takes, what it is when it is not given."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from kwire.codec.plan import Plan, Slot, compile_plan
from kwire.errors import UnknownName
from kwire.schema.model import NONE, OPEN, Field, MessageSchema, Struct, Versions
from kwire.schema.registry import builtin

ALL = Versions(0, OPEN)


def message(
    *fields: Field, versions: str = "0-5", flexible: str = "2+", structs: tuple[Struct, ...] = ()
) -> MessageSchema:
    return MessageSchema("Sample", "data", Versions.parse(versions), Versions.parse(flexible), fields, structs)


def slot_of(field: Field, version: int = 0, structs: tuple[Struct, ...] = ()) -> Slot:
    """The field's slot: at version 0 classic, from 2 on compact."""
    root = compile_plan(message(field, structs=structs), version).root
    return [*root.slots, *root.tagged.values()][0]


def names(plan: Plan) -> list[str]:
    return [slot.name for slot in plan.root.slots]


X = Field("X", "int8", ALL)
PAIR = (X, Field("Y", "string", ALL))


# ---------------------------------------------------------------- what a version has


def test_fields_of_other_versions_are_gone_and_the_order_is_kept() -> None:
    versions = {"D": "0+", "C": "1-2", "B": "3+", "A": "0-3"}
    fields = [Field(name, "int8", Versions.parse(text)) for name, text in versions.items()]
    found = {version: "".join(names(compile_plan(message(*fields), version))) for version in range(5)}
    assert found == {0: "DA", 1: "DCA", 2: "DCA", 3: "DBA", 4: "DB"}


def test_a_field_becomes_tagged_and_nullable_by_version() -> None:
    field = Field("A", "string", Versions(0, 3), nullable=Versions(1, 4), tagged=Versions(3, 4), tag=7)
    roots = {version: compile_plan(message(field), version).root for version in range(6)}
    assert {v: root.slots[0].nullable for v, root in roots.items() if root.slots} == {0: False, 1: True, 2: True}
    # tagged is enough: some official definitions give no versions beside it
    tagged = {v: root.tagged[7] for v, root in roots.items() if root.tagged}
    assert {v: (slot.tag, slot.nullable) for v, slot in tagged.items()} == {3: (7, True), 4: (7, True)}


def test_tagged_fields_stand_by_tag_in_ascending_order() -> None:
    tags = {"A": 9, "B": 0, "C": 300}
    root = compile_plan(message(*(Field(n, "int8", ALL, tagged=ALL, tag=t) for n, t in tags.items())), 2).root
    assert [(tag, slot.name) for tag, slot in root.tagged.items()] == [(0, "B"), (9, "A"), (300, "C")]
    assert root.slots == ()


def test_only_flexible_versions_are_compact_and_end_in_a_tag_section() -> None:
    kept = Field("B", "string", ALL, inflexible=True)
    made = message(Field("A", "string", ALL), kept, Field("C", "Inner", ALL, fields=PAIR))
    plans = [compile_plan(made, version) for version in (1, 2)]
    assert [plan.flexible for plan in plans] == [False, True]
    assert [[slot.compact for slot in plan.root.slots] for plan in plans] == [[False] * 3, [True, False, True]]
    assert [plan.root.slots[2].struct.flexible for plan in plans if plan.root.slots[2].struct] == [False, True]


@pytest.mark.parametrize("kind", ["Inner", "[]Inner", "Shared", "[]Shared"])
def test_a_struct_has_the_fields_of_its_version(kind: str) -> None:
    inner = (X, Field("Z", "int8", Versions(3, OPEN)))
    shared = Struct("Shared", ALL, inner)
    field = Field("A", kind, ALL, fields=inner if kind.endswith("Inner") else ())
    for version, expected in ((2, ["X"]), (3, ["X", "Z"])):
        slot = slot_of(field, version, (shared,))
        assert slot.struct
        assert (slot.type, slot.array, slot.struct.name) == ("struct", kind.startswith("[]"), field.element)
        assert [inner.name for inner in slot.struct.slots] == expected


@pytest.mark.parametrize(("version", "known"), [(-1, "0-5"), (6, "0-5"), (3, "4+"), (1, "0"), (0, "none")])
def test_a_version_that_the_message_lacks_is_unknown(version: int, known: str) -> None:
    with pytest.raises(UnknownName) as caught:
        compile_plan(message(versions=known), version)
    assert str(caught.value) == f"no version {version} of Sample (it has {known})"


def test_title_and_name() -> None:
    plan = compile_plan(message(), 3)
    assert (plan.title, plan.root.name, plan.version) == ("Sample v3", "Sample", 3)


def test_every_version_of_every_message_compiles() -> None:
    known = [message for definition in (*builtin().apis(), *builtin().data()) for message in definition.messages]
    plans = [compile_plan(message, version) for message in known for version in message.versions.each()]
    assert sum(plan.message.kind in ("request", "response") for plan in plans) == 2 * 368
    assert len(plans) >= 2 * 368 + 138
    assert all(plan.flexible == (plan.version in plan.message.flexible) for plan in plans)


# ---------------------------------------------------------------- what a field takes


@pytest.mark.parametrize(
    ("kind", "size", "label"),
    [
        ("bool", 1, "bool"),
        ("int8", 1, "int8"),
        ("int16", 2, "int16"),
        ("uint16", 2, "uint16"),
        ("int32", 4, "int32"),
        ("uint32", 4, "uint32"),
        ("int64", 8, "int64"),
        ("float64", 8, "float64"),
        ("uuid", 16, "uuid"),
    ],
)
def test_fixed_types(kind: str, size: int, label: str) -> None:
    for version in (0, 2):
        slot, array = slot_of(Field("A", kind, ALL), version), slot_of(Field("A", f"[]{kind}", ALL), version)
        assert (slot.size, slot.minimum, slot.label, slot.length_byte) == (size, size, label, False)
        assert (array.size, array.element_minimum, array.label) == (None, size, f"[]{label}")
        assert array.length_byte is (version == 2)


# type, nullable, version 0: label, minimum; version 2: label, minimum, whether a compact length begins it
VARIABLE = [
    ("string", False, "string", 2, "string (compact)", 1, True),
    ("string", True, "string?", 2, "string? (compact)", 1, True),
    ("bytes", False, "bytes", 4, "bytes (compact)", 1, True),
    ("bytes", True, "bytes?", 4, "bytes? (compact)", 1, True),
    ("records", False, "records", 4, "records (compact)", 1, True),
    ("records", True, "records?", 4, "records? (compact)", 1, True),
    ("[]int32", False, "[]int32", 4, "[]int32", 1, True),
    ("[]string", True, "[]string?", 4, "[]string?", 1, True),
    ("Inner", False, "struct", 3, "struct", 3, False),
    ("Inner", True, "struct?", 1, "struct?", 1, False),
    ("[]Inner", False, "array", 4, "array", 1, True),
    ("[]Inner", True, "array?", 4, "array?", 1, True),
]


@pytest.mark.parametrize(
    ("kind", "nullable", "label", "minimum", "compact_label", "compact_minimum", "length"), VARIABLE
)
def test_variable_types(
    kind: str, nullable: bool, label: str, minimum: int, compact_label: str, compact_minimum: int, length: bool
) -> None:
    field = Field("A", kind, ALL, nullable=ALL if nullable else NONE, fields=PAIR if kind.endswith("Inner") else ())
    classic, compact = slot_of(field, 0), slot_of(field, 2)
    assert (classic.label, classic.minimum, classic.size, classic.length_byte) == (label, minimum, None, False)
    assert (compact.label, compact.minimum, compact.size) == (compact_label, compact_minimum, None)
    assert compact.length_byte is length


@pytest.mark.parametrize(
    ("kind", "classic", "compact"),
    [("string", 2, 1), ("bytes", 4, 1), ("records", 4, 1), ("int16", 2, 2), ("Inner", 3, 3)],
)
def test_the_least_size_of_an_element(kind: str, classic: int, compact: int) -> None:
    field = Field("A", f"[]{kind}", ALL, fields=PAIR if kind == "Inner" else ())
    assert (slot_of(field, 0).element_minimum, slot_of(field, 2).element_minimum) == (classic, compact)


def test_the_least_size_of_a_struct_counts_its_tag_section_and_no_tagged_field() -> None:
    fields = (X, Field("A", "[]Inner", ALL, fields=PAIR), Field("T", "int64", ALL, tagged=Versions(2, OPEN), tag=0))
    assert [compile_plan(message(*fields), version).root.minimum for version in (0, 2)] == [1 + 4 + 8, 1 + 1 + 1]
    assert [compile_plan(message(), version).root.minimum for version in (0, 2)] == [0, 1]


# ---------------------------------------------------------------- what a field is when it is not given


@pytest.mark.parametrize(
    ("kind", "nullable", "text", "value"),
    [
        ("bool", False, None, False),
        ("bool", False, "true", True),
        ("bool", False, "false", False),
        ("int8", False, None, 0),
        ("int32", False, "-1", -1),
        ("int32", False, "0x7fffffff", 2147483647),
        ("int64", False, "9223372036854775807", 9223372036854775807),
        ("float64", False, None, 0.0),
        ("float64", False, "1.5", 1.5),
        ("uuid", False, None, UUID(int=0)),
        ("uuid", False, "AAAAAAAAAAAAAAAAAAAAAQ", UUID(int=1)),
        ("string", False, None, ""),
        ("string", False, "consumer", "consumer"),
        ("string", True, None, ""),
        ("string", True, "null", None),
        ("bytes", False, None, b""),
        ("bytes", True, None, b""),
        ("bytes", True, "null", None),
        ("records", False, None, b""),
        ("records", True, None, None),  # as the official generator has it
        ("[]int32", False, None, []),
        ("[]int32", True, None, []),
        ("[]int32", True, "null", None),
        ("Inner", False, None, {"X": 0, "Y": ""}),
        ("Inner", True, None, {"X": 0, "Y": ""}),
        ("Inner", True, "null", None),
        ("[]Inner", False, None, []),
    ],
)
def test_defaults(kind: str, nullable: bool, text: str | None, value: Any) -> None:
    inner = PAIR if kind.endswith("Inner") else ()
    slot = slot_of(Field("A", kind, ALL, nullable=ALL if nullable else NONE, default=text, fields=inner))
    assert slot.default() == value
    assert type(slot.default()) is type(value)


@pytest.mark.parametrize("kind", ["[]int32", "Inner"])
def test_a_default_is_made_anew_each_time(kind: str) -> None:
    slot = slot_of(Field("A", kind, ALL, fields=(X,) if kind == "Inner" else ()))
    assert slot.default() is not slot.default()


def test_a_structs_default_has_no_tagged_fields() -> None:
    inner = (X, Field("T", "int8", ALL, tagged=ALL, tag=0))
    assert slot_of(Field("A", "Inner", ALL, fields=inner), 2).default() == {"X": 0}
