"""What cannot be written is refused by its path and the reason: by the codec, whose fast code never lets it through,
and by the checks alone."""

from __future__ import annotations

from array import array
from typing import Any
from uuid import UUID

import pytest

import kwire
from kwire.codec.encode_checks import complete, encode_error, fitted, no_such_field, scalar_reason
from kwire.codec.example import example
from kwire.codec.library import builtin_library
from kwire.codec.plan import StructPlan, compile_plan
from kwire.codec.values import Codec
from kwire.errors import EncodeError
from kwire.schema.model import NONE, Field, MessageSchema, Versions
from kwire.schema.registry import builtin

ONE = Versions(0, 0)
ZERO = UUID(int=0)


def field(name: str, kind: str, *inner: Field, nullable: bool = False, tag: int | None = None) -> Field:
    null, tagged = ONE if nullable else NONE, NONE if tag is None else ONE
    return Field(name, kind, ONE, nullable=null, tagged=tagged, tag=tag, fields=inner)


def codec(*fields: Field, flexible: bool = True) -> Codec:
    return Codec(compile_plan(MessageSchema("Sample", "data", ONE, ONE if flexible else NONE, fields), 0))


def refused(made: Codec, message: Any) -> tuple[str, str]:
    """Path and reason of the codec's error, which must be those of the checks."""
    with pytest.raises(EncodeError) as caught:
        made.encode(message)
    error = caught.value
    assert str(error) == f"Sample v0: {error.path + ': ' if error.path else ''}{error.reason}"
    assert str(error) == str(encode_error(made.plan, message))
    return error.path, error.reason


# type, value, reason: refused as a field, as a tagged one and as an element
SCALARS = [
    ("bool", "no", "needs true or false, has the string 'no'"),
    ("bool", 2, "needs true or false, has the number 2"),
    ("bool", b"", "needs true or false, has bytes"),
    ("int8", 128, "128 is out of range for int8 (-128 to 127)"),
    ("int8", -129, "-129 is out of range for int8 (-128 to 127)"),
    ("int16", 32768, "32,768 is out of range for int16 (-32,768 to 32,767)"),
    ("uint16", -1, "-1 is out of range for uint16 (0 to 65,535)"),
    ("uint16", 65536, "65,536 is out of range for uint16 (0 to 65,535)"),
    ("int32", 2147483648, "2,147,483,648 is out of range for int32 (-2,147,483,648 to 2,147,483,647)"),
    ("uint32", 4294967296, "4,294,967,296 is out of range for uint32 (0 to 4,294,967,295)"),
    (
        "int64",
        9223372036854775808,
        "9,223,372,036,854,775,808 is out of range for int64 (-9,223,372,036,854,775,808 to 9,223,372,036,854,775,807)",
    ),
    ("int32", "7", "needs int32, has the string '7'"),
    ("int32", 7.0, "needs int32, has the number 7.0"),
    ("int32", [7], "needs int32, has a list"),
    ("float64", "1.5", "needs a number, has the string '1.5'"),
    ("float64", {}, "needs a number, has an object"),
    ("uuid", "AAAAAAAAAAAAAAAAAAAAAA", "needs a uuid, has the string 'AAAAAAAAAAAAAAAAAAAAAA'"),
    ("uuid", bytes(16), "needs a uuid, has bytes"),
    ("string", b"x", "needs a string, has bytes"),
    ("string", 7, "needs a string, has the number 7"),
    ("string", True, "needs a string, has true"),
    ("string", "a\ud800", "cannot be written as UTF-8"),
    ("bytes", "x" * 50, f"needs bytes, has the string '{'x' * 40}'"),
    ("bytes", [1, 2], "needs bytes, has a list"),
    ("records", False, "needs bytes, has false"),
    ("records", ZERO, "needs bytes, has UUID"),
    ("bytes", memoryview(array("i", [1])), "needs bytes, has memoryview"),
]
scalars = pytest.mark.parametrize(("kind", "value", "reason"), SCALARS)
both = pytest.mark.parametrize("flexible", [False, True], ids=["classic", "compact"])


@both
@scalars
def test_a_wrong_value_is_refused(kind: str, value: Any, reason: str, flexible: bool) -> None:
    made = codec(field("A", "int8"), field("B", kind), flexible=flexible)
    assert refused(made, {"A": 1, "B": value}) == ("B", reason)


