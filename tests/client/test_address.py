"""Addresses of brokers as people and metadata write them."""

from __future__ import annotations

import pytest

from kwire.client.address import Address
from kwire.errors import KwireError


@pytest.mark.parametrize(
    ("text", "address", "shown"),
    [
        ("broker", Address("broker", 9092), "broker:9092"),
        ("broker-1.example.com:9093", Address("broker-1.example.com", 9093), "broker-1.example.com:9093"),
        ("SASL_SSL://b:1", Address("b", 1), "b:1"),
        ("[::1]:9092", Address("::1", 9092), "[::1]:9092"),
        ("[fe80::1%eth0]", Address("fe80::1%eth0", 9092), "[fe80::1%eth0]:9092"),
        (" b:65535 ", Address("b", 65535), "b:65535"),
    ],
)
def test_addresses_are_read_and_written(text: str, address: Address, shown: str) -> None:
    assert Address.parse(text) == address
    assert str(address) == shown


@pytest.mark.parametrize("text", ["", "b:0", "b:65536", "::1:9092", "a b:1", "b:x", "http://b/path", "b:99999999"])
def test_what_is_no_address_is_named(text: str) -> None:
    with pytest.raises(KwireError) as caught:
        Address.parse(text)
    assert str(caught.value) == f"{text or 'nothing'} is no broker's address; as host:9092, or [::1]:9092"


def test_several_stand_behind_one_another() -> None:
    assert Address.parse_all("a, b:1,") == [Address("a", 9092), Address("b", 1)]
    with pytest.raises(KwireError):
        Address.parse_all("")
