"""The text form: every file is canonical, every attribute is read and written, and an error names file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire.errors import SchemaError
from kwire.schema import text
from kwire.schema.model import NONE, OPEN, Meaning, RelatedError, Release, Renamed, Versions
from kwire.schema.registry import HERE

FILES = sorted(HERE.glob("apis/*.txt")) + sorted(HERE.glob("data/*.txt"))
PAGE = """\
api 7 Sample
  area      tests
  since     1.0
  kips      KIP-1 (v0), KIP-2 (v1)
  sender    client to broker
  listeners broker controller
  was       Example<3.1 Trial<2.0
  aka       Specimen
  releases  2.2 0-1, 2.4 0-2/1, 4.0 none
  differs   SampleRequest v1 before 3.0 had Old (int8)
  differs   SampleRequest v2 before 3.0 lacked New (int8)

about
  One paragraph.

  Another one.

trips
  Beware.

errors
  INVALID_REQUEST  when it is wrong
  NONE

versions
  0   First version.
  2   Flexible encoding.

request 0-2 flexible 2+
  Name    []string?1+  0+
    : What it is called. = 1 is meant literally here.
  Kind    int8         0-1  = -1
    : A note.
    = -1 ANY  whatever
    = 1 ONE  the first
  Parts   []Part       1+
    Index  int32  1+  tag 0@2+  = 0  brokerId
    Word   bytes  1   = ""  secret
  Next    Cursor?      2+   tag 1
  Client  string       0+   inflexible  was Id<3.0  was Key<2.0

struct Cursor 0+
  Topic  string  0+  topicName

response 0-2 flexible 2+
  ErrorCode  int16  0+  error
