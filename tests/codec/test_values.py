"""The values codec on small made-up messages: every type in every form, what is missing, unknown or damaged.

A table gives each type a value and its bytes, classic and compact; arrays, tagged fields and nulls follow from it.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from kwire.codec.code import SHORT
from kwire.codec.plan import compile_plan
from kwire.codec.values import Codec
from kwire.errors import DecodeError
from kwire.schema.model import NONE, Field, MessageSchema, Struct, Versions
from kwire.wire.varint import write_uvarint

ONE = Versions(0, 0)


def field(
    name: str, kind: str, *inner: Field, nullable: bool = False, tag: int | None = None, default: str | None = None
) -> Field:
    null, tagged = ONE if nullable else NONE, NONE if tag is None else ONE
    return Field(name, kind, ONE, nullable=null, tagged=tagged, tag=tag, default=default, fields=inner)


def codec(*fields: Field, flexible: bool = True, structs: tuple[Struct, ...] = ()) -> Codec:
    return Codec(compile_plan(MessageSchema("Sample", "data", ONE, ONE if flexible else NONE, fields, structs), 0))


def check(made: Codec, message: dict[str, Any], data: str) -> None:
    """The message and its bytes, in hex, in both directions."""
    assert made.encode(message).hex() == data
    assert made.decode(bytes.fromhex(data)) == message


def failure(made: Codec, data: str) -> tuple[str, int, str]:
    """Path, offset and reason of the error."""
    with pytest.raises(DecodeError) as caught:
        made.decode(bytes.fromhex(data))
    error = caught.value
    assert str(error) == f"Sample v0: {error.path}: {error.reason}"
    return error.path, error.offset, error.reason


SOME = UUID("00112233-4455-6677-8899-aabbccddeeff")

# type, value, bytes classic, bytes compact (None: the same)
TYPES = [
    ("bool", True, "01", None),
    ("bool", False, "00", None),
    ("int8", -2, "fe", None),
    ("int16", -2, "fffe", None),
    ("uint16", 65534, "fffe", None),
    ("int32", -2, "fffffffe", None),
    ("uint32", 4294967294, "fffffffe", None),
    ("int64", -2, "fffffffffffffffe", None),
    ("float64", -1.5, "bff8000000000000", None),
    ("uuid", SOME, "00112233445566778899aabbccddeeff", None),
    ("string", "", "0000", "01"),
    ("string", "né", "00036ec3a9", "046ec3a9"),
    ("bytes", b"", "00000000", "01"),
    ("bytes", b"\x00\xff", "0000000200ff", "0300ff"),
    ("records", b"\x00\xff", "0000000200ff", "0300ff"),
]
NULLS = [("string", "ffff"), ("bytes", "ffffffff"), ("records", "ffffffff")]
every_type = pytest.mark.parametrize(("kind", "value", "classic", "compact"), TYPES)
both = pytest.mark.parametrize("flexible", [False, True], ids=["classic", "compact"])


def chosen(classic: str, compact: str | None, flexible: bool) -> str:
    return compact if flexible and compact is not None else classic


def counted(count: int, flexible: bool) -> str:
    """An array's count."""
    return (write_uvarint(count + 1) if flexible else count.to_bytes(4, "big")).hex()


# ---------------------------------------------------------------- every type in every form


@both
@pytest.mark.parametrize("nullable", [False, True])
@every_type
def test_a_field(kind: str, value: Any, classic: str, compact: str | None, nullable: bool, flexible: bool) -> None:
    made = codec(field("A", kind, nullable=nullable), flexible=flexible)
    check(made, {"A": value}, chosen(classic, compact, flexible) + "00" * flexible)
    assert type(made.decode(made.encode({"A": value}))["A"]) is type(value)


@both
@pytest.mark.parametrize(("kind", "null"), NULLS)
def test_a_null(kind: str, null: str, flexible: bool) -> None:
    made = codec(field("A", kind, nullable=True), field("B", "int8"), flexible=flexible)
    check(made, {"A": None, "B": 7}, "000700" if flexible else null + "07")


@both
@pytest.mark.parametrize("nullable", [False, True])
@pytest.mark.parametrize("count", [0, 1, 2, SHORT - 1, SHORT, 126, 127, 128, 200])
@every_type
def test_an_array(
    kind: str, value: Any, classic: str, compact: str | None, count: int, nullable: bool, flexible: bool
) -> None:
    made = codec(field("A", f"[]{kind}", nullable=nullable), field("B", "int8"), flexible=flexible)
    data = counted(count, flexible) + count * chosen(classic, compact, flexible) + "07" + "00" * flexible
    check(made, {"A": [value] * count, "B": 7}, data)