@both
@scalars
def test_a_wrong_element_is_refused(kind: str, value: Any, reason: str, flexible: bool) -> None:
    good = {"bool": True, "uuid": ZERO, "string": "", "bytes": b"", "records": b""}.get(kind, 0)
    made = codec(field("A", f"[]{kind}"), flexible=flexible)
    assert refused(made, {"A": [good, value]}) == ("A[1]", reason)
    assert refused(made, {"A": [good] * 40 + [value]}) == ("A[40]", reason)


@scalars
def test_a_wrong_tagged_field_is_refused(kind: str, value: Any, reason: str) -> None:
    assert refused(codec(field("T", kind, tag=3)), {"T": value}) == ("T", reason)


@both
@pytest.mark.parametrize("kind", [*dict.fromkeys(row[0] for row in SCALARS), "[]int32", "[]string", "Inner", "[]Inner"])
def test_null_is_refused_where_it_must_not_be(kind: str, flexible: bool) -> None:
    made = codec(field("A", kind, *([field("X", "int8")] if kind.endswith("Inner") else [])), flexible=flexible)
    assert refused(made, {"A": None}) == ("A", "is null, and this field must not be")


@both
@pytest.mark.parametrize("kind", ["int32", "uuid", "string", "bytes", "Inner"])
@pytest.mark.parametrize("nullable", [False, True])
def test_a_null_element_is_refused(kind: str, nullable: bool, flexible: bool) -> None:
    inner = [field("X", "int8")] if kind == "Inner" else []
    made = codec(field("A", f"[]{kind}", *inner, nullable=nullable), flexible=flexible)
    assert refused(made, {"A": [None]}) == ("A[0]", "is null, and an element must not be")


@both
@pytest.mark.parametrize("kind", ["bool", "int8", "int32", "float64", "uuid", "string", "bytes", "Inner"])
@pytest.mark.parametrize(
    ("value", "has"),
    [
        (b"ab", "bytes"),
        ("ab", "the string 'ab'"),
        ({1: 2}, "an object"),
        ({1, 2}, "set"),
        (range(2), "range"),
        (3, "the number 3"),
    ],
)
def test_what_is_no_list_is_refused_as_an_array(kind: str, value: Any, has: str, flexible: bool) -> None:
    made = codec(field("A", f"[]{kind}", *([field("X", "int8")] if kind == "Inner" else [])), flexible=flexible)
    assert refused(made, {"A": value}) == ("A", f"needs a list, has {has}")


def test_text_of_more_than_32767_bytes_is_refused_unless_compact() -> None:
    message = {"A": "é" * 16384}
    reason = "takes 32,768 bytes, more than 32,767"
    assert refused(codec(field("A", "string"), flexible=False), message) == ("A", reason)
    assert len(codec(field("A", "string")).encode(message)) == 3 + 32768 + 1


# ---------------------------------------------------------------- structs and names

PARTS = field("Parts", "[]Part", field("Index", "int32"), field("T", "int8", tag=0))
DEEP = codec(
    field("Topics", "[]Topic", field("Name", "string"), PARTS),
    field("Node", "Node", field("Host", "string"), nullable=True, tag=4),
)


@pytest.mark.parametrize(
    ("message", "path", "reason"),
    [
        (None, "", "needs an object with fields, has null"),
        (["Topics"], "", "needs an object with fields, has a list"),
        ("Topics", "", "needs an object with fields, has the string 'Topics'"),
        ({"Topics": [7]}, "Topics[0]", "needs an object with fields, has the number 7"),
        ({"Topics": [{}, {"Name": 7}]}, "Topics[1].Name", "needs a string, has the number 7"),
        ({"Topics": [{"Parts": [{}, {"Index": "1"}]}]}, "Topics[0].Parts[1].Index", "needs int32, has the string '1'"),
        ({"Topics": [{"Parts": [{"T": 999}]}]}, "Topics[0].Parts[0].T", "999 is out of range for int8 (-128 to 127)"),
        ({"Node": 7}, "Node", "needs an object with fields, has the number 7"),
        ({"Node": {"Host": None}}, "Node.Host", "is null, and this field must not be"),
        ({"Topic": []}, "Topic", "no such field in Sample v0; did you mean Topics?"),
        ({"topics": []}, "topics", "no such field in Sample v0; did you mean Topics?"),
        ({"NODE": {}}, "NODE", "no such field in Sample v0; did you mean Node?"),
        ({"Zebra": 1}, "Zebra", "no such field in Sample v0"),
        ({7: 1}, "7", "no such field in Sample v0"),
        ({"Topics": [], "Zebra": 1}, "Zebra", "no such field in Sample v0"),
        ({"Topics": [{"name": "x", "Parts": []}]}, "Topics[0].name", "no such field in Topics[0]; did you mean Name?"),
        ({"Node": {"Hots": "x"}}, "Node.Hots", "no such field in Node; did you mean Host?"),
        ({"Topics": [{"Zebra": 1, "Name": 7}]}, "Topics[0].Zebra", "no such field in Topics[0]"),
    ],
)
def test_the_path_leads_to_what_is_wrong(message: Any, path: str, reason: str) -> None:
    assert refused(DEEP, message) == (path, reason)


