"""SASL tokens: pieces tile the field, what is a secret is marked, and what cannot be told apart stays one secret."""

from __future__ import annotations

import base64
import json
import random

import pytest

import kwire
from kwire.codec.annotate import annotate
from kwire.codec.library import builtin_library
from kwire.codec.secrets import Withheld, conceal
from kwire.codec.span import Span
from kwire.payloads.open import open_payloads
from kwire.payloads.sasl import client

REQUEST, RESPONSE = "SaslAuthenticateRequest", "SaslAuthenticateResponse"
NONCE = b"rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
Piece = tuple[str, str, bool]


def token(message: str, content: bytes, version: int = 2) -> tuple[Span, bytes]:
    """A message's tree, opened, and its bytes."""
    raw = kwire.encode(message, version, {"AuthBytes": content})
    return open_payloads(annotate(builtin_library().plan(message, version), raw), raw, message), raw


def field(tree: Span) -> Span:
    return next(child for child in tree.children if child.name == "AuthBytes")


def pieces(message: str, content: bytes) -> tuple[str | None, list[Piece]]:
    """The field's text and its pieces, which tile it: (name, value, whether it is secret)."""
    for version in (1, 2):  # an int32 length, a varint
        span = field(token(message, content, version)[0])
        at = span.own_end
        assert not span.children or at == span.end - len(content)
        for child in span.children:
            assert child.start == at
            at = child.end
        assert at == span.end
    return span.text, [(child.name, str(child.value), child.secret) for child in span.children]


def part(data: object) -> bytes:
    return base64.urlsafe_b64encode(json.dumps(data).encode()).rstrip(b"=")


JWT = b".".join((part({"alg": "RS256"}), part({"sub": "alice", "exp": 1}), b"c2lnbmF0dXJl"))


# ---------------------------------------------------------------- mechanisms


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"\0alice\0secret", ["", "alice", "secret"]),
        (b"bob\0alice\0secret", ["bob", "alice", "secret"]),
        ("\0алиса\0пароль".encode(), ["", "алиса", "пароль"]),
        (b"\0alice\0n,,n=a,r=b", ["", "alice", "n,,n=a,r=b"]),  # a password in the form of SCRAM
        (b"n,,n=x\0u\0auth=Bearer a", ["n,,n=x", "u", "auth=Bearer a"]),
    ],
)
def test_plain(content: bytes, expected: list[str]) -> None:
    names = ("authorization_id", "username", "password")
    secrets = (False, False, True)
    assert pieces(REQUEST, content) == ("PLAIN", list(zip(names, expected, secrets, strict=True)))


@pytest.mark.parametrize(
    ("message", "content", "text", "expected"),
    [
        (
            REQUEST,
            b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
            "SCRAM, client's first message",
            [("gs2_header", "n,,", False), ("username", "user", False), ("nonce", "rOprNGfwEbeRWgbNEkqO", False)],
        ),
        (
            REQUEST,
            b"y,a=admin,n=user,r=abc",
            "SCRAM, client's first message",
            [("gs2_header", "y,a=admin,", False), ("username", "user", False), ("nonce", "abc", False)],
        ),
        (
            REQUEST,
            b"p=tls-unique,,n=user,r=abc,tokenauth=true,x=y",
            "SCRAM, client's first message",
            [
                ("gs2_header", "p=tls-unique,,", False),
                ("username", "user", False),
                ("nonce", "abc", False),
                ("extension", "tokenauth=true", False),
                ("extension", "x=y", True),
            ],
        ),
        (
            REQUEST,
            b"c=biws,r=" + NONCE + b",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
            "SCRAM, client's final message",
            [
                ("channel_binding", "biws", False),
                ("nonce", NONCE.decode(), False),
                ("proof", "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=", True),
            ],
        ),
        (
            REQUEST,
            b"p=dHzb,r=abc,n=user",  # out of order: perhaps not what it looks like
            None,
            [],
        ),
        (
            RESPONSE,
            b"r=" + NONCE + b",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
            "SCRAM, server's first message",
            [
                ("nonce", NONCE.decode(), False),
                ("salt", "W22ZaJ0SNY7soEsUEjb6gQ==", False),
                ("iterations", "4096", False),
            ],
        ),
        (
            RESPONSE,
            b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
            "SCRAM, server's final message",
            [("server_signature", "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=", True)],
        ),
        (
            RESPONSE,
            b"e=invalid-proof",
            "SCRAM, server's final message",
            [("error", "invalid-proof", False)],
        ),
    ],
)
def test_scram(message: str, content: bytes, text: str, expected: list[Piece]) -> None:
    assert pieces(message, content) == (text, expected)


def test_oauthbearer_shows_the_claims_of_a_jwt_and_not_its_signature() -> None:
    content = b"n,a=bob,\x01auth=Bearer " + JWT + b"\x01host=kafka\x01\x01"
    assert pieces(REQUEST, content) == (
        "OAUTHBEARER, client's message",
        [
            ("gs2_header", "n,a=bob,", False),
            ("scheme", "auth=Bearer", False),
            ("jwt_header", '{"alg": "RS256"}', False),
            ("jwt_claims", '{"sub": "alice", "exp": 1}', False),
            ("jwt_signature", "c2lnbmF0dXJl", True),
            ("extension", "host=kafka", False),
            ("end", "", False),
        ],
    )