@both
@pytest.mark.parametrize("kind", [*dict.fromkeys(row[0] for row in TYPES), "Inner"])
def test_a_null_array(kind: str, flexible: bool) -> None:
    inner = [field("C", "int8")] if kind == "Inner" else []
    made = codec(field("A", f"[]{kind}", *inner, nullable=True), flexible=flexible)
    check(made, {"A": None}, "0000" if flexible else "ffffffff")


@every_type
def test_a_tagged_field(kind: str, value: Any, classic: str, compact: str | None) -> None:
    data = chosen(classic, compact, flexible=True)
    made = codec(field("A", "int8"), field("T", kind, tag=200))
    check(made, {"A": 7, "T": value}, f"0701c801{len(data) // 2:02x}{data}")


@every_type
def test_a_tagged_array(kind: str, value: Any, classic: str, compact: str | None) -> None:
    data = "03" + 2 * chosen(classic, compact, flexible=True)
    check(codec(field("T", f"[]{kind}", tag=0)), {"T": [value, value]}, f"0100{len(data) // 2:02x}{data}")


@pytest.mark.parametrize("size", [126, 127, 16382, 16383, 32767, 40000])
@pytest.mark.parametrize(("kind", "value"), [("string", "x"), ("bytes", b"x")])
def test_compact_lengths_grow(kind: str, value: Any, size: int) -> None:
    data = write_uvarint(size + 1) + b"x" * size
    check(codec(field("A", kind)), {"A": value * size}, data.hex() + "00")
    check(codec(field("T", kind, tag=1)), {"T": value * size}, (b"\x01\x01" + write_uvarint(len(data)) + data).hex())


def test_an_inflexible_field_keeps_its_classic_length_in_a_flexible_message() -> None:
    kept = Field("A", "string", ONE, nullable=ONE, inflexible=True)
    check(codec(kept, field("B", "string")), {"A": "x", "B": "x"}, "000178" + "0278" + "00")


@pytest.mark.parametrize("bits", ["7ff0000000000000", "8000000000000000", "0000000000000001", "7ff8000000000000"])
def test_floats_keep_their_bits(bits: str) -> None:  # infinity, -0.0, the smallest, not a number
    made = codec(field("A", "float64"), flexible=False)
    assert made.encode(made.decode(bytes.fromhex(bits))).hex() == bits


@pytest.mark.parametrize("wrap", [bytes, bytearray, memoryview])
def test_bytes_may_be_any_kind_of_them(wrap: Any) -> None:
    made = codec(field("A", "bytes"))
    assert made.encode({"A": wrap(b"ab"), "_tagged": {3: wrap(b"c")}}).hex() == "03616201030163"
    assert made.decode(wrap(b"\x03ab\x00")) == {"A": b"ab"}


@pytest.mark.parametrize("kind", ["int32", "string", "uuid", "bool", "Inner"])
def test_an_array_may_be_a_tuple_or_a_kind_of_list(kind: str) -> None:
    class Row(list[Any]):
        pass

    value = {"int32": 5, "string": "x", "uuid": SOME, "bool": True, "Inner": {"B": 1}}[kind]
    made = codec(field("A", f"[]{kind}", *([field("B", "int8")] if kind == "Inner" else [])))
    assert made.encode({"A": (value,)}) == made.encode({"A": [value]}) == made.encode({"A": Row([value])})


# ---------------------------------------------------------------- structs

INNER = (field("X", "int8"), field("Y", "string", nullable=True))


@both
def test_a_struct(flexible: bool) -> None:
    made = codec(field("A", "Inner", *INNER), field("B", "int8"), flexible=flexible)
    check(made, {"A": {"X": 1, "Y": "y"}, "B": 2}, "0102790002" + "00" if flexible else "0100017902")


@pytest.mark.parametrize(
    ("message", "data"),
    [
        ({"A": None}, "ff00"),
        ({"A": {"X": 1, "Y": None}}, "0101000000"),
        ({"A": {"X": 1, "Y": None, "_tagged": {9: b"z"}}}, "0101000109017a00"),
    ],
)
def test_a_nullable_struct_has_a_marker(message: dict[str, Any], data: str) -> None:
    check(codec(field("A", "Inner", *INNER, nullable=True)), message, data)


