"""Key schedules against vectors: RFC 8448 for TLS 1.3, the IETF's TLS list's for the PRF of 1.2."""

from __future__ import annotations

from kwire.capture.tls.schedule import keys_12, keys_13, master_secret, next_secret, prf
from kwire.capture.tls.suites import suite_of


def test_the_prf_of_1_2() -> None:
    found = prf(
        bytes.fromhex("9bbe436ba940f017b17652849a71db35"), b"test label",
        bytes.fromhex("a0ba9f936cda311827a6f796ffd5198c"), 100, "sha256",
    )  # fmt: skip
    assert found.hex().startswith("e3f229ba727be17b8d122620557cd453c2aab21d07c3d495329b52d4e61edb5a")
    assert len(found) == 100


def test_the_keys_of_1_3() -> None:
    """RFC 8448 section 3, the server's handshake traffic secret."""
    secret = bytes.fromhex("b67b7d690cc16c4e75e54213cb2d37b4e9c912bcded9105d42befd59d391ad38")
    keys = keys_13(suite_of(0x1301), secret)
    assert keys.key.hex() == "3fce516009c21727d0f2e4e86ee403bc"
    assert keys.iv.hex() == "5d313eb2671276ee13000b30"


def test_the_next_secret_is_another_of_the_same_length() -> None:
    secret = bytes(48)
    found = next_secret(suite_of(0x1302), secret)
    assert len(found) == 48
    assert found != secret


def test_the_lengths_of_1_2_are_the_suites() -> None:
    client, server = keys_12(suite_of(0xC028), bytes(48), bytes(32), bytes(32))
    assert (len(client.key), len(client.iv), len(client.mac)) == (32, 0, 48)
    assert client != server
    assert len(keys_12(suite_of(0xC02F), bytes(48), bytes(32), bytes(32))[0].iv) == 4


def test_an_extended_master_secret_rests_on_the_transcript() -> None:
    plain = master_secret(b"p" * 48, b"r" * 64, None, "sha256")
    extended = master_secret(b"p" * 48, b"r" * 64, b"t" * 32, "sha256")
    assert len(plain) == len(extended) == 48
    assert plain != extended