@pytest.mark.parametrize(
    "opaque",
    [
        b"ya29.a0AfH6SMBx.secret",  # three pieces, and no JWT
        b"opaque",
        b"",
        JWT + b".more",
        JWT.rpartition(b".")[0],
        part([1]) + b"." + JWT.partition(b".")[2],
        b"!!!." + JWT.partition(b".")[2],
    ],
)
def test_a_token_that_is_no_jwt_is_one_secret(opaque: bytes) -> None:
    text, found = pieces(REQUEST, b"n,,\x01auth=Bearer " + opaque + b"\x01\x01")
    assert text == "OAUTHBEARER, client's message"
    assert found[1:3] == [("scheme", "auth=Bearer", False), ("token", opaque.decode(), True)]


@pytest.mark.parametrize("message", [REQUEST, RESPONSE])
@pytest.mark.parametrize("content", [b"\x60\x82\x02\x01gss", b"\x60\0user\0binary", b"\x05\x04\x04\xff\0\0data"])
def test_gssapi_is_named_and_stays_one_secret(message: str, content: bytes) -> None:
    assert pieces(message, content) == ("GSSAPI token", [])


@pytest.mark.parametrize(
    ("message", "content"),
    [
        (REQUEST, b"garbage"),
        (REQUEST, b"\x01"),
        (REQUEST, b"one\0two"),
        (REQUEST, b"one\0two\0three\0four"),
        (REQUEST, b"\0user\0\xff\xfe"),  # not UTF-8
        (REQUEST, b"\0\0secret"),  # no user
        (REQUEST, b"\0user\0"),
        (REQUEST, b"n,,n=user"),  # no nonce
        (REQUEST, b"n,,n=user,r=abc,password=secret"),
        (REQUEST, b"n,,n=user,r=a\0b"),
        (REQUEST, b"auth=Bearer abc"),
        (REQUEST, b"v=signature"),
        (RESPONSE, b"\0alice\0secret"),
        (RESPONSE, b"n,,n=user,r=abc"),
        (RESPONSE, b"v=sig\0nature"),
        (RESPONSE, b'{"status": "invalid_token"}'),
    ],
)
def test_what_cannot_be_told_apart_stays_one_secret(message: str, content: bytes) -> None:
    tree, _ = token(message, content)
    span = field(tree)
    assert (span.value, span.text, span.children) == (content, None, ())
    hidden = field(conceal(tree, builtin_library().message(message)))
    assert hidden.value == Withheld(len(content))


def test_an_empty_answer_is_left_alone() -> None:
    assert field(token(RESPONSE, b"")[0]).value == b""


# ---------------------------------------------------------------- what is shown of them


@pytest.mark.parametrize(
    ("message", "content", "secret"),
    [
        (REQUEST, b"\0alice\0hunter2", "hunter2"),
        (REQUEST, b"c=biws,r=abc,p=dHzbZapW", "dHzbZapW"),
        (RESPONSE, b"v=6rriTRBi", "6rriTRBi"),
        (REQUEST, b"n,,\x01auth=Bearer " + JWT + b"\x01\x01", "c2lnbmF0dXJl"),
        (REQUEST, b"n,,\x01auth=Bearer opaque-token\x01\x01", "opaque-token"),
    ],
)
def test_the_secret_is_in_no_value_once_concealed(message: str, content: bytes, secret: str) -> None:
    tree, raw = token(message, content)
    assert secret.encode() in raw
    assert any(secret in str(span.value) for span in tree.below() if span.secret)
    hidden = conceal(tree, builtin_library().message(message))
    assert [span for span in hidden.below() if secret in repr(span.value)] == []
    assert any(isinstance(span.value, Withheld) for span in field(hidden).children)


def test_random_tokens_never_raise_and_their_pieces_tile() -> None:
    draw = random.Random(2)
    seeds = [b"\0alice\0secret", b"n,,n=user,r=abc", b"c=biws,r=abc,p=dHzb", b"n,,\x01auth=Bearer " + JWT + b"\x01\x01"]
    opened = 0
    for _ in range(1500):
        content = bytearray(draw.choice(seeds))
        for _ in range(draw.randrange(4)):
            content[draw.randrange(len(content))] = draw.choice(b"\0\x01,=.npr\xff")
        text, found = pieces(draw.choice((REQUEST, RESPONSE)), bytes(content))
        assert bool(found) <= (text is not None)
        opened += bool(found)
    assert opened > 200


def test_what_is_no_extension_of_a_bearer_token_may_be_a_piece_of_it() -> None:
    host = b"host=a.example"
    pieces = b"n,,", b"auth=Bearer abc", host, b"auth=Basic c2VjcmV0", b"c2VjcmV0", b"\0\0=secret", b"", b""
    raw = b"\x01".join(pieces)
    opened = client(Span("AuthBytes", "bytes", 0, len(raw), raw), raw, ())
    assert [span.secret for span in opened.children if span.name == "extension"] == [False, True, True, True]
