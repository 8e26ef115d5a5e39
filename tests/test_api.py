"""The public API in kwire/__init__.py: its signatures, and that it does what the design says."""

from __future__ import annotations

import inspect
from typing import Any
from uuid import UUID

import pytest
from vectors import FIXTURES, jsonl

import kwire

BODY = bytes.fromhex("0862696c6c696e6700000003010000")
MESSAGE = {"GroupId": "billing", "GenerationId": 3, "MemberId": "", "GroupInstanceId": None}


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("decode", ["name", "version", "data"]),
        ("encode", ["name", "version", "message"]),
        ("annotate", ["name", "version", "data"]),
        ("decode_frame", ["data", "*api=None", "*version=None"]),
        ("explain", ["name", "version=None"]),
        ("read_records", ["data"]),
    ],
)
def test_signatures(name: str, parameters: list[str]) -> None:
    shown = []
    for parameter in inspect.signature(getattr(kwire, name)).parameters.values():
        star = "*" if parameter.kind is parameter.KEYWORD_ONLY else ""
        default = "" if parameter.default is parameter.empty else f"={parameter.default}"
        shown.append(star + parameter.name + default)
    assert shown[: len(parameters)] == parameters
    assert inspect.getdoc(getattr(kwire, name))


def test_what_is_public_is_there() -> None:
    assert [name for name in kwire.__all__ if not hasattr(kwire, name)] == []
    assert kwire.__all__ == sorted(kwire.__all__)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_decode_takes_every_kind_of_bytes(kind: Any) -> None:
    assert kwire.decode("HeartbeatRequest", 4, kind(BODY)) == MESSAGE


def test_encode_is_the_reverse_and_fills_in_what_is_missing() -> None:
    assert kwire.encode("HeartbeatRequest", 4, MESSAGE) == BODY
    assert kwire.encode("HeartbeatRequest", 4, {"GroupId": "billing", "GenerationId": 3}) == BODY


def test_values_are_plain() -> None:
    message: dict[str, Any] = {
        "Topics": [{"TopicId": UUID(int=7), "Name": None}],
        "AllowAutoTopicCreation": True,
        "IncludeTopicAuthorizedOperations": False,
    }
    assert kwire.decode("MetadataRequest", 12, kwire.encode("MetadataRequest", 12, message)) == message


def test_tagged_fields_are_present_when_they_are_on_the_wire() -> None:
    bare = kwire.decode("FetchRequest", 12, kwire.encode("FetchRequest", 12, {}))
    tagged = {"ClusterId": "c", "_tagged": {99: b"\x01"}}
    both = kwire.decode("FetchRequest", 12, kwire.encode("FetchRequest", 12, tagged))
    assert "ClusterId" not in bare
    assert "_tagged" not in bare
    assert {key: both[key] for key in tagged} == tagged


@pytest.mark.parametrize("file", ["requests", "responses"])
def test_official_bytes_come_back_as_they_are(file: str) -> None:
    for row in jsonl(f"vectors/{file}")[::9]:
        data = bytes.fromhex(row["hex"])
        assert kwire.encode(row["name"], row["version"], kwire.decode(row["name"], row["version"], data)) == data


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (BODY[:-1], "HeartbeatRequest v4: "),
        (BODY + b"\x00", "HeartbeatRequest v4: "),
        (b"", "HeartbeatRequest v4: GroupId: "),
    ],
)
def test_decode_uses_all_of_the_data_or_raises(data: bytes, complaint: str) -> None:
    with pytest.raises(kwire.DecodeError, match=complaint) as caught:
        kwire.decode("HeartbeatRequest", 4, data)
    assert (caught.value.message, caught.value.offset <= len(data)) == ("HeartbeatRequest v4", True)
    assert isinstance(caught.value, kwire.KwireError)


@pytest.mark.parametrize(
    ("message", "path"),
    [({"GroupId": 1}, "GroupId"), ({"Group": "g"}, "Group"), ({"GenerationId": 1 << 31}, "GenerationId")],
)
def test_encode_names_what_does_not_fit(message: dict[str, Any], path: str) -> None:
    with pytest.raises(kwire.EncodeError) as caught:
        kwire.encode("HeartbeatRequest", 4, message)
    assert (caught.value.message, caught.value.path) == ("HeartbeatRequest v4", path)


def test_annotate_accounts_for_every_byte() -> None:
    span = kwire.annotate("HeartbeatRequest", 4, BODY)
    assert (span.start, span.end) == (0, len(BODY))
    assert [child.start for child in span.children] == [0, *(child.end for child in span.children[:-1])]
    assert [child.value for child in span.children[:4]] == list(MESSAGE.values())


