"""The made-up example of every message at every version: it can be written, read back, and said in JSON."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.codec.annotate import annotate
from kwire.codec.example import BATCH, MIDNIGHT, UUID, example
from kwire.codec.library import builtin_library
from kwire.codec.plan import compile_plan
from kwire.codec.values import Codec
from kwire.render.jsonform import dumps, from_json
from kwire.schema.model import NONE, Field, Meaning, MessageSchema, Versions
from kwire.schema.registry import builtin

ONE = Versions(0, 0)
MESSAGES = [message for definition in (*builtin().apis(), *builtin().data()) for message in definition.messages]
messages = pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.name)


def codecs(message: MessageSchema) -> list[Codec]:
    return [builtin_library().codec(message.name, version) for version in message.versions.each()]


# ---------------------------------------------------------------- every message and version


def test_every_message_has_examples() -> None:
    assert len(MESSAGES) >= 2 * 95 + 97
    assert sum(len(codecs(message)) for message in MESSAGES) >= 2 * 368 + 138


@messages
def test_an_example_is_written_and_read_back(message: MessageSchema) -> None:
    for codec in codecs(message):
        made = example(codec.plan)
        assert codec.decode(codec.encode(made)) == made, codec.plan.title


@messages
def test_an_examples_json_gives_the_same_bytes(message: MessageSchema) -> None:
    for codec in codecs(message):
        made = example(codec.plan)
        assert codec.encode(from_json(codec.plan, dumps(made))) == codec.encode(made), codec.plan.title


@messages
def test_an_examples_bytes_have_nothing_odd_and_no_errors(message: MessageSchema) -> None:
    for codec in codecs(message):
        spans = list(annotate(codec.plan, codec.encode(example(codec.plan))).below())
        assert [span for span in spans if span.note] == []
        assert [span for span in spans if span.slot and span.slot.field.error and span.value not in (0, [0])] == []
        assert [span for span in spans if span.name == "ErrorMessage" and span.value] == []


@messages
def test_an_example_leaves_out_tagged_fields_and_is_the_same_each_time(message: MessageSchema) -> None:
    for codec in codecs(message):
        made = example(codec.plan)
        assert list(made) == [slot.name for slot in codec.plan.root.slots]
        assert made == example(codec.plan)
        assert made is not example(codec.plan)


# ---------------------------------------------------------------- what the values are


@pytest.mark.parametrize(
    ("name", "version", "expected"),
    [
        (
            "HeartbeatRequest",
            4,
            {
                "GroupId": "billing",
                "GenerationId": 3,
                "MemberId": "billing-1-9f2a7c54-3c1e-4d0b-8a55-7a1b6f0c2d33",
                "GroupInstanceId": None,
            },
        ),
        ("HeartbeatResponse", 4, {"ThrottleTimeMs": 0, "ErrorCode": 0}),
        (
            "ListOffsetsResponse",
            6,
            {
                "ThrottleTimeMs": 0,
                "Topics": [
                    {
                        "Name": "orders",
                        "Partitions": [
                            {
                                "PartitionIndex": 0,
                                "ErrorCode": 0,
                                "Timestamp": MIDNIGHT,
                                "Offset": 1042,
                                "LeaderEpoch": 5,
                            }
                        ],
                    }
                ],
            },
        ),
    ],
)
def test_examples_are_plausible(name: str, version: int, expected: dict[str, Any]) -> None:
    assert example(builtin_library().plan(name, version)) == expected


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        (Field("Flag", "bool", ONE, default="true"), True),
        (Field("Rate", "float64", ONE), 0.0),
        (Field("Id", "uuid", ONE), UUID),
        (Field("Data", "bytes", ONE), b""),
        (Field("Data", "bytes", ONE, nullable=ONE, default="null"), None),
        (Field("Records", "records", ONE), BATCH),
        (Field("Word", "string", ONE), "example"),
        (Field("Name", "string", ONE, entity="topicName"), "orders"),
        (Field("GroupInstanceId", "string", ONE, nullable=ONE), None),
        (Field("GroupInstanceId", "string", ONE), ""),
        (Field("Plain", "int32", ONE, default="-1"), -1),
        (Field("Port", "int32", ONE), 9092),
        (Field("SessionTimeoutMs", "int32", ONE), 45000),
        (Field("SessionTimeoutMs", "int16", ONE, default="-1"), -1),  # 45,000 does not fit
        (Field("ErrorCode", "int16", ONE, error=True, default="-1"), 0),
        (Field("Kind", "int8", ONE, meanings=(Meaning(0, "NONE", ""), Meaning(2, "TOPIC", ""))), 2),
        (Field("Kind", "int8", ONE, meanings=(Meaning(0, "NONE", ""), Meaning(-1, "ANY", ""))), 0),
        (Field("Groups", "[]string", ONE), ["billing"]),
        (Field("Ids", "[]uuid", ONE), [UUID]),
        (Field("Numbers", "[]int32", ONE), [0]),
        (Field("OfflineReplicas", "[]int32", ONE), []),
        (Field("Reasons", "[]string", ONE, nullable=ONE), ["example"]),
        (Field("Hosts", "[]Host", ONE, fields=(Field("Host", "string", ONE),)), [{"Host": "broker-1.example.com"}]),
        (Field("Topic", "Topic", ONE, fields=(Field("Name", "string", ONE),)), {"Name": "orders"}),
    ],
)
def test_names_and_types_decide(field: Field, expected: object) -> None:
    plan = compile_plan(MessageSchema("Sample", "data", ONE, NONE, (field,)), 0)
    assert example(plan) == {field.name: expected}
    assert Codec(plan).decode(Codec(plan).encode(example(plan))) == {field.name: expected}


def test_tagged_fields_are_left_out() -> None:
    fields = (Field("A", "int8", ONE), Field("T", "int8", ONE, tagged=ONE, tag=0))
    assert example(compile_plan(MessageSchema("Sample", "data", ONE, ONE, fields), 0)) == {"A": 0}


def crc32c(data: bytes) -> int:
    """Castagnoli's, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def test_the_batch_is_sound() -> None:
    assert int.from_bytes(BATCH[:8], "big") == 1042
    assert int.from_bytes(BATCH[8:12], "big") == len(BATCH) - 12
    assert BATCH[16] == 2
    assert int.from_bytes(BATCH[17:21], "big") == crc32c(BATCH[21:]) == 0x39CE9E94
    assert int.from_bytes(BATCH[27:35], "big") == int.from_bytes(BATCH[35:43], "big") == MIDNIGHT
    assert BATCH[57:61] == b"\0\0\0\1"
    assert BATCH.endswith(b'\x10order-17\x18{"total":42}\0')
