"""Kafka's own JSON files, from jars and folders: their oddities, their releases, and what is wrong with a file."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from kwire.errors import SchemaError
from kwire.schema.model import NONE, OPEN, Field, Struct, Versions
from kwire.schema.official import convert, read

PLAIN = {
    "apiKey": 12,
    "type": "request",
    "name": "HeartbeatRequest",
    "listeners": ["broker"],
    "validVersions": "0-4",
    "flexibleVersions": "4+",
    "fields": [{"name": "GroupId", "type": "string", "versions": "0+", "entityType": "groupId", "about": "The group."}],
}


def folder(tmp_path: Path, **files: str) -> Path:
    """A folder of .json files."""
    for name, content in files.items():
        (tmp_path / f"{name}.json").write_text(content, "utf-8")
    return tmp_path


def jar(path: Path, **members: str) -> Path:
    """A jar; "__" in a member's name stands for a slash."""
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            file.writestr(name.replace("__", "/") + ".json", content)
    return path


def field(**raw: object) -> Field:
    """The first field of a message that has only this one."""
    return convert({**PLAIN, "fields": [{"name": "A", "type": "int32", "versions": "0+", **raw}]}).message.fields[0]


def test_a_message() -> None:
    official = convert(PLAIN)
    message = official.message
    assert (official.key, official.listeners, official.unstable) == (12, ("broker",), False)
    assert (message.name, message.kind) == ("HeartbeatRequest", "request")
    assert (message.versions, message.flexible) == (Versions(0, 4), Versions(4, OPEN))
    assert message.fields == (Field("GroupId", "string", Versions(0, OPEN), entity="groupId"),)


def test_no_description_is_taken_over() -> None:
    assert [one.note for _, one in convert(PLAIN).message.walk()] == [""]


@pytest.mark.parametrize(
    ("raw", "attribute", "value"),
    [
        ({"name": "groupId"}, "name", "GroupId"),
        ({"versions": "2-3", "nullableVersions": "1+"}, "nullable", Versions(2, 3)),
        ({"nullableVersions": "none"}, "nullable", NONE),
        ({"taggedVersions": "3+", "tag": 5}, "tagged", Versions(3, OPEN)),
        ({"taggedVersions": "3+", "tag": 5}, "tag", 5),
        ({"taggedVersions": "3+", "tag": "5"}, "tag", 5),
        ({"versions": "3+", "tag": 5}, "tag", None),
        ({}, "default", None),
        ({"default": "null"}, "default", "null"),
        ({"default": 7}, "default", "7"),
        ({"default": " -1 "}, "default", "-1"),
        ({"default": True}, "default", "true"),
        ({"default": ""}, "default", ""),
        ({"name": "ErrorCode", "type": "int16"}, "error", True),
        ({"name": "AcknowledgeErrorCode", "type": "int16"}, "error", True),
        ({"name": "ErrorCodes", "type": "[]int16"}, "error", True),
        ({"name": "ErrorCode", "type": "int32"}, "error", False),
        ({"name": "ErrorCodeCount", "type": "int16"}, "error", False),
        ({"flexibleVersions": "none"}, "inflexible", True),
        ({"flexibleVersions": "2+"}, "inflexible", False),
        ({"entityType": "brokerId"}, "entity", "brokerId"),
        ({"type": "[]int64"}, "type", "[]int64"),
    ],
)
def test_a_fields_facts(raw: dict[str, object], attribute: str, value: object) -> None:
    assert getattr(field(**raw), attribute) == value


def test_a_tagged_field_without_versions_has_them_where_it_is_tagged() -> None:
    raw = {"name": "A", "type": "int8", "taggedVersions": "2+", "tag": 0}
    versions = convert({**PLAIN, "fields": [raw]}).message.fields[0].versions
    assert versions == Versions(2, OPEN)