def test_a_tagged_struct() -> None:
    check(codec(field("T", "Inner", *INNER, tag=0)), {"T": {"X": 1, "Y": None}}, "01000301" + "0000")


@pytest.mark.parametrize(("value", "data"), [(None, "01000100"), ({"X": 1, "Y": None}, "0100040101" + "0000")])
def test_a_tagged_nullable_struct_says_null_by_0(value: Any, data: str) -> None:
    check(codec(field("T", "Inner", *INNER, nullable=True, tag=0)), {"T": value}, data)


@both
def test_arrays_of_structs_nest(flexible: bool) -> None:
    shared = Struct("Shared", ONE, (field("X", "int8"), field("Deep", "[]Deep", field("Z", "int16"))))
    made = codec(field("A", "[]Shared"), field("B", "Shared"), flexible=flexible, structs=(shared,))
    message = {"A": [{"X": 1, "Deep": [{"Z": 2}, {"Z": 3}]}, {"X": 4, "Deep": []}], "B": {"X": 5, "Deep": [{"Z": 6}]}}
    classic = "00000002" + "01" + "00000002" + "00020003" + "04" + "00000000" + "05" + "00000001" + "0006"
    compact = "03" + "01" + "03" + "000200" + "000300" + "00" + "040100" + "05" + "02" + "000600" + "00" + "00"
    check(made, message, compact if flexible else classic)


def test_a_message_without_fields() -> None:
    check(codec(flexible=False), {}, "")
    check(codec(), {}, "00")


def test_an_array_of_empty_structs_is_bounded_by_the_bytes_behind_it() -> None:
    made = codec(field("A", "[]Inner"), field("B", "int16"), flexible=False)
    check(made, {"A": [{}, {}], "B": 7}, "000000020007")
    assert failure(made, "000000030007") == ("A", 0, "claims 3 elements of no size")


# ---------------------------------------------------------------- what is missing

TAGGED = codec(
    field("A", "int8", default="-1"),
    field("B", "string", nullable=True, default="null"),
    field("T", "int16", tag=1),
    field("U", "[]Inner", field("X", "int8"), field("V", "int8", tag=0), tag=5),
)


@pytest.mark.parametrize(
    ("message", "data"),
    [
        ({}, "ff" + "00" + "00"),
        ({"A": 1}, "01" + "00" + "00"),
        ({"B": "x"}, "ff" + "0278" + "00"),
        ({"T": 2}, "ff00" + "01" + "01020002"),
        # as many fields as there are untagged ones, but not those: only looking tells
        ({"A": 1, "T": 2}, "0100" + "01" + "01020002"),
        ({"B": None, "T": 2}, "ff00" + "01" + "01020002"),
        ({"T": 2, "_tagged": {3: b"z"}}, "ff00" + "02" + "01020002" + "03017a"),
        ({"T": 2, "U": [{"V": 3}, {}]}, "ff00" + "02" + "01020002" + "0508" + "03" + "0001000103" + "0000"),
        ({"A": 1, "B": None, "_tagged": {}}, "010000"),
    ],
)
def test_missing_fields_get_their_defaults(message: dict[str, Any], data: str) -> None:
    assert TAGGED.encode(message).hex() == data


def test_a_message_is_not_changed_by_encoding_it() -> None:
    message: dict[str, Any] = {"T": 2, "U": [{"V": 3}], "_tagged": {9: b""}}
    TAGGED.encode(message)
    assert message == {"T": 2, "U": [{"V": 3}], "_tagged": {9: b""}}


def test_a_missing_struct_is_made_of_defaults() -> None:
    inner = (field("X", "int8", default="4"), field("T", "int8", tag=0))
    assert codec(field("A", "Inner", *inner), field("B", "int8")).encode({"B": 7}).hex() == "04000700"
    assert codec(field("A", "Inner", *inner, nullable=True)).encode({}).hex() == "01040000"
    assert codec(field("A", "Inner", *inner, nullable=True, default="null")).encode({}).hex() == "ff00"


# ---------------------------------------------------------------- unknown tags


