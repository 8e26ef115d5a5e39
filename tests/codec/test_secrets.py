"""What is withheld is in no view: not as text, not as bytes, not as base64, whole or broken."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from kwire.codec.annotate import annotate
from kwire.codec.frames import decode_frame
from kwire.codec.headers import header_plan, request_header_version, response_header_version
from kwire.codec.identify import Item, identify, identify_as
from kwire.codec.library import builtin_library
from kwire.codec.secrets import Withheld, conceal, may_hold_secrets, withheld
from kwire.codec.span import Span, fields
from kwire.codec.values import Codec
from kwire.payloads.open import open_payloads
from kwire.render.decoded import item_lines, record, span_rows
from kwire.render.jsonform import dumps
from kwire.render.lines import plain

SECRET = "Zq7#Wx9!Kj4%Pv2&Tm6*"
HELD = SECRET.encode()
PIECE = 5  # so many characters or bytes of a secret in a row are a leak


# ---------------------------------------------------------------- messages with a secret in them


def frame(name: str, version: int, message: dict[str, Any]) -> bytes:
    library = builtin_library()
    definition, kind = library.registry.find(name).definition, library.message(name)
    assert definition.key is not None
    if kind.kind == "request":
        plan = header_plan("RequestHeader", request_header_version(definition.key, version, kind))
        head = {"RequestApiKey": definition.key, "RequestApiVersion": version, "CorrelationId": 7, "ClientId": "me"}
    else:
        plan = header_plan("ResponseHeader", response_header_version(definition.key, version, kind))
        head = {"CorrelationId": 7}
    raw = Codec(plan).encode(head) + library.codec(name, version).encode(message)
    return len(raw).to_bytes(4, "big") + raw


def resource(**config: Any) -> dict[str, Any]:
    return {"ResourceName": "1", "Configs": [{"Name": "retention.ms", "Value": "1"}, {"Value": SECRET, **config}]}


def scram(**more: Any) -> dict[str, Any]:
    return {"Upsertions": [{"Name": "alice", "Mechanism": 1, "Salt": HELD, "SaltedPassword": HELD, **more}]}


SYNONYMS = [{"Name": "ssl.key.password", "Value": SECRET}]
SENSITIVE = {"Name": "plugin.setting", "IsSensitive": True, "Synonyms": [{"Name": "plugin", "Value": SECRET}]}
TOPIC = {"Name": "t", "Configs": [{"Name": "my.secret", "Value": SECRET}]}
MESSAGES: list[tuple[str, tuple[int, ...], dict[str, Any]]] = [
    ("SaslAuthenticateRequest", (0, 1, 2), {"AuthBytes": HELD}),
    ("SaslAuthenticateResponse", (0, 1, 2), {"AuthBytes": HELD}),
    ("AlterUserScramCredentialsRequest", (0,), scram()),
    ("CreateDelegationTokenResponse", (1, 2, 3), {"TokenId": "t", "Hmac": HELD}),
    ("DescribeDelegationTokenResponse", (1, 2, 3), {"Tokens": [{"TokenId": "t", "Hmac": HELD}]}),
    ("RenewDelegationTokenRequest", (1, 2), {"Hmac": HELD}),
    ("ExpireDelegationTokenRequest", (1, 2), {"Hmac": HELD}),
    ("AlterConfigsRequest", (0, 1, 2), {"Resources": [resource(Name="ssl.keystore.password")]}),
    ("IncrementalAlterConfigsRequest", (0, 1), {"Resources": [resource(Name="sasl.jaas.config")]}),
    ("CreateTopicsRequest", (2, 7), {"Topics": [TOPIC]}),
    ("CreateTopicsResponse", (5, 7), {"Topics": [TOPIC]}),
    ("DescribeConfigsResponse", (1, 4), {"Results": [resource(Name="ssl.key.password", Synonyms=SYNONYMS)]}),
]
MARKED = {"Results": [resource(**SENSITIVE)]}
CASES = [(name, version, message) for name, versions, message in MESSAGES for version in versions]
BY_MARK = [("DescribeConfigsResponse", version, MARKED) for version in (1, 4)]


def each(cases: list[tuple[str, int, dict[str, Any]]]) -> pytest.MarkDecorator:
    names = [f"{name}-{version}" for name, version, _ in cases]
    return pytest.mark.parametrize(("name", "version", "message"), cases, ids=names)


def told(data: bytes, name: str, version: int) -> list[Item]:
    """A request names itself; of a response it must be said what it is."""
    if name.endswith("Request"):
        return identify(data)
    library = builtin_library()
    return identify_as(data, library.registry.find(name).definition, library.message(name), version)


# ---------------------------------------------------------------- views


def views(item: Item, data: bytes) -> Iterator[str]:
    """All that any command shows of an item, with its fields' contents opened and without."""
    piece = data[item.start : item.end]
    trees = [item.span]
    if item.message:
        opened = open_payloads(item.span, piece, item.message.name)
        trees = [opened] if opened is item.span else [item.span, opened]
    for tree in trees:
        span = conceal(tree, item.message)
        for view, width, full in (("text", 140, True), ("tree", 160, False), ("hex", 120, True)):
            for line in item_lines(item, span, piece, view, width, full, True, 0):
                yield plain(line)
        yield dumps(record(item, span))
        yield from (json.dumps(row, ensure_ascii=True) for row in span_rows(item, span))