def test_a_field_of_another_version_is_no_field() -> None:
    with pytest.raises(EncodeError) as caught:
        kwire.encode("HeartbeatResponse", 0, {"ThrottleTimeMs": 0})
    assert str(caught.value) == "HeartbeatResponse v0: ThrottleTimeMs: not in v0: HeartbeatResponse has it in v1-4"


def test_a_nested_field_of_another_version() -> None:
    with pytest.raises(EncodeError) as caught:
        kwire.encode("FetchRequest", 16, {"Topics": [{"Topic": "orders"}]})
    assert str(caught.value) == "FetchRequest v16: Topics[0].Topic: not in v16: FetchRequest has it in v0-12"


def test_an_older_name_leads_to_the_newer() -> None:
    with pytest.raises(EncodeError) as caught:
        kwire.encode("TxnOffsetCommitRequest", 5, {"GenerationId": 1})
    assert caught.value.reason == "is called GenerationIdOrMemberEpoch now"


@pytest.mark.parametrize(
    ("name", "known", "sentence"),
    [
        ("MaxWait", ["MaxWaitMs", "MinBytes"], "no such field in Sample v0; did you mean MaxWaitMs?"),
        ("MaxByte", ["MinBytes", "MaxBytes"], "no such field in Sample v0; did you mean MaxBytes or MinBytes?"),
        ("ISR", ["Isr"], "no such field in Sample v0; did you mean Isr?"),
        ("Isr", [], "no such field in Sample v0"),
    ],
)
def test_no_such_field_names_the_nearest(name: str, known: list[str], sentence: str) -> None:
    assert no_such_field(codec().plan, name, known) == sentence


# ---------------------------------------------------------------- unknown tags


@pytest.mark.parametrize("known", [["int8"], ["bytes"], ["[]int8"], []])
@pytest.mark.parametrize(
    ("tags", "path", "reason"),
    [
        (None, "_tagged", "needs {tag: bytes}, has null"),
        ([b"x"], "_tagged", "needs {tag: bytes}, has a list"),
        ({-1: b""}, "_tagged[-1]", "is not a tag number"),
        ({1 << 32: b""}, "_tagged[4294967296]", "is not a tag number"),
        ({"one": b""}, "_tagged[one]", "is not a tag number"),
        ({None: b""}, "_tagged[None]", "is not a tag number"),
        ({9: "x"}, "_tagged[9]", "needs bytes, has the string 'x'"),
        ({9: 5}, "_tagged[9]", "needs bytes, has the number 5"),
        ({9: [1]}, "_tagged[9]", "needs bytes, has a list"),
        ({9: b"", 7: None}, "_tagged[7]", "needs bytes, has null"),
    ],
)
def test_a_wrong_unknown_tag_is_refused(known: list[str], tags: Any, path: str, reason: str) -> None:
    made = codec(field("A", "int8"), *(field("T", kind, tag=4) for kind in known))
    assert refused(made, {"A": 1, "_tagged": tags}) == (path, reason)


@pytest.mark.parametrize("kind", ["int8", "string", "bytes", "records", "[]int8", "[]string"])
@pytest.mark.parametrize("tag", [4, "4"])
def test_an_unknown_tag_that_is_known_is_refused(kind: str, tag: Any) -> None:
    made = codec(field("A", "int8"), field("T", kind, tag=4))
    assert refused(made, {"A": 1, "_tagged": {tag: b"ab"}}) == ("_tagged[4]", "is a known field here: T")


def test_a_message_that_is_not_flexible_has_no_tags() -> None:
    made = codec(field("A", "int8"), flexible=False)
    assert refused(made, {"A": 1, "_tagged": {}}) == ("_tagged", "no such field in Sample v0")


