"""What explain finds: messages, errors, numbers, fields, types; and what it says when it finds none."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.codec.library import builtin_library
from kwire.errors import UnknownName
from kwire.render.lines import plain
from kwire.render.lookup import LookupPage, look_up, returned_by
from kwire.render.types import read_types
from kwire.schema.errorcodes import errors
from kwire.schema.registry import builtin


def _answer(
    name: str, version: int | None = None, every: bool = False, diff: tuple[int, int] | None = None
) -> LookupPage:
    return look_up(name, builtin_library(), version, every, diff)


def _lines(answer: LookupPage, width: int = 80) -> list[str]:
    return [plain(line) for line in answer.lines(width)]


@pytest.mark.parametrize(
    ("name", "title", "first"),
    [
        ("Heartbeat", "Heartbeat v4", "Heartbeat v4 · api key 12 · versions 0-4"),
        (" heartbeat-response ", "HeartbeatResponse v4", "HeartbeatResponse v4 · api key 12 · versions 0-4"),
        ("ILLEGAL_GENERATION", "ILLEGAL_GENERATION", "ILLEGAL_GENERATION · error code 22 · not retriable"),
        ("illegal-generation", "ILLEGAL_GENERATION", "ILLEGAL_GENERATION · error code 22 · not retriable"),
        ("NOT_LEADER_FOR_PARTITION", "NOT_LEADER_OR_FOLLOWER", "NOT_LEADER_OR_FOLLOWER · error code 6 · retriable"),
        ("27", "27", "error code 27  REBALANCE_IN_PROGRESS · not retriable"),
        ("-1", "-1", "error code -1  UNKNOWN_SERVER_ERROR · not retriable"),
        ("Fetch.IsolationLevel", "Fetch.IsolationLevel", "FetchRequest.IsolationLevel · int8 · versions 4-18"),
        ("varint", "varint", "varint · 1 to 5 (varlong: 10) bytes, signed"),
        ("UUID", "uuid", "uuid · 16 bytes"),
    ],
)
def test_names_of_every_kind(name: str, title: str, first: str) -> None:
    answer = _answer(name)
    assert (answer.title, _lines(answer)[0]) == (title, first)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("FetchRespones", "no message, error, field, type or detector FetchRespones; did you mean FetchResponse"),
        (
            "ILLEGAL_GENERATOIN",
            "no message, error, field, type or detector ILLEGAL_GENERATOIN; did you mean ILLEGAL_GENERATION?",
        ),
        ("varlnt", "no message, error, field, type or detector varlnt; did you mean varint"),
        ("xyzzy", "no message, error, field, type or detector xyzzy"),
        ("999", "no error code or API key 999"),
        ("Fetch.Isolation", "no field Fetch.Isolation; did you mean Fetch.IsolationLevel?"),
        ("Fetch.xyzzy", "no field Fetch.xyzzy"),
        ("Fecth.IsolationLevel", "no message Fecth; did you mean Fetch"),
    ],
)
def test_unknown_names_get_the_nearest(name: str, complaint: str) -> None:
    with pytest.raises(UnknownName) as caught:
        _answer(name)
    assert str(caught.value).startswith(complaint)


def test_an_unknown_version_is_not_an_unknown_name() -> None:
    with pytest.raises(UnknownName, match=r"^no version 99 of FetchRequest \(it has 0-18\)$"):
        _answer("Fetch", version=99)


def test_an_error_says_what_it_means_and_who_returns_it() -> None:
    lines = _lines(_answer("REBALANCE_IN_PROGRESS"))
    headings = [line for line in lines[1:] if line and not line.startswith(" ")]
    assert headings == ["What it means", "What causes it", "What to do", "Who returns it"]
    assert any(line.split()[:2] == ["12", "Heartbeat"] for line in lines)


def test_every_error_has_a_page_that_fits() -> None:
    for error in errors:
        assert max(map(len, _lines(_answer(error.name)))) <= 80
    names = [definition.name for definition, _ in returned_by(errors["UNKNOWN_MEMBER_ID"], builtin_library())]
    assert {"Heartbeat", "SyncGroup", "OffsetCommit"} <= set(names)


@pytest.mark.parametrize(
    ("number", "parts"),
    [("27", ["error code 27", "api key 27"]), ("-1", ["error code -1"]), ("130", ["error code 130"])],
)
def test_a_number_is_an_error_an_api_or_both(number: str, parts: list[str]) -> None:
    starts = [line.partition("  ")[0] for line in _lines(_answer(number)) if line and not line.startswith(" ")]
    assert starts == parts


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        (
            "Fetch.IsolationLevel",
            [
                "FetchRequest.IsolationLevel · int8 · versions 4-18",
                "  How far a consumer may read. Followers read to the end of the log in any case.",
                "  value  name              meaning",
                "  0      READ_UNCOMMITTED  all records up to HighWatermark",
                "  1      READ_COMMITTED    up to LastStableOffset, with a list of aborted",
                "                           transactions to drop",
                "  default 0.",
                "  whole page: kwire explain FetchRequest",
            ],
        ),
        (
            "JoinGroup.Members",
            [
                "JoinGroupResponse.Members · []JoinGroupResponseMember · versions 0-9",
                "  All members for the leader, empty for everybody else.",
                "  field            type     versions",
                "  MemberId         string   0+",
                "  GroupInstanceId  string?  5+",
                "  Metadata         bytes    0+",
                "  whole page: kwire explain JoinGroupResponse",
            ],
        ),
    ],
)
def test_a_field(name: str, lines: list[str]) -> None:
    assert _lines(_answer(name)) == lines


def test_a_field_of_both_messages_and_one_that_is_found_within() -> None:
    both = [line for line in _lines(_answer("Fetch.SessionId")) if not line.startswith(" ")]
    assert [line.split(" · ")[0] for line in both if line] == ["FetchRequest.SessionId", "FetchResponse.SessionId"]
    (within,) = [line for line in _lines(_answer("FetchResponse.highwatermark")) if not line.startswith(" ")]
    assert within == "FetchResponse.Responses.Partitions.HighWatermark · int64 · versions 0-18"


def test_a_field_as_plain_data() -> None:
    (field,) = _answer("Fetch.IsolationLevel").to_json()
    assert (field["message"], field["path"], field["values"]) == (
        "FetchRequest",
        "IsolationLevel",
        {"0": "READ_UNCOMMITTED", "1": "READ_COMMITTED"},
    )


def test_every_field_can_be_asked_for() -> None:
    for definition in (*builtin().apis(), *builtin().data()):
        for message in definition.messages:
            for path, _ in message.walk():
                assert _lines(_answer(f"{message.name}.{path}"))[0].startswith(f"{message.name}.{path} · ")


def test_all_versions_and_their_words_once() -> None:
    lines = _lines(_answer("HeartbeatResponse", every=True))
    assert [line.split()[1] for line in lines if line.startswith("HeartbeatResponse v")] == [
        "v4",
        "v3",
        "v2",
        "v1",
        "v0",
    ]
    assert lines.count("What is Heartbeat?") == 1


def test_two_versions_in_any_order() -> None:
    assert _lines(_answer("Heartbeat", diff=(4, 3))) == _lines(_answer("Heartbeat", diff=(3, 4)))
    assert _answer("Heartbeat", diff=(4, 3)).title == "Heartbeat v3 and v4"


@pytest.mark.parametrize("word", sorted(read_types()))
def test_every_type_has_words(word: str) -> None:
    title, text = read_types()[word]
    assert title
    assert text.endswith(".")
    shown: dict[str, Any] = _answer(word).to_json()
    assert shown == {"type": word, "title": title, "text": text}
