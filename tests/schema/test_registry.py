"""Finding definitions: by any spelling, by key, by older names, and what is near a name that nobody knows."""

# mypy: disable-error-code="func-returns-value"

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from vectors import jsonl

from kwire.errors import UnknownName
from kwire.schema.registry import HERE, Registry, builtin, fold


def official_apis() -> list[tuple[int, str]]:
    """Key and name of every API in the official jars."""
    return sorted({(row["id"], row["name"]) for row in jsonl("vectors/apis")})


def test_every_official_api_is_there_under_its_key() -> None:
    assert [(key, builtin().api(key).name) for key, _ in official_apis() if key != 74] == [
        (key, name) for key, name in official_apis() if key != 74
    ]
    assert {name for key, name in official_apis() if key == 74} == {"ListConfigResources", "ListClientMetricsResources"}
    assert builtin().keys() == sorted({key for key, _ in official_apis()})


def test_a_files_name_follows_from_what_is_in_it() -> None:
    for definition in builtin().apis():
        assert builtin().find(definition.name) == (definition, None, None)
        assert builtin().name_of(definition.key or 0) == definition.name
    for definition in builtin().data():
        assert builtin().find(definition.name) == (definition, definition.messages[0], None)


@pytest.mark.parametrize(
    "name",
    [
        *("OffsetForLeaderEpoch", "offsetforleaderepoch", "OFFSETFORLEADEREPOCH"),
        *("OFFSET_FOR_LEADER_EPOCH", "offset-for-leader-epoch", "offset for leader epoch"),
    ],
)
def test_an_api_by_any_spelling(name: str) -> None:
    found = builtin().find(name)
    assert (found.definition.key, found.message, found.was) == (23, None, None)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("FetchRequest", "FetchRequest"),
        ("fetch_response", "FetchResponse"),
        ("FETCH-REQUEST", "FetchRequest"),
        ("RequestHeader", "RequestHeader"),
        ("response-header", "ResponseHeader"),
        ("offset_commit_value", "OffsetCommitValue"),
    ],
)
def test_a_message_by_any_spelling(name: str, message: str) -> None:
    found = builtin().find(name)
    assert found.message is not None
    assert found.message.name == message
    assert builtin().message(name) == found.message


OLD_NAMES = [
    ("TopicMetadata", 3, "Metadata"),
    ("GroupCoordinator", 10, "FindCoordinator"),
    ("ConsumerMetadata", 10, "FindCoordinator"),
    ("ListOffset", 2, "ListOffsets"),
    ("Offsets", 2, "ListOffsets"),
    ("OffsetsForLeaderEpoch", 23, "OffsetForLeaderEpoch"),
    ("ElectPreferredLeaders", 43, "ElectLeaders"),
    ("AlterPartitionAssignments", 45, "AlterPartitionReassignments"),
    ("ListClientMetricsResources", 74, "ListConfigResources"),
    ("AlterIsr", 56, "AlterPartition"),
]


@pytest.mark.parametrize(("old", "key", "name"), OLD_NAMES)
def test_an_older_name_leads_to_the_page_that_has_it_now(old: str, key: int, name: str) -> None:
    definition, message, was = builtin().find(old)
    assert (definition.key, definition.name, message, was) == (key, name, None, old)


@pytest.mark.parametrize(("old", "key", "name"), OLD_NAMES)
@pytest.mark.parametrize("form", ["Request", "Response"])
def test_an_older_name_has_both_forms(old: str, key: int, name: str, form: str) -> None:
    definition, message, was = builtin().find(f"{old}{form}")
    assert message is not None
    assert (definition.key, message.name, was) == (key, f"{name}{form}", old)
    assert builtin().find(f"{fold(old)}_{form.upper()}").message == message