def leaks(items: list[Item], data: bytes) -> set[str]:
    """The forms of pieces of the secret that a view shows."""
    shown = "\n".join(line for item in items for line in views(item, data))
    pieces = [HELD[at : at + PIECE] for at in range(len(HELD) - PIECE + 1)]
    forms = {form for piece in pieces for form in (piece.decode(), piece.hex(), piece.hex(" "))}
    forms |= {base64.b64encode(HELD[at:])[:8].decode() for at in range(3)}
    return {form for form in forms if form in shown}


@each(CASES + BY_MARK)
def test_the_views_would_show_the_secret_if_it_were_not_withheld(name: str, version: int, message: Any) -> None:
    data = frame(name, version, message)
    span = told(data, name, version)[0].span
    rows = [str(part.value) for part in span.below() if not part.children]
    assert any(SECRET in row for row in rows)


@each(CASES + BY_MARK)
def test_a_whole_message_shows_no_secret(name: str, version: int, message: Any) -> None:
    data = frame(name, version, message)
    items = told(data, name, version)
    assert [item.quality for item in items] == ["ok"]
    assert leaks(items, data) == set()


@each(CASES + BY_MARK)
def test_a_message_with_bytes_left_over_shows_no_secret(name: str, version: int, message: Any) -> None:
    data = frame(name, version, message)
    longer = (len(data) - 4 + 20).to_bytes(4, "big") + data[4:] + HELD
    assert leaks(told(longer, name, version), longer) == set()


@each(CASES + BY_MARK)
@pytest.mark.parametrize("size", [4, 0], ids=["size", "no size"])
def test_a_cut_message_shows_no_secret(name: str, version: int, message: Any, size: int) -> None:
    data = frame(name, version, message)[4 - size :]
    for length in range(data.index(HELD) + PIECE, len(data), 7):
        if size or name.endswith("Request"):
            assert leaks(told(data[:length], name, version), data[:length]) == set(), length


@each(CASES)
def test_a_message_with_a_hole_in_it_shows_no_secret(name: str, version: int, message: Any) -> None:
    """The last of its connection, it looks as if it were cut at the end; another field holds the secret."""
    data = frame(name, version, message)
    body, secret = builtin_library().codec(name, version).encode(message), data.index(HELD)
    for missing in (1, 3, 6, 7, 9, 11):
        for at in range(len(data) - len(body), secret - missing, 3):
            holed = data[:at] + data[at + missing :]
            assert leaks(told(holed, name, version), holed) == set(), (at, missing)


@each(CASES)
@pytest.mark.parametrize("length", [1, 18, 0x7F])
def test_a_secret_whose_length_is_wrong_is_not_shown(name: str, version: int, message: Any, length: int) -> None:
    data = bytearray(frame(name, version, message))
    data[data.index(HELD) - 1] = length
    assert leaks(told(bytes(data), name, version), bytes(data)) == set()


@each([case for case in CASES if case[0].endswith("Request")])
@pytest.mark.parametrize("above", [1, 5, 60])
def test_a_request_of_an_unknown_version_shows_no_secret(name: str, version: int, message: Any, above: int) -> None:
    data = bytearray(frame(name, version, message))
    data[6:8] = (builtin_library().message(name).versions.high + above).to_bytes(2, "big")
    items = identify(bytes(data))
    if above <= 8:
        assert [(item.quality, item.message is not None) for item in items] == [("unsupported", True)]
    assert leaks(items, bytes(data)) == set() or above > 8


def test_an_answer_behind_its_request_shows_no_secret() -> None:
    asked = frame("CreateDelegationTokenRequest", 2, {})
    answer = frame("CreateDelegationTokenResponse", 2, {"TokenId": "t", "Hmac": HELD})
    for data in (asked + answer, asked + answer[:-3], asked + answer[:-12]):
        items = identify(data)
        assert [item.message.name for item in items if item.message] == [
            "CreateDelegationTokenRequest", "CreateDelegationTokenResponse",
        ]  # fmt: skip
        assert leaks(items, data) == set()


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_damaged_token_is_not_shown(version: int) -> None:
    data = frame("SaslAuthenticateRequest", version, {"AuthBytes": HELD})
    for at in range(data.index(HELD) - (4 if version < 2 else 1), len(data)):
        for value in (1, 0x7F, 0xFF):
            damaged = data[:at] + bytes((value,)) + data[at + 1 :]
            assert leaks(identify(damaged), damaged) == set(), (at, value)


