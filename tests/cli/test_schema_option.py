"""--schema of encode, decode and explain, and kwire schema import: definitions of another Kafka."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from kwire.errors import Exit
from kwire.schema.registry import HERE

FRAMES = Path(__file__).parents[2] / "fixtures" / "frames"

REQUEST = """\
// Version 5 is made up.
{
  "apiKey": 12, "type": "request", "listeners": ["broker"], "name": "HeartbeatRequest",
  "validVersions": "0-5", "flexibleVersions": "4+", "latestVersionUnstable": true,
  "fields": [
    { "name": "GroupId", "type": "string", "versions": "0+", "entityType": "groupId" },
    { "name": "GenerationId", "type": "int32", "versions": "0+" },
    { "name": "MemberId", "type": "string", "versions": "0+" },
    { "name": "GroupInstanceId", "type": "string", "versions": "3+", "nullableVersions": "3+", "default": "null" },
    { "name": "Mood", "type": "int8", "versions": "5+", },
  ]
}
"""
RESPONSE = """\
{
  "apiKey": 12, "type": "response", "name": "HeartbeatResponse", "validVersions": "0-5", "flexibleVersions": "4+",
  "fields": [
    { "name": "ThrottleTimeMs", "type": "int32", "versions": "1+" },
    { "name": "ErrorCode", "type": "int16", "versions": "0+" },
    { "name": "Advice", "type": "string", "taggedVersions": "5+", "tag": "0", "nullableVersions": "5+" }
  ]
}
"""
DEMAND = '{"GroupId": "g", "GenerationId": 3, "MemberId": "m", "Mood": 4}'


def kwire(*args: object, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Runs the command as a user does."""
    command = [sys.executable, "-m", "kwire", *map(str, args)]
    return subprocess.run(command, input=given, capture_output=True, timeout=60, check=False)


def answer(*args: object, given: bytes = b"") -> Any:
    """The JSON that a command prints."""
    done = kwire(*args, "--format", "json", given=given)
    assert (done.returncode, done.stderr) == (Exit.OK, b"")
    return json.loads(done.stdout)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with an unreleased Heartbeat."""
    path = tmp_path / "definitions"
    path.mkdir()
    (path / "HeartbeatRequest.json").write_text(REQUEST, "utf-8")
    (path / "HeartbeatResponse.json").write_text(RESPONSE, "utf-8")
    return path


def encoded(folder: Path, name: str, text: str, *more: object) -> bytes:
    done = kwire("encode", name, text, "-v", 5, "--raw", "--schema", folder, *more)
    assert (done.returncode, done.stderr) == (Exit.OK, b"")
    return done.stdout


def test_an_unreleased_request_is_written_and_read(folder: Path) -> None:
    frame = encoded(folder, "HeartbeatRequest", DEMAND, "--size", "--correlation-id", 7)
    assert frame.hex() == (
        "0000001b" + "000c" + "0005" + "00000007" + "0005" + b"kwire".hex() + "00" + "0267" + "00000003" + "026d000400"
    )
    record = answer("decode", "--schema", folder, given=frame)
    assert (record["api"], record["api_version"], record["quality"]) == ("Heartbeat", 5, "ok")
    assert record["body"]["Mood"] == 4


def test_an_unreleased_response_with_a_tagged_field_is_written_and_read(folder: Path) -> None:
    body = encoded(folder, "HeartbeatResponse", '{"ErrorCode": 27, "Advice": "be well"}')
    assert body.hex() == "00000000" + "001b" + "01" + "0008" + "08" + b"be well".hex()
    record = answer("decode", "--schema", folder, "--as", "HeartbeatResponse", "-v", 5, given=body)
    assert record["body"]["Advice"] == "be well"


def test_without_the_option_the_version_is_not_known(folder: Path) -> None:
    done = kwire("encode", "HeartbeatRequest", "-v", 5, DEMAND)
    assert done.stderr == b"kwire: no version 5 of HeartbeatRequest (it has 0-4)\n"
    assert done.returncode == Exit.USAGE
    frame = encoded(folder, "HeartbeatRequest", DEMAND, "--size")
    assert b"Mood" not in kwire("decode", given=frame).stdout


def test_a_page_shows_the_unreleased_fields_with_the_words_that_are_known(folder: Path) -> None:
    page = kwire("explain", "HeartbeatRequest", "--schema", folder).stdout.decode()
    assert page.startswith("HeartbeatRequest v5 · api key 12 · versions 0-5\n")
    assert "        Mood                 int8 · 1B\n" in page
    assert "What is Heartbeat?" in page
    assert "As assigned by the coordinator in JoinGroup." in " ".join(page.split())


def test_the_releases_of_the_page_are_only_those_that_kwire_knows(folder: Path) -> None:
    page = kwire("explain", "HeartbeatRequest", "--schema", folder).stdout.decode()
    assert "  brokers   Kafka 4.0 and later: v0-4\n" in page


def test_a_field_of_the_other_schema_is_explained(folder: Path) -> None:
    done = kwire("explain", "Heartbeat.Mood", "--schema", folder)
    assert done.stdout.decode().startswith("HeartbeatRequest.Mood · int8 · versions 5\n")


def test_a_jar_will_do(folder: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "kafka-clients-4.5.0.jar", "w") as jar:
        for path in folder.iterdir():
            jar.write(path, f"common/message/{path.name}")
    frame = encoded(tmp_path / "kafka-clients-4.5.0.jar", "HeartbeatRequest", DEMAND, "--size")
    assert answer("decode", "--schema", tmp_path / "kafka-clients-4.5.0.jar", given=frame)["body"]["Mood"] == 4


@pytest.mark.slow
@pytest.mark.parametrize("name", ["HeartbeatRequest.v3", "FetchRequest.v18", "ApiVersionsRequest.v4"])
def test_frames_that_the_schema_says_nothing_about_read_as_before(folder: Path, name: str) -> None:
    frame = FRAMES / f"{name}.bin"
    assert kwire("decode", frame, "--schema", folder).stdout == kwire("decode", frame).stdout != b""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"name": }', "Bad.json: not a message definition: Expecting value: line 1 column 10 (char 9)"),
        (REQUEST.replace('"int8"', '"int7"'), "Bad.json: not a message definition: Mood: nothing says what int7 is"),
        (REQUEST.replace('"Mood"', '"../Mood"'), "Bad.json: not a message definition: '../Mood' is not a name"),
        ("{}", "{folder}: holds no message definitions"),
    ],
)
@pytest.mark.parametrize("command", ["explain", "import"])
def test_a_definition_that_cannot_be_read_is_one_line(tmp_path: Path, content: str, message: str, command: str) -> None:
    folder = tmp_path / "bad"
    folder.mkdir()
    (folder / "Bad.json").write_text(content, "utf-8")
    explain = ("explain", "Heartbeat", "--schema", folder)
    imports = ("schema", "import", folder, "--release", "4.5", "--into", tmp_path / "out")
    done = kwire(*(explain if command == "explain" else imports))
    assert done.stderr.decode() == f"kwire: {message.replace('{folder}', str(folder))}\n"
    assert (done.returncode, done.stdout) == (Exit.USAGE, b"")


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    done = kwire("explain", "Fetch", "--schema", tmp_path / "none")
    assert done.returncode == Exit.USAGE
    assert b"does not exist" in done.stderr


# ---------------------------------------------------------------- kwire schema import


def imported(folder: Path, into: Path, release: str = "4.5") -> list[str]:
    done = kwire("schema", "import", folder, "--release", release, "--into", into)
    assert (done.returncode, done.stderr) == (Exit.OK, b"")
    return done.stdout.decode().splitlines()


def lines(path: Path) -> list[str]:
    """A file's lines without the blanks that only align columns."""
    return [" ".join(line.split()) for line in path.read_text("utf-8").splitlines()]