def test_every_older_name_is_one() -> None:
    known = {old for definition in builtin().apis() for old in (*(was.name for was in definition.was), *definition.aka)}
    assert known == {old for old, _, _ in OLD_NAMES}


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("FetchRespones", "no message FetchRespones; did you mean FetchResponse?"),
        ("Productrequest", "no message Productrequest; did you mean ProduceRequest?"),
        ("Hartbeat", "no message Hartbeat; did you mean Heartbeat?"),
        ("AlterIsrs", "no message AlterIsrs; did you mean AlterPartition?"),
        ("xyzzy", "no message xyzzy"),
    ],
)
def test_an_unknown_name_and_what_it_could_have_been(name: str, sentence: str) -> None:
    with pytest.raises(UnknownName) as caught:
        builtin().find(name)
    assert str(caught.value).rstrip("?").replace(", ", " or ").split(" or ")[0] == sentence.rstrip("?")


def test_the_nearest_names_are_the_ones_in_use_at_most_three() -> None:
    assert builtin().nearest("DescribeGroup")[0] == "DescribeGroups"
    assert len(builtin().nearest("ShareGroup")) <= 3
    assert len(set(builtin().nearest("ListOffsett"))) == len(builtin().nearest("ListOffsett"))


def test_a_message_is_asked_for_by_its_whole_name() -> None:
    with pytest.raises(UnknownName) as caught:
        builtin().message("Fetch")
    assert str(caught.value) == "no message Fetch; did you mean FetchRequest or FetchResponse?"


@pytest.mark.parametrize("name", ["OffsetCommitValueRequest", "RequestHeaderResponse"])
def test_records_and_headers_have_no_requests(name: str) -> None:
    with pytest.raises(UnknownName):
        builtin().find(name)


def test_an_unknown_key() -> None:
    assert builtin().name_of(9999) is None
    with pytest.raises(UnknownName) as caught:
        builtin().api(9999)
    assert str(caught.value) == "no API key 9999"


def test_names_are_those_of_apis_their_messages_and_the_others() -> None:
    names = builtin().names()
    assert {"Fetch", "FetchRequest", "FetchResponse", "RequestHeader", "OffsetCommitValue"} <= set(names)
    assert len(names) == len(set(names)) == 3 * len(builtin().keys()) + len(list(builtin().data()))


# ---------------------------------------------------------------- reading when asked


def test_a_known_name_reads_one_file(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    load = Registry._load
    monkeypatch.setattr(Registry, "_load", lambda self, path: (read.append(path.name), load(self, path))[1])
    registry = Registry()
    assert registry.find("heartbeat-request").definition.key == 12
    assert registry.api(12) is registry.api(12)
    assert set(read) == {"12_heartbeat.txt"}


def test_a_name_from_a_key_reads_no_more_than_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = Registry()
    monkeypatch.setattr(Registry, "_load", lambda *_: pytest.fail("a whole file was read"))
    assert [registry.name_of(key) for key in (0, 12, 94)] == ["Produce", "Heartbeat", "UnregisterController"]


def test_a_folder_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "apis").mkdir()
    page = "api 7 Own\n\nrequest 0\n  A  int8  0\n\nresponse 0\n  A  int8  0\n"
    (tmp_path / "apis/07_own.txt").write_text(page, "utf-8")
    (tmp_path / "apis/notes.md").write_text("not a definition", "utf-8")
    (tmp_path / "apis/draft.txt").write_text("no number in front", "utf-8")
    registry = Registry(tmp_path)
    assert (registry.keys(), registry.names()) == ([7], ["Own", "OwnRequest", "OwnResponse"])
    assert list(registry.data()) == []


def test_an_empty_folder_knows_nothing(tmp_path: Path) -> None:
    assert (Registry(tmp_path).keys(), Registry(tmp_path).names()) == ([], [])


def test_an_overlay_stands_in_front_of_the_files() -> None:
    changed = replace(builtin().api(12), about="Changed.")
    record = replace(builtin().find("OffsetCommitValue").definition, about="Changed too.")
    registry = Registry(HERE, [changed, record])
    assert registry.find("HeartbeatRequest").definition is registry.api(12) is changed
    assert registry.find("offset_commit_value").definition is record
    assert record in list(registry.data())
    assert registry.find("SyncGroup").definition == builtin().api(14)
    assert len(registry.keys()) == len(builtin().keys())
