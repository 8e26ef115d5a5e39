"""Delegation tokens: who may have, renew and end them, and logging in with one."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

import pytest

from kwire.broker.context import BrokerSettings, Peer
from kwire.broker.refused import Refused
from kwire.broker.security import LoginFailed, ServerLogin, Users
from kwire.broker.tokens import EXPIRY_MS, MAX_LIFETIME_MS, Tokens
from kwire.schema import codes


def test_a_tokens_life() -> None:
    tokens = Tokens()
    token = tokens.create("ann", "ann", ("bob",), -1, 1000)
    assert (token.expires, token.ends) == (1000 + EXPIRY_MS, 1000 + MAX_LIFETIME_MS)
    assert tokens.renew(token.hmac, "bob", 5_000, 2_000) == 7_000
    assert tokens.renew(token.hmac, "ann", 1 << 40, 2_000) == token.ends
    assert tokens.expire(token.hmac, "ann", 10, 2_000) == 2_010
    for act, code in (
        (lambda: tokens.renew(token.hmac, "ann", 5, 3_000), codes.DELEGATION_TOKEN_EXPIRED),
        (lambda: tokens.expire(token.hmac, "ann", 5, 3_000), codes.DELEGATION_TOKEN_EXPIRED),
        (lambda: tokens.expire(token.hmac, "carl", -1, 3_000), codes.DELEGATION_TOKEN_OWNER_MISMATCH),
        (lambda: tokens.renew(b"other", "ann", 5, 2_000), codes.DELEGATION_TOKEN_NOT_FOUND),
    ):
        with pytest.raises(Refused) as refused:
            act()
        assert refused.value.code == code
    assert tokens.expire(token.hmac, "ann", -1, 2_005) == 2_005
    assert tokens.all == {}
    tokens.create("ann", "ann", (), 10, 0)
    tokens.sweep(10)
    assert tokens.all == {}


def log_in(users: Users, name: str, password: str) -> ServerLogin:
    """A SCRAM client that has a token."""
    login = ServerLogin(users)
    login.handshake("SCRAM-SHA-256", 1)
    bare = f"n={name},r=abc,tokenauth=true".encode()
    challenge = login.token(b"n,," + bare)
    parts = dict(part.split(b"=", 1) for part in challenge.split(b","))
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), base64.b64decode(parts[b"s"]), int(parts[b"i"]))
    without = b"c=biws,r=" + parts[b"r"]
    key = hmac.digest(salted, b"Client Key", "sha256")
    signature = hmac.digest(hashlib.sha256(key).digest(), b",".join((bare, challenge, without)), "sha256")
    proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
    login.token(without + b",p=" + base64.b64encode(proof))
    return login


def test_logging_in_with_a_token() -> None:
    users = Users({"ann": "secret"})
    token = users.tokens.create("ann", "ann", (), -1, 0)
    login = log_in(users, token.id, token.password)
    assert (login.user, login.by_token) == ("ann", True)
    for name, password in ((token.id, "wrong"), ("nobody", token.password), ("ann", "secret")):
        with pytest.raises(LoginFailed):
            log_in(users, name, password)


def test_tokens_by_the_protocol(make_socketless: Any) -> None:
    socketless = make_socketless(BrokerSettings(users=(("ann", "a"), ("bob", "b"))))

    def ask(user: str | None, api: str, by_token: bool = False, **body: Any) -> Any:
        peer = Peer(5, "127.0.0.1", 40005, 1, ServerLogin(socketless.state.users))
        assert peer.login is not None
        peer.login.user, peer.login.by_token = user, by_token
        (reply,) = socketless.raw(socketless.frame(api, 2, body), peer)
        return socketless.body(api, 2, reply)

    assert ask("ann", "CreateDelegationToken", True, Renewers=[], MaxLifetimeMs=-1)["ErrorCode"] == 64
    renewers = [{"PrincipalType": "Group", "PrincipalName": "x"}]
    assert ask("ann", "CreateDelegationToken", Renewers=renewers, MaxLifetimeMs=-1)["ErrorCode"] == 67
    made = ask("ann", "CreateDelegationToken", Renewers=[], MaxLifetimeMs=-1)
    assert (made["ErrorCode"], made["PrincipalName"]) == (0, "ann")
    (told,) = ask("ann", "DescribeDelegationToken", Owners=None)["Tokens"]
    assert (told["TokenId"], told["Hmac"]) == (made["TokenId"], made["Hmac"])
    assert (
        ask("ann", "DescribeDelegationToken", Owners=[{"PrincipalType": "User", "PrincipalName": "x"}])["Tokens"] == []
    )
    assert ask("bob", "RenewDelegationToken", Hmac=made["Hmac"], RenewPeriodMs=5)["ErrorCode"] == 63
    assert ask("ann", "RenewDelegationToken", Hmac=made["Hmac"], RenewPeriodMs=5)["ErrorCode"] == 0
    assert ask("ann", "ExpireDelegationToken", Hmac=made["Hmac"], ExpiryTimePeriodMs=-1)["ErrorCode"] == 0
    assert ask("ann", "DescribeDelegationToken", Owners=None)["Tokens"] == []
