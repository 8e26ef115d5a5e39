"""The client's side of SCRAM: the exchanges of RFC 5802's successors, and servers that cheat."""

from __future__ import annotations

import pytest

from kwire.client.scram import ScramClient
from kwire.errors import KwireError

NONCE = "rOprNGfwEbeRWgbNEkqO"  # the example of RFC 7677, section 3
SERVER = f"{NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
CHALLENGE = f"r={SERVER},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
PROOF = b"dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
SIGNATURE = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_the_exchange_of_rfc_7677() -> None:
    scram = ScramClient("SCRAM-SHA-256", "user", "pencil", NONCE)
    assert scram.first() == b"n,,n=user,r=" + NONCE.encode()
    assert scram.final(CHALLENGE) == b"c=biws,r=" + SERVER.encode() + b",p=" + PROOF
    scram.check(SIGNATURE)


def test_names_are_escaped() -> None:
    assert ScramClient("SCRAM-SHA-512", "a,b=c", "p", "N").first() == b"n,,n=a=2Cb=3Dc,r=N"


@pytest.mark.parametrize(
    ("challenge", "said"),
    [
        (b"", "the broker's SCRAM challenge cannot be read"),
        (b"r=abc,s=W22Z,i=many", "the broker's SCRAM challenge cannot be read"),
        (b"r=other,s=W22Z,i=4096", "the broker's SCRAM nonce does not go on from ours"),
        (f"r={NONCE},s=W22Z,i=4096".encode(), "the broker's SCRAM nonce does not go on from ours"),
        (f"r={SERVER},s=W22Z,i=1".encode(), "the broker's SCRAM challenge wants 1 iterations; 4,096 to 1,000,000 are "
         "done"),
        (f"r={SERVER},s=W22Z,i=2000000000".encode(), "the broker's SCRAM challenge wants 2,000,000,000 iterations; "
         "4,096 to 1,000,000 are done"),
    ],
)  # fmt: skip
def test_a_challenge_that_cheats_is_refused(challenge: bytes, said: str) -> None:
    scram = ScramClient("SCRAM-SHA-256", "user", "pencil", NONCE)
    scram.first()
    with pytest.raises(KwireError) as caught:
        scram.final(challenge)
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("end", "said"),
    [
        (b"e=invalid-proof", "SCRAM refused: invalid-proof"),
        (b"v=" + b"A" * 43 + b"=", "the broker's SCRAM signature is wrong: another password, or another server"),
        (b"", "the broker's SCRAM signature is missing"),
    ],
)
def test_a_server_must_prove_itself(end: bytes, said: str) -> None:
    scram = ScramClient("SCRAM-SHA-256", "user", "pencil", NONCE)
    scram.first()
    scram.final(CHALLENGE)
    with pytest.raises(KwireError) as caught:
        scram.check(end)
    assert str(caught.value) == said
