"""The server's SCRAM signature: RFC 7677's example, wrong passwords, and what is no exchange."""

import pytest

from kwire.payloads.scram import server_signature

NONCE = b"rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
EXCHANGE = [  # RFC 7677, section 3: user "user", password "pencil"
    b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
    b"r=" + NONCE + b",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
    b"c=biws,r=" + NONCE + b",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
    b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
]


def test_the_right_password() -> None:
    assert server_signature(EXCHANGE, "pencil") == "right"


def test_another_password() -> None:
    assert server_signature(EXCHANGE, "pen") == "wrong: another password, or another server"


@pytest.mark.parametrize("tokens", [[], EXCHANGE[:3], EXCHANGE[1:], [b"\0alice\0secret"]])
def test_no_whole_exchange(tokens: list[bytes]) -> None:
    assert server_signature(tokens, "pencil") is None


@pytest.mark.parametrize(
    ("challenge", "end"),
    [
        (b"r=x,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=99999999999", EXCHANGE[3]),
        (b"r=x,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=0", EXCHANGE[3]),
        (b"r=x,s=!!,i=4096", EXCHANGE[3]),
        (b"r=x,i=4096", EXCHANGE[3]),
        (EXCHANGE[1], b"v=AAAA"),
    ],
)
def test_what_cannot_be_checked_is_said(challenge: bytes, end: bytes) -> None:
    verdict = server_signature([EXCHANGE[0], challenge, EXCHANGE[2], end], "pencil")
    assert verdict is not None
    assert verdict.startswith("not to be checked")
