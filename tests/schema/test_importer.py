"""Importing a release into the text files, and laying one over kwire's own definitions without writing anything."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import pytest

from kwire.codec.library import Library
from kwire.errors import SchemaError
from kwire.outputs import Output
from kwire.schema import text
from kwire.schema.importer import Imported, compress, import_source, load_folder, overlay
from kwire.schema.model import Definition, Field, Release, Renamed, Struct, Versions, release_order
from kwire.schema.official import Official, ReleaseSource, convert
from kwire.schema.registry import HERE, Registry, builtin

Raw = dict[str, object]


def raw(name: str, kind: str, key: int | None, versions: str, *fields: Raw, **more: object) -> Official:
    head: Raw = {"name": name, "type": kind, "validVersions": versions, "fields": list(fields), **more}
    return convert(head if key is None else {**head, "apiKey": key})


def field(name: str, kind: str, versions: str, **more: object) -> Raw:
    return {"name": name, "type": kind, "versions": versions, **more}


def sample(release: str, versions: str = "0-1", name: str = "Sample", *extra: Raw, **more: object) -> ReleaseSource:
    """An API of key 7 and a record, as a release has them."""
    request = raw(f"{name}Request", "request", 7, versions, field("Word", "bytes", "0+"), *extra, **more)
    response = raw(f"{name}Response", "response", 7, versions, field("ErrorCode", "int16", "0+"))
    record = raw("SampleRecord", "metadata", 3, "0", field("Id", "int32", "0+"))
    return ReleaseSource(release, (request, response, record))


def names(imported: Imported) -> tuple[list[str], list[str]]:
    made, changed = ([f"{path.parent.name}/{path.name}" for path in paths] for paths in imported)
    return made, changed


def api(folder: Path) -> Definition:
    return next(one for one in load_folder(folder).values() if one.is_api)


# ---------------------------------------------------------------- files


def test_an_empty_folder_gets_a_file_for_each_api_and_each_message(tmp_path: Path) -> None:
    assert names(import_source(sample("3.9", listeners=["broker", "controller"]), tmp_path / "new")) == (
        ["apis/07_sample.txt", "data/sample_record.txt"],
        [],
    )
    assert (tmp_path / "new/apis/07_sample.txt").read_text("utf-8") == (
        "api 7 Sample\n  listeners broker controller\n  releases  3.9 0-1\n\n"
        "request 0-1\n  Word  bytes  0+\n\nresponse 0-1\n  ErrorCode  int16  0+  error\n"
    )
    assert (tmp_path / "new/data/sample_record.txt").read_text("utf-8") == (
        "message SampleRecord 3\n  kind      metadata\n  releases  3.9 0\n\nfields 0\n  Id  int32  0+\n"
    )


def test_a_second_time_changes_nothing(tmp_path: Path) -> None:
    import_source(sample("3.9"), tmp_path)
    before = {path: path.stat().st_mtime_ns for path in load_folder(tmp_path)}
    assert import_source(sample("3.9"), tmp_path) == Imported((), ())
    assert {path: path.stat().st_mtime_ns for path in load_folder(tmp_path)} == before


def test_a_request_without_its_response_is_no_api(tmp_path: Path) -> None:
    request, _, record = sample("3.9").found
    assert names(import_source(ReleaseSource("3.9", (request, record)), tmp_path)) == (["data/sample_record.txt"], [])


def test_a_message_without_versions_is_not_imported(tmp_path: Path) -> None:
    assert names(import_source(sample("4.0", versions="none"), tmp_path)) == (["data/sample_record.txt"], [])


WORDS = """\
api 7 Sample
  area      tests
  since     3.9
  listeners broker
  releases  3.9 0-1

about
  What it is for.

trips
  Beware.

errors
  INVALID_REQUEST  when it is wrong

versions
  0   First version.

request 0-1
  Word  bytes  0+  topicName  secret
    : What it is.