def test_structs_inline_and_shared_wherever_they_appear() -> None:
    raw = {
        **PLAIN,
        "fields": [
            {"name": "Next", "type": "Cursor", "versions": "1+"},
            {
                "name": "Topics",
                "type": "[]Topic",
                "versions": "0+",
                "fields": [{"name": "Name", "type": "string", "versions": "0+"}],
            },
        ],
        "commonStructs": [
            {"name": "Cursor", "versions": "1+", "fields": [{"name": "At", "type": "int64", "versions": "1+"}]}
        ],
    }
    message = convert(raw).message
    assert message.structs == (Struct("Cursor", Versions(1, OPEN), (Field("At", "int64", Versions(1, OPEN)),)),)
    assert [path for path, _ in message.walk()] == ["Next", "Next.At", "Topics", "Topics.Name"]


def test_a_version_in_work_is_marked() -> None:
    assert convert({**PLAIN, "latestVersionUnstable": True}).unstable


COMMENTS = """
// The license stands up here, with a "quote" in it.
{
  "apiKey": 18, /* a number,
  over two lines */ "type": "request",
  "name": "ApiVersionsRequest", // and a name
  "validVersions": "0-1",
  "fields": [
    { "name": "Url", "type": "string", "versions": "0+", "default": "http://a,]b" , },
    { "name": "Quote", "type": "string", "versions": "0+", "default": "\\"//\\"" },
  ],
}
text behind the object
"""


def test_comments_and_commas_too_many_are_left_out_but_not_inside_strings(tmp_path: Path) -> None:
    source = read(folder(tmp_path, Api=COMMENTS), "4.4")
    assert [one.default for one in source.found[0].message.fields] == ["http://a,]b", '"//"']


def test_a_message_that_the_release_no_longer_speaks_has_no_versions(tmp_path: Path) -> None:
    source = read(folder(tmp_path, Gone=json.dumps({**PLAIN, "validVersions": "none"})), "4.0")
    assert source.found[0].message.versions == NONE


def found(path: Path, release: str | None = None) -> list[str]:
    return [official.message.name for official in read(path, release).found]