def test_an_import_into_an_empty_folder_makes_files_and_the_second_changes_nothing(
    folder: Path, tmp_path: Path
) -> None:
    into = tmp_path / "out"
    assert imported(folder, into) == [
        "new      apis/12_heartbeat.txt",
        "Kafka 4.5: 2 definitions read, 1 new, 0 changed",
    ]
    assert imported(folder, into) == ["Kafka 4.5: 2 definitions read, 0 new, 0 changed"]
    assert "Mood int8 5+" in lines(into / "apis/12_heartbeat.txt")


def test_an_import_into_a_copy_of_kwires_own_keeps_every_word(folder: Path, tmp_path: Path) -> None:
    into = tmp_path / "schema"
    into.mkdir()
    shutil.copytree(HERE / "data", into / "data")
    (into / "apis").mkdir()
    shutil.copy(HERE / "apis/12_heartbeat.txt", into / "apis")
    before = lines(into / "apis/12_heartbeat.txt")
    assert imported(folder, into)[0] == "changed  apis/12_heartbeat.txt"
    after = lines(into / "apis/12_heartbeat.txt")
    lost = [line for line in before if line not in after]
    assert [line.split()[0] for line in lost] == ["releases", "request", "response"]
    assert [line for line in after if line not in before] == [
        f"{lost[0]}, 4.5 0-5/4",
        "request 0-5 flexible 4+",
        "Mood int8 5+",
        "response 0-5 flexible 4+",
        "Advice string? 5+ tag 0",
    ]


@pytest.mark.parametrize("release", ["four", "4"])
def test_a_release_that_is_none_is_one_line(folder: Path, tmp_path: Path, release: str) -> None:
    done = kwire("schema", "import", folder, "--release", release, "--into", tmp_path / "out")
    assert done.stderr.decode() == f"kwire: {release}: is not a release such as 4.4\n"
    assert (done.returncode, (tmp_path / "out").exists()) == (Exit.USAGE, False)


def test_a_folder_does_not_tell_its_release(folder: Path, tmp_path: Path) -> None:
    done = kwire("schema", "import", folder, "--into", tmp_path / "out")
    assert done.stderr.decode() == f"kwire: {folder}: does not tell its release; say it with --release\n"
    assert done.returncode == Exit.USAGE