response 0-1
  ErrorCode  int16  0+  error
    = 0 NONE  all is well
"""


def test_words_and_marks_survive_an_import(tmp_path: Path) -> None:
    (tmp_path / "apis").mkdir()
    (tmp_path / "apis/07_sample.txt").write_text(WORDS, "utf-8")
    _, changed = names(import_source(sample("4.0", "0-2", "Sample", field("More", "int8", "2+")), tmp_path))
    assert changed == ["apis/07_sample.txt"]
    after = (tmp_path / "apis/07_sample.txt").read_text("utf-8")
    assert after == (
        WORDS.replace("3.9 0-1", "3.9 0-1, 4.0 0-2")
        .replace("request 0-1", "request 0-2")
        .replace("response 0-1", "response 0-2")
        .replace("  : What it is.\n", "  : What it is.\n  More  int8   2+\n")
    )


def test_an_error_leaves_all_files_as_they_were(tmp_path: Path) -> None:
    import_source(sample("3.9"), tmp_path)
    before = load_folder(tmp_path)
    new = raw("AnotherRecord", "metadata", 9, "0", field("Id", "int8", "0+"))
    with pytest.raises(SchemaError) as caught:
        import_source(ReleaseSource("4.0", (new, *sample("4.0", "3-4").found)), tmp_path)
    assert str(caught.value) == "SampleRequest: versions 0-1 and 3-4 leave a hole"
    assert load_folder(tmp_path) == before


# ---------------------------------------------------------------- names and releases


def test_a_full_disk_leaves_all_files_as_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import_source(sample("3.9"), tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    opened, open_one = [], Output.open

    def full(self: Output) -> BinaryIO:
        opened.append(self)
        if len(opened) == 2:
            raise OSError(28, "No space left on device", str(self))
        return open_one(self)

    monkeypatch.setattr(Output, "open", full)
    more = ReleaseSource(
        "4.0", (*sample("4.0", "0-2").found, raw("OtherRecord", "metadata", 4, "0", field("Id", "int8", "0+")))
    )
    with pytest.raises(OSError, match="No space left"):
        import_source(more, tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_an_api_renamed_moves_its_file_and_remembers_the_name(tmp_path: Path) -> None:
    import_source(sample("3.9"), tmp_path)
    assert names(import_source(sample("4.0", name="Example"), tmp_path)) == ([], ["apis/07_example.txt"])
    assert [path.name for path in sorted((tmp_path / "apis").iterdir())] == ["07_example.txt"]
    definition = api(tmp_path)
    assert (definition.name, definition.was) == ("Example", (Renamed("Sample", "4.0"),))
    assert [message.name for message in definition.messages] == ["ExampleRequest", "ExampleResponse"]


def test_an_api_that_a_release_lacks_is_gone_from_it_on(tmp_path: Path) -> None:
    import_source(sample("3.9"), tmp_path)
    ping = [raw(f"Ping{kind.title()}", kind, 8, "0", field("A", "int8", "0+")) for kind in ("request", "response")]
    made, changed = names(import_source(ReleaseSource("4.0", tuple(ping)), tmp_path))
    assert (made, changed) == (["apis/08_ping.txt"], ["apis/07_sample.txt"])
    assert "  releases  3.9 0-1, 4.0 none\n" in (tmp_path / "apis/07_sample.txt").read_text("utf-8")
    assert names(import_source(ReleaseSource("4.1", tuple(ping)), tmp_path)) == ([], [])


def test_a_source_of_records_alone_takes_no_api_away(tmp_path: Path) -> None:
    import_source(sample("3.9"), tmp_path)
    assert import_source(ReleaseSource("4.0", sample("4.0").found[2:]), tmp_path) == Imported((), ())


def test_a_version_in_work_is_noted(tmp_path: Path) -> None:
    import_source(sample("4.1", latestVersionUnstable=True), tmp_path)
    assert api(tmp_path).releases == (Release("4.1", Versions(0, 1), 0),)


def test_an_older_release_that_comes_late_adds_only_what_is_missing(tmp_path: Path) -> None:
    import_source(sample("4.0", "1-2", "Example", field("New", "int8", "1+"), listeners=["broker"]), tmp_path)
    old = sample("3.9", "0-1", "Sample", field("Old", "int8", "1+"), listeners=["zkBroker"])
    import_source(old, tmp_path)
    definition = api(tmp_path)
    assert (definition.name, definition.was, definition.listeners) == ("Example", (), "broker")
    assert definition.releases == (Release("3.9", Versions(0, 1), 1), Release("4.0", Versions(1, 2), 2))
    assert [one.name for one in definition.messages[0].fields] == ["Word", "New"]
    assert definition.messages[0].versions == Versions(0, 2)


def test_before_3_0_only_the_range_of_versions_is_taken(tmp_path: Path) -> None:
    import_source(sample("3.9", "0-3"), tmp_path)
    draft = sample("2.4", "0-2", "Draft", field("NeverSent", "int8", "0+"))
    assert names(import_source(draft, tmp_path)) == ([], ["apis/07_sample.txt", "data/sample_record.txt"])
    definition = api(tmp_path)
    assert definition.releases == (Release("2.4", Versions(0, 2), 2), Release("3.9", Versions(0, 3), 3))
    assert [one.name for one in definition.messages[0].fields] == ["Word"]


def test_drafts_of_what_is_not_known_are_not_imported(tmp_path: Path) -> None:
    assert import_source(sample("2.8"), tmp_path) == Imported((), ())


def test_releases_are_kept_in_order_and_only_where_something_changes() -> None:
    one, two = Versions(0, 1), Versions(0, 2)
    releases = [Release("2.10", two, 2), Release("2.9", one, 1), Release("3.0", two, 2), Release("2.2", one, 1)]
    assert compress(releases) == (Release("2.2", one, 1), Release("2.10", two, 2))


# ---------------------------------------------------------------- kwire's own definitions


def bare(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    """Fields as an official file has them: no words, no marks set by hand."""
    return tuple(
        one._replace(note="", meanings=(), secret=False, entity="", was=(), fields=bare(one.fields)) for one in fields
    )


def own(release: str) -> ReleaseSource:
    """What kwire knows of a release, as a source."""
    found = []
    for definition in (*builtin().apis(), *builtin().data()):
        spoken = [one for one in definition.releases if one.order <= release_order(release)]
        if not spoken or not spoken[-1].versions:
            continue
        _, versions, stable = spoken[-1]
        for message in definition.messages:
            structs = tuple(Struct(one.name, one.versions, bare(one.fields)) for one in message.structs)
            plain = replace(message, versions=versions, fields=bare(message.fields), structs=structs)
            found.append(Official(plain, definition.key, tuple(definition.listeners.split()), stable < versions.high))
    return ReleaseSource(release, tuple(found))


@pytest.mark.parametrize("release", ["4.4", "4.1", "3.9", "3.0", "2.4"])
def test_importing_a_known_release_into_kwires_own_definitions_changes_nothing(release: str, tmp_path: Path) -> None:
    for name in ("apis", "data"):
        shutil.copytree(HERE / name, tmp_path / name)
    source = own(release)
    assert len(source.found) > 80
    assert import_source(source, tmp_path) == Imported((), ())


def test_a_known_release_needs_no_overlay() -> None:
    assert overlay(own("4.4"), builtin()) == []


# ---------------------------------------------------------------- overlay


def heartbeat(versions: str, *extra: Raw) -> ReleaseSource:
    """Heartbeat as a hand-made folder could have it."""
    request = raw(
        "HeartbeatRequest", "request", 12, versions,
        field("GroupId", "string", "0+"), field("GenerationId", "int32", "0+"), field("MemberId", "string", "0+"),
        field("GroupInstanceId", "string", "3+", nullableVersions="3+", default="null"), *extra,
        flexibleVersions="4+",
    )  # fmt: skip
    response = raw(
        "HeartbeatResponse", "response", 12, versions,
        field("ThrottleTimeMs", "int32", "1+"), field("ErrorCode", "int16", "0+"), flexibleVersions="4+",
    )  # fmt: skip
    return ReleaseSource("4.5", (request, response))


def in_front(source: ReleaseSource) -> Registry:
    return Registry(HERE, overlay(source, builtin()))


def test_an_unreleased_version_encodes_and_decodes() -> None:
    library = Library(in_front(heartbeat("0-5", field("Mood", "int8", "5+"))))
    data = library.codec("HeartbeatRequest", 5).encode({"GroupId": "g", "MemberId": "m", "GenerationId": 3, "Mood": 4})
    assert data.hex() == "0267" + "00000003" + "026d" + "00" + "04" + "00"
    assert library.codec("HeartbeatRequest", 5).decode(data)["Mood"] == 4


def test_words_stand_in_the_overlay_too_and_nothing_is_written() -> None:
    known = builtin().api(12)
    definition = in_front(heartbeat("0-5", field("Mood", "int8", "5+"))).api(12)
    assert (definition.about, definition.releases) == (known.about, known.releases)
    assert definition.messages[0].fields[1].note == known.messages[0].fields[1].note
    assert text.parse((HERE / "apis/12_heartbeat.txt").read_text("utf-8")) == known


def test_older_versions_stay_readable() -> None:
    registry = in_front(heartbeat("4-5", field("Mood", "int8", "5+")))
    assert registry.message("HeartbeatRequest").versions == Versions(0, 5)


def test_a_layout_that_differs_leads_even_where_the_two_do_not_fit_together() -> None:
    message = in_front(heartbeat("1-3", field("Mood", "int8", "2+"))).message("HeartbeatRequest")
    assert message.versions == Versions(1, 3)
    assert [one.name for one in message.fields][-1] == "Mood"
    assert message.fields[1].note == builtin().message("HeartbeatRequest").fields[1].note


def test_secrets_stay_secret() -> None:
    auth = [
        raw(f"SaslAuthenticate{kind.title()}", kind, 36, "0-3", field("AuthBytes", "bytes", "0+"))
        for kind in ("request", "response")
    ]
    registry = in_front(ReleaseSource("4.5", tuple(auth)))
    assert [dict(one.walk())["AuthBytes"].secret for one in registry.api(36).messages] == [True, True]


def test_an_api_that_kwire_does_not_know() -> None:
    ping = [raw(f"Ping{kind.title()}", kind, 200, "0", field("A", "int8", "0+")) for kind in ("request", "response")]
    registry = in_front(ReleaseSource("9.9", tuple(ping)))
    assert (registry.name_of(200), registry.api(200).releases, registry.keys()[-1]) == ("Ping", (), 200)
    assert registry.message("PingResponse").versions == Versions(0, 0)
    assert registry.api(12) == builtin().api(12)


def test_an_older_name_leads_when_the_source_has_it() -> None:
    known = builtin().api(56)
    messages = [replace(one, name=one.name.replace("AlterPartition", "AlterIsr")) for one in known.messages]
    registry = in_front(ReleaseSource("3.1", tuple(Official(one, 56, ("controller",), False) for one in messages)))
    assert (registry.name_of(56), registry.api(56).was) == ("AlterIsr", ())
    assert registry.message("AlterIsrRequest").versions == known.messages[0].versions


def test_drafts_do_not_lead() -> None:
    with pytest.raises(SchemaError) as caught:
        overlay(ReleaseSource("2.8", heartbeat("0-5").found), builtin())
    assert str(caught.value) == "Kafka 2.8: its definitions are drafts; only those of 3.0+ hold"


def test_a_message_that_the_source_no_longer_speaks_is_not_laid_over() -> None:
    assert overlay(heartbeat("none"), builtin()) == []