@pytest.mark.parametrize(
    ("fields", "message", "data"),
    [
        ([], {"A": 1, "_tagged": {0: b"", 127: b"ab", 128: b"c"}}, "01" + "03" + "0000" + "7f026162" + "80010163"),
        ([], {"A": 1, "_tagged": {9: b"b", 1: b"a"}}, "01" + "02" + "010161" + "090162"),
        ([], {"A": 1, "_tagged": {4294967295: b"c"}}, "01" + "01" + "ffffffff0f0163"),
        ([], {"A": 1, "_tagged": {1: b"x" * 128}}, "01" + "01" + "018001" + "78" * 128),
        ([("T", 3)], {"A": 1, "T": 5, "_tagged": {1: b"a", 9: b"b"}}, "01" + "03" + "010161" + "030105" + "090162"),
        ([("T", 3)], {"A": 1, "_tagged": {3000: b"a"}}, "01" + "01" + "b8170161"),
        ([("T", 3), ("S", 0)], {"A": 1, "S": 6, "T": 5}, "01" + "02" + "000106" + "030105"),
    ],
)
def test_unknown_tags_survive_in_ascending_order(
    fields: list[tuple[str, int]], message: dict[str, Any], data: str
) -> None:
    check(codec(field("A", "int8"), *(field(name, "int8", tag=tag) for name, tag in fields)), message, data)


@pytest.mark.parametrize("known", [False, True])
def test_more_than_127_unknown_tags_survive(known: bool) -> None:
    made = codec(field("A", "int8"), *([field("T", "int8", tag=500)] if known else []))
    message = {"A": 1, "_tagged": dict.fromkeys(range(300), b"x")}
    assert made.decode(made.encode(message)) == message


def test_unknown_tags_survive_in_every_struct() -> None:
    made = codec(field("A", "[]Inner", field("X", "int8")))
    check(made, {"A": [{"X": 1, "_tagged": {7: b"z"}}, {"X": 2}]}, "03" + "0101" + "07017a" + "0200" + "00")


def test_tags_may_be_text_as_json_has_them() -> None:
    assert codec(field("A", "int8")).encode({"A": 1, "_tagged": {"5": b"a"}}).hex() == "0101050161"


# ---------------------------------------------------------------- text that is no UTF-8


@both
@pytest.mark.parametrize(
    ("text", "data"), [("a\udcff", b"a\xff"), ("\udcc3", b"\xc3"), ("\udced\udca0\udc80é", b"\xed\xa0\x80\xc3\xa9")]
)
def test_text_that_is_no_utf8_survives(text: str, data: bytes, flexible: bool) -> None:
    made = codec(field("A", "[]string"), field("B", "string"), flexible=flexible)
    size = bytes([len(data) + 1]) if flexible else len(data).to_bytes(2, "big")
    raw = bytes.fromhex(counted(1, flexible)) + (size + data) * 2 + b"\0" * flexible
    check(made, {"A": [text], "B": text}, raw.hex())


def test_text_that_is_no_utf8_survives_beside_missing_and_tagged_fields() -> None:
    made = codec(field("A", "int8"), field("B", "string"), field("T", "string", tag=1))
    assert made.encode({"B": "\udcff", "T": "\udcfe"}).hex() == "00" + "02ff" + "01" + "010202fe"
    assert made.decode(bytes.fromhex("0002ff01010202fe")) == {"A": 0, "B": "\udcff", "T": "\udcfe"}


# ---------------------------------------------------------------- in the middle of other bytes


def test_decode_at_gives_where_the_message_ends() -> None:
    made = codec(field("A", "int8"), field("B", "string"))
    assert made.decode_at(b"\xff\xff\x01\x02x\x00\xff", 2) == ({"A": 1, "B": "x"}, 6)
    assert made.decode_at(b"\xff\x01\x02\xff\x00\xff", 1) == ({"A": 1, "B": "\udcff"}, 5)


@pytest.mark.parametrize("data", [b"\xff\x01\x09x", b"\xff\x01\x09\xff"])
def test_decode_at_counts_offsets_from_the_start_of_the_bytes(data: bytes) -> None:
    with pytest.raises(DecodeError) as caught:
        codec(field("A", "int8"), field("B", "string")).decode_at(data, 1)
    assert (caught.value.path, caught.value.offset) == ("B", 2)
    assert str(caught.value) == "Sample v0: B: needs 8 bytes at offset 3, has 1"