def test_a_folder_is_read_by_its_json_files(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not json", "utf-8")
    assert found(folder(tmp_path, A=json.dumps(PLAIN)), "4.4") == ["HeartbeatRequest"]


def test_of_a_jar_only_the_message_folders_are_read(tmp_path: Path) -> None:
    other = json.dumps({**PLAIN, "name": "Other"})
    path = jar(
        tmp_path / "kafka-clients-4.4.0.jar",
        common__message__A=json.dumps(PLAIN),
        common__metadata__B=other,
        META_INF__C="no json at all",
    )
    assert found(path) == ["HeartbeatRequest", "Other"]


def test_json_that_is_no_message_is_passed_over(tmp_path: Path) -> None:
    path = folder(tmp_path, A=json.dumps(PLAIN), B='{"name": "settings"}', C="[1, 2]")
    assert found(path, "4.4") == ["HeartbeatRequest"]


def test_keys_of_4_0_whose_versions_are_record_types_are_passed_over(tmp_path: Path) -> None:
    key = {"type": "data", "name": "OffsetCommitKey", "validVersions": "0-1", "fields": []}
    path = folder(
        tmp_path, Old=json.dumps(key), New=json.dumps({**key, "type": "coordinator-key", "apiKey": 1, "name": "NewKey"})
    )
    assert found(path, "4.1") == ["NewKey"]


@pytest.mark.parametrize(
    ("name", "given", "otherwise", "release"),
    [
        ("kafka-clients-4.4.0.jar", None, None, "4.4"),
        ("kafka-clients-3.10.12.jar", None, None, "3.10"),
        ("kafka-clients-4.4.0.jar", "4.5", None, "4.5"),
        ("my.jar", "4.5.1", None, "4.5"),
        ("my.jar", None, "3.0", "3.0"),
        ("kafka-clients-4.4.0.jar", None, "3.0", "4.4"),
    ],
)
def test_the_release(tmp_path: Path, name: str, given: str | None, otherwise: str | None, release: str) -> None:
    path = jar(tmp_path / name, common__message__A=json.dumps(PLAIN))
    assert read(path, given, otherwise).release == release


@pytest.mark.parametrize("name", ["kafka-clients.jar", "kafka-clients-4.5.0-SNAPSHOT.jar"])
def test_a_release_that_cannot_be_found_out_must_be_said(tmp_path: Path, name: str) -> None:
    path = jar(tmp_path / name, common__message__A=json.dumps(PLAIN))
    with pytest.raises(SchemaError) as caught:
        read(path)
    assert str(caught.value) == f"{path}: does not tell its release; say it with --release"


@pytest.mark.parametrize("release", ["four", "4", "", "4.", "4.4-rc1", "v4.4"])
def test_a_release_has_two_numbers(tmp_path: Path, release: str) -> None:
    with pytest.raises(SchemaError) as caught:
        read(folder(tmp_path, A=json.dumps(PLAIN)), release)
    assert str(caught.value) == f"{release}: is not a release such as 4.4"


def test_a_path_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(SchemaError) as caught:
        read(tmp_path / "none", "4.4")
    assert str(caught.value) == f"{tmp_path / 'none'}: does not exist"


def test_a_file_that_is_no_jar(tmp_path: Path) -> None:
    path = tmp_path / "kafka-clients-4.4.0.jar"
    path.write_text("not a zip", "utf-8")
    with pytest.raises(SchemaError) as caught:
        read(path)
    assert str(caught.value) == f"{path}: is neither a folder nor a jar"


def test_a_folder_without_definitions(tmp_path: Path) -> None:
    with pytest.raises(SchemaError) as caught:
        read(tmp_path, "4.4")
    assert str(caught.value) == f"{tmp_path}: holds no message definitions"


def with_field(**raw: object) -> dict[str, object]:
    return {**PLAIN, "fields": [{"name": "A", "type": "int8", "versions": "0+", **raw}]}


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ({key: PLAIN[key] for key in PLAIN if key != "name"}, "name is missing"),
        ({**PLAIN, "fields": [{"name": "A", "versions": "0+"}]}, "type is missing"),
        ({**PLAIN, "validVersions": "one"}, "invalid literal for int() with base 10: 'one'"),
        ({**PLAIN, "apiKey": "12"}, "apiKey '12' is not a number"),
        ({**PLAIN, "name": "../../Escape"}, "'../../Escape' is not a name"),
        (with_field(name=""), "'' is not a name"),
        (with_field(name="A B"), "'A B' is not a name"),
        (with_field(type="int8 secret"), "'int8 secret' is not a name"),
        (with_field(type="[][]int8"), "'[]int8' is not a name"),
        (with_field(type="strin"), "A: nothing says what strin is"),
        (with_field(type="[]Part"), "A: nothing says what Part is"),
        (with_field(taggedVersions="0+"), "tag is missing"),
        (with_field(type="P", fields=[{"name": "B", "type": "Q", "versions": "0+"}]), "A.B: nothing says what Q is"),
    ],
)
def test_what_is_wrong_with_a_definition(tmp_path: Path, raw: dict[str, object], reason: str) -> None:
    with pytest.raises(SchemaError) as caught:
        read(folder(tmp_path, Bad=json.dumps(raw)), "4.4")
    assert str(caught.value) == f"Bad.json: not a message definition: {reason}"


def test_json_that_cannot_be_parsed(tmp_path: Path) -> None:
    with pytest.raises(SchemaError) as caught:
        read(folder(tmp_path, Bad='{"name": }'), "4.4")
    assert str(caught.value) == "Bad.json: not a message definition: Expecting value: line 1 column 10 (char 9)"


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "Bad.json").write_bytes(b"\xff\xfe{}")
    with pytest.raises(SchemaError, match=r"^Bad\.json: not a message definition: 'utf-8' codec can't decode"):
        read(tmp_path, "4.4")


def test_a_struct_that_holds_itself(tmp_path: Path) -> None:
    inner = [{"name": "Again", "type": "Loop", "versions": "0+"}]
    raw = {**PLAIN, "fields": inner, "commonStructs": [{"name": "Loop", "versions": "0+", "fields": inner}]}
    with pytest.raises(
        SchemaError, match=r"^Bad\.json: not a message definition: nested too deep, or a struct that holds itself"
    ):
        read(folder(tmp_path, Bad=json.dumps(raw)), "4.4")