"""
SAMPLE = text.parse(PAGE, "sample.txt")


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_file_is_in_canonical_form(path: Path) -> None:
    page = path.read_text("utf-8")
    assert text.dump(text.parse(page, path.name)) == page


def test_there_are_files() -> None:
    assert len([path for path in FILES if path.parent.name == "apis"]) == 95
    assert len([path for path in FILES if path.parent.name == "data"]) > 80


def test_every_attribute_is_written_as_it_is_read() -> None:
    assert text.dump(SAMPLE) == PAGE


def test_a_note_may_go_on_in_more_lines() -> None:
    page = "message X\n\nfields 0\n  A  int8  0\n    : One\n    : = two.\n"
    assert text.parse(page).messages[0].fields[0].note == "One = two."


def test_the_head() -> None:
    assert (SAMPLE.name, SAMPLE.key, SAMPLE.is_api) == ("Sample", 7, True)
    assert (SAMPLE.area, SAMPLE.since, SAMPLE.kips) == ("tests", "1.0", "KIP-1 (v0), KIP-2 (v1)")
    assert (SAMPLE.sender, SAMPLE.listeners) == ("client to broker", "broker controller")
    assert SAMPLE.was == (Renamed("Example", "3.1"), Renamed("Trial", "2.0"))
    assert SAMPLE.aka == ("Specimen",)
    assert SAMPLE.releases == (
        Release("2.2", Versions(0, 1), 1),
        Release("2.4", Versions(0, 2), 1),
        Release("4.0", NONE, -1),
    )
    assert SAMPLE.differs == (
        "SampleRequest v1 before 3.0 had Old (int8)",
        "SampleRequest v2 before 3.0 lacked New (int8)",
    )


def test_the_words() -> None:
    assert SAMPLE.about == "One paragraph.\n\nAnother one."
    assert SAMPLE.trips == "Beware."
    assert SAMPLE.errors == (RelatedError("INVALID_REQUEST", "when it is wrong"), RelatedError("NONE", ""))
    assert SAMPLE.changes == ((0, "First version."), (2, "Flexible encoding."))


def test_the_messages() -> None:
    request, response = SAMPLE.messages
    assert (request.name, request.kind, request.versions, request.flexible) == (
        "SampleRequest",
        "request",
        Versions(0, 2),
        Versions(2, OPEN),
    )
    assert [struct.name for struct in request.structs] == ["Cursor"]
    assert response.structs == ()
    assert [path for path, _ in request.walk()] == [
        *("Name", "Kind", "Parts", "Parts.Index", "Parts.Word", "Next", "Next.Topic", "Client"),
    ]
    assert response.fields[0].error


def test_the_fields() -> None:
    fields = dict(SAMPLE.messages[0].walk())
    assert fields["Name"].nullable == Versions(1, OPEN)
    assert fields["Name"].note == "What it is called. = 1 is meant literally here."
    assert fields["Kind"].default == "-1"
    assert fields["Kind"].meanings == (Meaning(-1, "ANY", "whatever"), Meaning(1, "ONE", "the first"))
    index = fields["Parts.Index"]
    assert (index.tag, index.tagged, index.versions) == (0, Versions(2, OPEN), Versions(1, OPEN))
    assert (index.default, index.entity) == ("0", "brokerId")
    assert (fields["Parts.Word"].default, fields["Parts.Word"].secret) == ("", True)
    assert (fields["Next"].nullable, fields["Next"].tagged) == (Versions(2, OPEN), Versions(2, OPEN))
    assert fields["Client"].inflexible
    assert fields["Client"].was == (Renamed("Id", "3.0"), Renamed("Key", "2.0"))


def test_a_message_that_is_no_api_says_its_kind() -> None:
    page = "message OffsetKey 1\n  kind      coordinator-key\n\nfields 0\n  Group  string  0\n"
    definition = text.parse(page)
    assert (definition.name, definition.key, definition.is_api) == ("OffsetKey", 1, False)
    assert (definition.messages[0].name, definition.messages[0].kind) == ("OffsetKey", "coordinator-key")
    assert text.dump(definition) == page


@pytest.mark.parametrize(
    ("line", "name", "key"),
    [("api 12 Heartbeat\n", "Heartbeat", 12), ("message OffsetKey 1", "OffsetKey", 1), ("message X", "X", None)],
)
def test_the_first_line_alone_tells_name_and_key(line: str, name: str, key: int | None) -> None:
    assert text.parse_head(line) == (name, key)


BEGIN = "api 1 X\n  area  a\n"


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("", "x.txt: does not begin with api or message"),
        ("about\n  words\n", "x.txt: does not begin with api or message"),
        ("  area a\n", "x.txt:1: indented, but under no block"),
        ("api 1 X\n", "x.txt: has no messages"),
        ("api one X\n", "x.txt:1: cannot be read: invalid literal for int() with base 10: 'one'"),
        ("api 1\n", "x.txt:1: cannot be read: a word is missing"),
        ("api 1 X\n    area a\n", "x.txt:2: goes on with a head line, but there is none"),
        ("api 1 X\n  arena a\n", "x.txt:2: no head line is called arena"),
        (BEGIN + "   since 1\n", "x.txt:3: indented by an odd number of blanks"),
        (BEGIN + "\nwords\n  more\n", "x.txt:4: no block is called words"),
        (
            "api 1 X\n  releases  2.2\n",
            "x.txt:1: cannot be read: not enough values to unpack (expected at least 2, got 1)",
        ),
        ("api 1 X\n  releases  2.2 a-b\n", "x.txt:1: cannot be read: invalid literal for int() with base 10: 'a'"),
        (BEGIN + "\nversions\n  v1  First.\n", "x.txt:4: cannot be read: invalid literal for int() with base 10: 'v1'"),
        (BEGIN + "\nerrors\n    NONE\n", "x.txt:4: cannot be read: a word is missing"),
        (BEGIN + "\nrequest\n  A  int8  0+\n", "x.txt:4: cannot be read: a word is missing"),
        (BEGIN + "\nrequest zero\n", "x.txt:4: cannot be read: invalid literal for int() with base 10: 'zero'"),
        (BEGIN + "\nstruct S 0+\n  A  int8  0+\n", "x.txt:4: cannot be read: a word is missing"),
        (
            BEGIN + "\nrequest 0\n  A  int8\n",
            "x.txt:5: not a field: A  int8 (not enough values to unpack (expected at least 3, got 2))",
        ),
        (
            BEGIN + "\nrequest 0\n  B  int8  0+\n  A  int8  x+\n",
            "x.txt:6: not a field: A  int8  x+ (invalid literal for int() with base 10: 'x')",
        ),
        (BEGIN + "\nrequest 0\n  A  int8  0\n      B  int8  0\n", "x.txt:6: indented deeper than its parent's fields"),
        (
            BEGIN + "\nrequest 0\n  A  int8  0+\n    = x ONE  first\n",
            "x.txt:6: cannot be read: invalid literal for int() with base 10: 'x'",
        ),
    ],
)
def test_an_error_names_file_and_line(page: str, message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        text.parse(page, "x.txt")
    assert str(caught.value) == message


@pytest.mark.parametrize("end", ["tag", "=", "was", "was Old", "tag x"])
def test_an_attribute_without_its_value_names_the_line(end: str) -> None:
    with pytest.raises(SchemaError, match=r"^x\.txt:5: not a field: A  int8  0\+  "):
        text.parse(f"{BEGIN}\nrequest 0\n  A  int8  0+  {end}\n", "x.txt")


def test_long_words_wrap_and_come_back_whole() -> None:
    words = " ".join(f"word{number}" for number in range(80))
    page = text.dump(text.parse(f"{BEGIN}\nabout\n  {words}\n\nrequest 0\n  A  int8  0+\n    : {words}\n"))
    assert max(len(line) for line in page.splitlines()) <= text.WIDTH
    again = text.parse(page)
    assert again.about == words
    assert again.messages[0].fields[0].note == words