def test_a_forwarded_request_shows_no_secret() -> None:
    inner = frame("AlterUserScramCredentialsRequest", 0, scram())[4:]
    data = frame("EnvelopeRequest", 0, {"RequestData": inner})
    item = identify(data)[0]
    assert item.message is not None
    span = conceal(open_payloads(item.span, data, item.message.name), item.message)
    assert leaks([replace(item, span=span)], data) == set()


def test_a_request_that_is_said_to_be_another_shows_no_secret() -> None:
    definition = builtin_library().registry.find("Heartbeat").definition
    for name, version, message in CASES:
        if name.endswith("Request"):
            data = frame(name, version, message)
            assert leaks(identify_as(data, definition, definition.messages[0], None), data) == set(), name


def test_a_frame_that_swallows_others_shows_none_of_their_secrets() -> None:
    """A damaged size prefix takes in the frames behind, whatever they are."""
    beat = frame("HeartbeatRequest", 4, {"GroupId": "g", "MemberId": "m"})
    for name, version, message in CASES:
        both = beat + frame(name, version, message)
        swallowed = (len(both) - 4).to_bytes(4, "big") + both[4:]
        definition = builtin_library().message("HeartbeatRequest")
        span = decode_frame(swallowed, size=True).span
        assert span.broken() is not None, name
        item = Item(0, len(swallowed), span, definition)
        assert leaks([item], swallowed) == set(), name


# ---------------------------------------------------------------- what stays


def test_the_rest_of_a_message_stays_visible() -> None:
    data = frame("AlterConfigsRequest", 1, {"Resources": [resource(Name="ssl.key.password")]})
    item = identify(data)[0]
    assert record(item, conceal(item.span, item.message))["body"]["Resources"] == [
        {
            "ResourceType": 0,
            "ResourceName": "1",
            "Configs": [
                {"Name": "retention.ms", "Value": "1"},
                {"Name": "ssl.key.password", "Value": Withheld(20)},
            ],
        }
    ]
    assert str(Withheld(20)) == "withheld (20 bytes; --show-secrets)"


@pytest.mark.parametrize(
    ("name", "hidden"),
    [
        ("ssl.keystore.password", True),
        ("listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config", True),
        ("SSL.KEY.PASSWORD", True),
        ("ssl.keystore.key", True),
        ("delegation.token.secret.key", True),
        ("sasl.oauthbearer.client.credentials", True),
        ("my.api.key", True),
        ("cleanup.policy", False),
        ("retention.ms", False),
        ("ssl.truststore.location", False),
        ("delegation.tokens.max", False),
        ("", False),
    ],
)
def test_a_config_is_sensitive_by_its_name(name: str, hidden: bool) -> None:
    codec = builtin_library().codec("ConfigRecord", 0)
    span = conceal(annotate(codec.plan, codec.encode({"Name": name, "Value": "v"})), codec.plan.message)
    assert fields(span)["Value"] == (Withheld(1) if hidden else "v")


def test_null_is_no_secret() -> None:
    codec = builtin_library().codec("ConfigRecord", 0)
    span = annotate(codec.plan, codec.encode({"Name": "ssl.key.password", "Value": None}))
    assert conceal(span, codec.plan.message) is span


def test_a_tree_without_secrets_stays_as_it_is() -> None:
    data = frame("HeartbeatRequest", 4, {"GroupId": "password"})
    item = identify(data)[0]
    assert conceal(item.span, item.message) is item.span
    assert list(withheld(item.span)) == []


def test_the_ranges_that_are_withheld_are_those_of_the_secrets() -> None:
    data = frame("SaslAuthenticateRequest", 2, {"AuthBytes": HELD})
    item = identify(data)[0]
    at = data.index(HELD)
    assert list(withheld(conceal(item.span, item.message))) == [(at - 1, at + len(HELD))]


def test_undecoded_bytes_are_shown_where_no_secret_can_be() -> None:
    span = Span("x", "frame", 0, 4, None, (Span("rest", "undecoded", 0, 4),))
    assert conceal(span, None) is span
    assert conceal(span, builtin_library().message("HeartbeatRequest")) is span
    hidden = conceal(span, builtin_library().message("SaslAuthenticateRequest"))
    assert list(withheld(hidden)) == [(0, 4)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("SaslAuthenticateRequest", True),
        ("DescribeDelegationTokenResponse", True),
        ("IncrementalAlterConfigsRequest", True),
        ("ConfigRecord", True),
        ("HeartbeatRequest", False),
        ("AlterClientQuotasRequest", False),  # its values are numbers
        ("AlterConfigsResponse", False),
    ],
)
def test_which_messages_may_hold_secrets(name: str, expected: bool) -> None:
    assert may_hold_secrets(builtin_library().message(name)) is expected
