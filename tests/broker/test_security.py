"""SASL without a connection: PLAIN, and both SCRAMs with an independent client's side."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from kwire.broker.security import Credential, LoginFailed, ServerLogin, Users
from kwire.payloads.scram import server_signature

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
BAD = "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"


def login(mechanism: str) -> ServerLogin:
    made = ServerLogin(Users({"ann": "secret", "b,c=d": "p"}))
    assert made.handshake(mechanism, 1)
    return made


def scram(made: ServerLogin, user: str, password: str, mechanism: str) -> list[bytes]:
    """A client's side of the exchange; the tokens in order."""
    name = HASHES[mechanism]
    bare = f"n={user.replace('=', '=3D').replace(',', '=2C')},r=abc".encode()
    first = b"n,," + bare
    challenge = made.token(first)
    parts = dict(part.split(b"=", 1) for part in challenge.split(b","))
    salted = hashlib.pbkdf2_hmac(name, password.encode(), base64.b64decode(parts[b"s"]), int(parts[b"i"]))
    without = b"c=biws,r=" + parts[b"r"]
    message = b",".join((bare, challenge, without))
    key = hmac.digest(salted, b"Client Key", name)
    signature = hmac.digest(hashlib.new(name, key).digest(), message, name)
    proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
    final = without + b",p=" + base64.b64encode(proof)
    return [first, challenge, final, made.token(final)]


@pytest.mark.parametrize("mechanism", HASHES)
@pytest.mark.parametrize(("user", "password"), [("ann", "secret"), ("b,c=d", "p")])
def test_scram_with_the_right_password(mechanism: str, user: str, password: str) -> None:
    made = login(mechanism)
    tokens = scram(made, user, password, mechanism)
    assert made.user == user
    assert server_signature(tokens, password) == "right"


@pytest.mark.parametrize(("user", "password"), [("ann", "wrong"), ("nobody", ""), ("nobody", "secret")])
def test_scram_with_a_wrong_one(user: str, password: str) -> None:
    made = login("SCRAM-SHA-256")
    with pytest.raises(LoginFailed, match=BAD):
        scram(made, user, password, "SCRAM-SHA-256")
    assert made.user is None


@pytest.mark.parametrize("final", [b"", b"c=biws,r=other,p=AAAA", b"\xff\xfe", b"c=biws,r=abc", b"p=!"])
def test_a_final_message_that_is_none(final: bytes) -> None:
    made = login("SCRAM-SHA-256")
    made.token(b"n,,n=ann,r=abc")
    with pytest.raises(LoginFailed, match=BAD):
        made.token(final)


@pytest.mark.parametrize("first", [b"", b"n,,n=ann", b"p=tls-unique,,n=ann,r=x", b"n,,n=ann,r=a b", b"\xff"])
def test_a_first_message_that_is_none(first: bytes) -> None:
    with pytest.raises(LoginFailed, match="SCRAM-SHA-256: the client's first message cannot be read"):
        login("SCRAM-SHA-256").token(first)


@pytest.mark.parametrize(("token", "user"), [(b"\0ann\0secret", "ann"), (b"ann\0ann\0secret", "ann")])
def test_plain(token: bytes, user: str) -> None:
    made = login("PLAIN")
    assert (made.token(token), made.user) == (b"", user)


@pytest.mark.parametrize(
    ("token", "why"),
    [
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"\0ann\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0nobody\0", "Authentication failed: Invalid username or password"),
        (b"\0\xff\0\xff", "Authentication failed: Invalid username or password"),
        (
            b"bob\0ann\0secret",
            "Authentication failed: Client requested an authorization id that is different from username",
        ),
    ],
)
def test_plain_that_fails(token: bytes, why: str) -> None:
    made = login("PLAIN")
    with pytest.raises(LoginFailed) as wrong:
        made.token(token)
    assert (str(wrong.value), made.user) == (why, None)


def test_a_token_before_the_handshake() -> None:
    with pytest.raises(LoginFailed, match="SaslAuthenticate request received before a SaslHandshake"):
        ServerLogin(Users({"ann": "secret"})).token(b"\0ann\0secret")


def test_salts_are_steady_and_differ() -> None:
    users = Users({"ann": "a"})
    assert users.salt("ann") == users.salt("ann") != users.salt("nobody")


def test_credentials_that_come_and_go() -> None:
    users = Users({"ann": "secret"})
    salted = hashlib.pbkdf2_hmac("sha256", b"new", b"salt", 5000)
    users.keep("bob", "SCRAM-SHA-256", Credential(b"salt", 5000, salted))
    users.keep("ann", "SCRAM-SHA-512", None)
    assert (users.names(), users.iterations("bob", "SCRAM-SHA-512")) == (["ann", "bob"], None)
    for user, password, mechanism, may in (
        ("bob", "new", "SCRAM-SHA-256", True), ("bob", "old", "SCRAM-SHA-256", False),
        ("bob", "new", "SCRAM-SHA-512", False), ("ann", "secret", "SCRAM-SHA-256", True),
        ("ann", "secret", "SCRAM-SHA-512", False),
    ):  # fmt: skip
        made = ServerLogin(users)
        made.handshake(mechanism, 1)
        if may:
            scram(made, user, password, mechanism)
            assert made.user == user
        else:
            with pytest.raises(LoginFailed):
                scram(made, user, password, mechanism)
    users.keep("bob", "SCRAM-SHA-256", None)
    users.keep("bob", "SCRAM-SHA-256", None)
    assert users.names() == ["ann"]
