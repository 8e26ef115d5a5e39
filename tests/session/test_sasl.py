"""Logins: bare tokens after SaslHandshake v0, SaslAuthenticate after v1, and what the client says of itself."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import Any

import pytest

PLAIN = b"\0alice\0pa55word"
SCRAM = [
    (b"n,,n=bob,r=fyko", b"r=fyko3rfc,s=QSXCR+Q6sek8bf92,i=4096"),
    (b"c=biws,r=fyko3rfc,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=", b"v=6rriTRBi23WpRR/wtup+mMhUZUn="),
]


def handshake(traffic: Any, version: int, mechanism: str, error: int = 0) -> Any:
    tcp = traffic.connection().send(traffic.request("SaslHandshake", version, {"Mechanism": mechanism}, 1))
    return tcp.answer(traffic.response("SaslHandshake", version, {"ErrorCode": error, "Mechanisms": [mechanism]}, 1))


def go_on(traffic: Any, tcp: Any) -> None:
    for ident in (2, 3):
        tcp.send(traffic.request("Metadata", 9, ident=ident)).answer(traffic.response("Metadata", 9, ident=ident))


@pytest.mark.parametrize("feed", [None, 1, 3])
@pytest.mark.parametrize(("mechanism", "tokens", "principal"), [
    ("PLAIN", [(PLAIN, b"")], "alice"),
    ("SCRAM-SHA-256", SCRAM, "bob"),
    ("SCRAM-SHA-512", SCRAM, "bob"),
])  # fmt: skip
def test_bare_tokens_after_handshake_v0(
    traffic: Any, feed: int | None, mechanism: str, tokens: list[tuple[bytes, bytes]], principal: str
) -> None:
    tcp = handshake(traffic, 0, mechanism)
    for said, answer in tokens:
        tcp.send(traffic.size_prefixed(said)).answer(traffic.size_prefixed(answer))
    go_on(traffic, tcp)
    outcome = traffic.read(feed=feed)
    apis = [each.api for each in outcome.exchanges]
    assert apis == ["SaslHandshake", *["SaslToken"] * len(tokens), "Metadata", "Metadata"]
    found = [(each.request.data[4:], each.response.data[4:]) for each in outcome.exchanges[1:-2]]
    assert found == tokens
    token = outcome.exchanges[1]
    assert (token.request.quality, token.response.quality) == ("opaque", "opaque")
    assert token.request.note == f"a bare SASL token of {mechanism} after SaslHandshake v0"
    assert token.response.note == f"the answer to a bare SASL token of {mechanism}"
    assert [message.index for message in outcome.messages if message.kind == "request"] == list(range(len(tokens) + 3))
    assert (outcome.over[0].identity.mechanism, outcome.over[0].identity.principal) == (mechanism, principal)
    assert {message.quality for message in outcome.messages if not message.token} == {"ok"}


@pytest.mark.parametrize("feed", [None, 1])
def test_an_answer_captured_before_its_token(traffic: Any, feed: int | None) -> None:
    tcp = handshake(traffic, 0, "PLAIN")
    tcp.answer(traffic.size_prefixed(b"")).send(traffic.size_prefixed(PLAIN))
    go_on(traffic, tcp)
    first, second = traffic.read(feed=feed).exchanges[1:3]
    assert (first.api, first.request.data[4:], first.response.data[4:]) == ("SaslToken", PLAIN, b"")
    assert (second.api, second.response.quality) == ("Metadata", "ok")


def test_tokens_may_travel_in_the_handshakes_packet(traffic: Any) -> None:
    tcp = traffic.connection()
    ask = traffic.request("SaslHandshake", 0, {"Mechanism": "PLAIN"}, 1)
    tcp.send(ask + traffic.size_prefixed(PLAIN) + traffic.request("Metadata", 9, ident=2))
    reply = traffic.response("SaslHandshake", 0, {"Mechanisms": ["PLAIN"]}, 1)
    tcp.answer(reply + traffic.size_prefixed(b"") + traffic.response("Metadata", 9, ident=2))
    assert traffic.read().pairs == [
        ("SaslHandshake", 1, True, True), ("SaslToken", None, True, True), ("Metadata", 2, True, True),
    ]  # fmt: skip


def test_a_refused_handshake_and_another_request(traffic: Any) -> None:
    tcp = handshake(traffic, 0, "GSSAPI", 33)
    tcp.send(traffic.request("ApiVersions", 0, ident=2)).close()
    first, second = traffic.read().exchanges
    assert (first.error, second.api, second.ending) == (33, "ApiVersions", "the connection closed")


def test_a_token_that_is_never_answered(traffic: Any) -> None:
    handshake(traffic, 0, "PLAIN").send(traffic.size_prefixed(PLAIN)).close()
    token = traffic.read().exchanges[-1]
    assert (token.api, token.ending, token.first.quality) == ("SaslToken", "the connection closed", "opaque")


def test_tokens_are_shown_as_spans_that_are_secret(traffic: Any) -> None:
    handshake(traffic, 0, "PLAIN").send(traffic.size_prefixed(PLAIN)).answer(traffic.size_prefixed(b""))
    token = traffic.read().exchanges[-1]
    size, said = token.request.span().children
    assert (size.name, size.value, said.name, said.value, said.secret) == ("message_size", 15, "token", PLAIN, True)
    assert (token.request.name, token.request.body(), token.about.words) == ("SaslToken", None, ["PLAIN"])


@pytest.mark.parametrize("version", [0, 1, 2])
def test_sasl_authenticate_after_handshake_v1(traffic: Any, version: int) -> None:
    tcp = handshake(traffic, 1, "PLAIN")
    tcp.send(traffic.request("SaslAuthenticate", version, {"AuthBytes": PLAIN}, 2))
    tcp.answer(traffic.response("SaslAuthenticate", version, ident=2))
    go_on(traffic, tcp)
    outcome = traffic.read()
    assert [each.api for each in outcome.exchanges] == ["SaslHandshake", "SaslAuthenticate", "Metadata", "Metadata"]
    assert {message.quality for message in outcome.messages} == {"ok"}
    assert outcome.over[0].identity.principal == "alice"
    assert outcome.exchanges[1].about.words == ["PLAIN alice"]


def jwt(claims: bytes) -> bytes:
    parts = [urlsafe_b64encode(part).rstrip(b"=") for part in (b'{"alg":"none"}', claims, b"sig")]
    return b"n,,\x01auth=Bearer " + b".".join(parts) + b"\x01\x01"


@pytest.mark.parametrize(("mechanism", "token", "principal"), [
    ("PLAIN", b"admin\0alice\0pa55", "alice"),
    ("PLAIN", b"\0\0\0", None),
    ("PLAIN", b"junk", None),
    ("OAUTHBEARER", jwt(b'{"sub":"carol"}'), "carol"),
    ("OAUTHBEARER", jwt(b'{"sub":7}'), None),
    ("OAUTHBEARER", jwt(b"[1]"), None),
    ("OAUTHBEARER", jwt(b"not json"), None),
    ("OAUTHBEARER", jwt(b"[" * 100_000), None),
    ("GSSAPI", b"\x60\x82\x01\x00", None),
])  # fmt: skip
def test_principals(traffic: Any, mechanism: str, token: bytes, principal: str | None) -> None:
    tcp = handshake(traffic, 1, mechanism)
    tcp.send(traffic.request("SaslAuthenticate", 2, {"AuthBytes": token}, 2))
    identity = traffic.read().over[0].identity
    assert (identity.mechanism, identity.principal) == (mechanism, principal)


def test_no_password_is_kept(traffic: Any) -> None:
    handshake(traffic, 0, "PLAIN").send(traffic.size_prefixed(PLAIN)).answer(traffic.size_prefixed(b""))
    identity = traffic.read().over[0].identity
    assert "pa55word" not in str([getattr(identity, name) for name in identity.__slots__])


@pytest.mark.parametrize(
    ("version", "software"), [(2, (None, None)), (3, ("librdkafka", "2.16.0")), (4, ("librdkafka", "2.16.0"))]
)
def test_software(traffic: Any, version: int, software: tuple[str | None, str | None]) -> None:
    body = {"ClientSoftwareName": "librdkafka", "ClientSoftwareVersion": "2.16.0"} if version > 2 else {}
    traffic.connection().send(traffic.request("ApiVersions", version, body)).answer(
        traffic.response("ApiVersions", version)
    )
    identity = traffic.read().over[0].identity
    assert (identity.software, identity.software_version) == software
    assert identity.of_mechanism == ""