@pytest.mark.parametrize("data", [b"\xff\xff\x00\x05ab", b"\x00\x05a\xff"])
def test_decode_at_refuses_a_last_field_that_runs_over_the_end(data: bytes) -> None:
    start = len(data) - 4
    with pytest.raises(DecodeError) as caught:
        codec(field("A", "string"), flexible=False).decode_at(data, start)
    assert str(caught.value) == f"Sample v0: A: needs 5 bytes at offset {start + 2}, has 2"


# ---------------------------------------------------------------- damage

MOST, AT_4 = 0x7FFFFFFF, "at offset 4, has 0"
PAIR = field("A", "[]Inner", field("X", "int16"), field("Y", "string"))


@pytest.mark.parametrize(
    ("fields", "data", "path", "offset", "reason"),
    [
        ([field("A", "int32")], "0000", "A", 0, "needs 4 bytes at offset 0, has 2"),
        ([field("A", "int8"), field("B", "uuid")], "0102", "B", 1, "needs 16 bytes at offset 1, has 1"),
        ([field("A", "string")], "0005", "A", 0, "needs 5 bytes at offset 2, has 0"),
        ([field("A", "string")], "0002c3", "A", 0, "needs 2 bytes at offset 2, has 1"),
        ([field("A", "string")], "ffff", "A", 0, "is null, and this field must not be"),
        ([field("A", "string")], "fffe", "A", 0, "the length is -2"),
        ([field("A", "string", nullable=True)], "fffe", "A", 0, "the length is -2"),
        ([field("A", "bytes")], "00", "A", 0, "needs 4 bytes (length) at offset 0, has 1"),
        ([field("A", "bytes")], "7fffffff", "A", 0, f"needs {MOST:,} bytes {AT_4}"),
        ([field("A", "[]int8")], "0000ffff00", "A", 0, "needs 65,535 bytes for 65,535 elements at offset 4, has 1"),
        ([field("A", "[]uuid")], "7fffffff", "A", 0, f"needs {16 * MOST:,} bytes for {MOST:,} elements {AT_4}"),
        ([field("A", "[]int8")], "ffffffff", "A", 0, "is null, and this field must not be"),
        ([field("A", "[]string")], "ffffff00", "A", 0, "the count is -256"),
        ([field("A", "[]string")], "0000000200017800", "A[1]", 7, "needs 2 bytes (length) at offset 7, has 1"),
        ([PAIR], "00000002000100000002", "A[1].Y", 10, "needs 2 bytes (length) at offset 10, has 0"),
        ([field("A", "int8")], "0102", "trailing", 1, "1 byte left over behind the message"),
        ([], "010203", "trailing", 0, "3 bytes left over behind the message"),
    ],
)
def test_damage_in_classic_messages(fields: list[Field], data: str, path: str, offset: int, reason: str) -> None:
    assert failure(codec(*fields, flexible=False), data) == (path, offset, reason)


@pytest.mark.parametrize(
    ("data", "path", "offset", "reason"),
    [
        ("", "A", 0, "needs the length at offset 0, and 0 bytes hold none"),
        ("00", "A", 0, "is null, and this field must not be"),
        ("ff", "A", 0, "needs the length at offset 0, and 1 byte hold none"),
        ("ffffffffff00", "A", 0, "the length at offset 0: the varint is longer than 5 bytes"),
        ("ffffffff7f00", "A", 0, "the length at offset 0: the varint is 34,359,738,367, above 2^32-1"),
        ("0278", "tagged", 2, "needs the number of tagged fields at offset 2, and 0 bytes hold none"),
        ("027801", "tagged", 3, "needs the tag at offset 3, and 0 bytes hold none"),
        ("02780109", "tagged", 3, "needs the size of tag 9 at offset 4, and 0 bytes hold none"),
        ("0278010905", "tagged", 3, "needs 5 bytes for tag 9 at offset 5, has 0"),
        ("027801010300000007", "T", 7, "tag 1 says 3 bytes, the field takes 2"),
        ("02780101010007", "T", 5, "needs 2 bytes at offset 5, has 1"),
        ("027801020104", "S", 5, "needs 3 bytes at offset 6, has 0"),
        ("02780000", "trailing", 3, "1 byte left over behind the message"),
    ],
)
def test_damage_in_flexible_messages(data: str, path: str, offset: int, reason: str) -> None:
    made = codec(field("A", "string"), field("T", "int16", tag=1), field("S", "string", tag=2))
    assert failure(made, data) == (path, offset, reason)