@pytest.mark.parametrize("data", [b"", b"\xff", BODY[:9], BODY + b"left", bytes(range(256))])
def test_annotate_never_raises_for_bytes(data: bytes) -> None:
    span = kwire.annotate("HeartbeatRequest", 4, data)
    broken = span.broken()
    assert broken
    assert broken[1].type == "undecoded"
    assert broken[1].note
    assert span.end == len(data)


@pytest.mark.parametrize(
    ("file", "api", "version", "said"),
    [
        ("HeartbeatRequest.v3", None, None, ("request", "Heartbeat", 3, 7, "classic-c1")),
        ("HeartbeatResponse.v3", "Heartbeat", 3, ("response", "Heartbeat", 3, 7, None)),
        ("HeartbeatResponse.v3", 12, 3, ("response", "Heartbeat", 3, 7, None)),
    ],
)
def test_decode_frame(file: str, api: str | int | None, version: int | None, said: tuple[Any, ...]) -> None:
    data = (FIXTURES / "frames" / f"{file}.bin").read_bytes()
    for given in (data, data[4:]):
        frame = kwire.decode_frame(given, api=api, version=version)
        assert (frame.kind, frame.api, frame.api_version, frame.correlation_id, frame.client_id) == said
        assert (frame.quality, frame.note) == ("ok", None)
        assert frame.span.end == len(given)


def test_decode_frame_says_what_is_wrong_and_does_not_raise() -> None:
    data = (FIXTURES / "frames" / "HeartbeatRequest.v3.bin").read_bytes()
    frame = kwire.decode_frame(data[:50])
    assert frame.quality == "truncated"
    assert frame.note == "HeartbeatRequest v3: MemberId: needs 47 bytes at offset 47, has 3"
    assert frame.body == {"GroupId": "classic-billing", "GenerationId": 2}


def test_errors_by_number_by_name_and_by_old_name() -> None:
    assert kwire.errors[27].name == "REBALANCE_IN_PROGRESS"
    assert kwire.errors["ILLEGAL_GENERATION"].code == 22
    assert kwire.errors["NOT_LEADER_FOR_PARTITION"] is kwire.errors[6]
    assert (27 in kwire.errors, "NO_SUCH_ERROR" in kwire.errors) == (True, False)
    assert [error.code for error in kwire.errors][:3] == [-1, 0, 1]


def test_explain_gives_a_page() -> None:
    assert str(kwire.explain("FetchResponse", 16)).startswith("FetchResponse v16 · api key 1 · versions 0-18\n")
    assert kwire.explain("Heartbeat").to_json()["api_key"] == 12


@pytest.mark.parametrize(
    "call",
    [
        lambda: kwire.decode("NoSuchMessage", 0, b""),
        lambda: kwire.decode("HeartbeatRequest", 5, b""),
        lambda: kwire.encode("Heartbeat", 4, {}),
        lambda: kwire.annotate("NoSuchMessage", 0, b""),
        lambda: kwire.decode_frame(b"", api="NoSuchApi", version=0),
        lambda: kwire.decode_frame(b"", api="Heartbeat"),
        lambda: kwire.decode_frame(b"", api=999, version=0),
        lambda: kwire.explain("NoSuchMessage"),
        lambda: kwire.explain("HeartbeatRequest", 9),
        lambda: kwire.errors["NO_SUCH_ERROR"],
        lambda: kwire.errors[999],
    ],
)
def test_unknown_names_raise(call: Any) -> None:
    with pytest.raises(kwire.UnknownName):
        call()


CAPTURES = FIXTURES / "captures"


def test_batches_hold_the_exchanges_of_read() -> None:
    path = CAPTURES / "evict-stopped.pcap.gz"
    batches = list(kwire.read_batches(path, api="Heartbeat"))
    ids = [exchange.correlation_id for exchange in kwire.read(path, api="Heartbeat")]
    assert [number for batch in batches for number in batch.correlation_id.tolist()] == ids
    assert len(ids) > 0
    assert all(isinstance(batch, kwire.ExchangeBatch) for batch in batches)
    assert list(kwire.read_batches(path, api="ShareFetch")) == []


def test_diagnose_finds_what_the_doctor_finds() -> None:
    path = CAPTURES / "evict-refused-commits.pcap.gz"
    told = [(found.severity, found.detector) for found in kwire.diagnose(path)]
    assert [name for severity, name in told if severity != "note"] == ["evicted", *["commit-refused"] * 3]
    assert {found.detector for found in kwire.diagnose(path, detectors=["evicted", "poll-timeout"])} == {"evicted"}
    assert list(kwire.diagnose(path, ports=[1])) == []
    with pytest.raises(kwire.KwireError, match="no detector evictd; did you mean evicted"):
        kwire.diagnose(path, detectors=["evictd"])