# ---------------------------------------------------------------- the functions alone


def test_complete_fills_in_untagged_fields_at_every_depth() -> None:
    given = {"Topics": ({"Parts": [{"T": 1}]}, {}), "Node": {}, "_tagged": {9: b"x"}}
    assert complete(DEEP.plan, given) == {
        "Topics": [{"Parts": [{"T": 1, "Index": 0}], "Name": ""}, {"Name": "", "Parts": []}],
        "Node": {"Host": ""},
        "_tagged": {9: b"x"},
    }
    assert given == {"Topics": ({"Parts": [{"T": 1}]}, {}), "Node": {}, "_tagged": {9: b"x"}}


@pytest.mark.parametrize("message", [None, 7, [], {"Topics": None}, {"Topics": 7}, {"Topics": [7]}, {"Node": None}])
def test_complete_leaves_what_does_not_fit(message: Any) -> None:
    completed = complete(DEEP.plan, message)
    assert completed == ({"Topics": []} | message if isinstance(message, dict) else message)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("bool", False),
        ("int8", -128),
        ("uint16", 65535),
        ("float64", 1),
        ("float64", 1.5),
        ("uuid", ZERO),
        ("string", "\udcff"),
        ("string", "é" * 16383 + "x"),
        ("bytes", b""),
        ("bytes", bytearray(1)),
        ("records", memoryview(b"")),
    ],
)
def test_what_fits_has_no_reason(kind: str, value: Any) -> None:
    (slot,) = codec(field("A", kind), flexible=False).plan.root.slots
    assert scalar_reason(slot, value) is None


def test_true_is_no_number() -> None:
    (slot,) = codec(field("A", "int8")).plan.root.slots
    assert scalar_reason(slot, True) == "needs int8, has true"


def test_without_a_reason_the_error_says_only_that() -> None:
    assert str(encode_error(DEEP.plan, {})) == "Sample v0: cannot be written"


def test_fields_that_a_version_lacks_are_left_out_at_every_depth() -> None:
    plan = builtin_library().plan("MetadataResponse", 0).root
    body = {"Brokers": [{"NodeId": 1, "Host": "h", "Port": 2, "Rack": None}], "ClusterId": "c", "Topics": None}
    assert fitted(plan, body) == {"Brokers": [{"NodeId": 1, "Host": "h", "Port": 2}], "Topics": None}


@pytest.mark.parametrize("name", [api.messages[1].name for api in map(builtin().api, builtin().keys())])
def test_the_newest_body_fits_every_version(name: str) -> None:
    """With all that later versions have in it, tagged fields too, and with nothing in it at all."""
    library = builtin_library()
    versions = library.message(name).versions
    newest = library.plan(name, versions.high)
    body = _with_tags(newest.root, example(newest))
    for version in versions.each():
        made = library.codec(name, version)
        for message in (body, {}):
            assert made._compile_fitting()(message) == made.encode(fitted(made.plan.root, message))


def _with_tags(plan: StructPlan, body: dict[str, Any]) -> dict[str, Any]:
    out = {**body, **{slot.name: slot.default() for slot in plan.tagged.values()}}
    for slot in plan.slots:
        if slot.struct is not None and slot.array:
            out[slot.name] = [_with_tags(slot.struct, item) for item in out[slot.name] or ()]
    return out


@pytest.mark.parametrize(
    ("body", "path", "reason"),
    [
        ({"ErrorCode": 1 << 20}, "ErrorCode", "1,048,576 is out of range for int16 (-32,768 to 32,767)"),
        ({"Brokers": [None]}, "Brokers[0]", "is null, and an element must not be"),
        ({"Topics": [{"Name": "a", "Partitions": 5}]}, "Topics[0].Partitions", "needs a list, has the number 5"),
    ],
)
def test_what_does_not_fit_has_its_path(body: dict[str, Any], path: str, reason: str) -> None:
    with pytest.raises(EncodeError) as caught:
        builtin_library().codec("MetadataResponse", 13).encode_fitted(body)
    assert (caught.value.path, caught.value.reason) == (path, reason)


def test_text_that_is_no_utf8_fits_too() -> None:
    made = builtin_library().codec("HeartbeatRequest", 4)
    body = {"GroupId": "\udcff", "Nothing": 1}
    assert made.encode_fitted(body) == made.encode({"GroupId": "\udcff"})
