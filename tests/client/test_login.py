"""SASL against the embedded broker, and against listeners that want something else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kwire.client.address import Address
from kwire.client.connection import BrokerConnection
from kwire.client.security import MECHANISMS, Security
from kwire.errors import Failure
from kwire.testing import Broker


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_password_logs_in(mechanism: str) -> None:
    with Broker(users={"ann": "s3cret"}) as broker:
        address = Address.parse(broker.address)
        with BrokerConnection.open(
            address, Security(mechanism=mechanism, username="ann", password="s3cret")
        ) as connection:
            assert connection.request("ListGroups", 4, {}).body()["ErrorCode"] == 0
            names = [exchange.api for exchange in connection.exchanges]
            assert names[-2:] == ["SaslAuthenticate", "ListGroups"]
            assert names.count("SaslAuthenticate") == (1 if mechanism == "PLAIN" else 2)
        with pytest.raises(Failure) as caught:
            BrokerConnection.open(address, Security(mechanism=mechanism, username="ann", password="wrong"))
        assert caught.value.kind == "sasl"
        assert "s3cret" not in str(caught.value)


def test_a_listener_without_sasl_says_so() -> None:
    with Broker() as broker, pytest.raises(Failure) as caught:
        BrokerConnection.open(Address.parse(broker.address), Security(mechanism="PLAIN", username="a", password="b"))
    assert str(caught.value) == f"{broker.address}: this listener wants no SASL; leave out --sasl"


def test_other_mechanisms_are_named(fake: Callable[..., Any], replies: Any) -> None:
    offer = replies.answer({"ErrorCode": 33, "Mechanisms": ["GSSAPI", "OAUTHBEARER"]})
    server = fake([replies.versions((17, 0, 1), (36, 0, 2)), offer])
    with pytest.raises(Failure) as caught:
        BrokerConnection.open(server.address, Security(mechanism="PLAIN", username="a", password="b"))
    assert str(caught.value) == f"{server.address}: no PLAIN here; the broker offers GSSAPI, OAUTHBEARER"


def test_a_server_that_does_not_know_the_password(fake: Callable[..., Any], replies: Any) -> None:
    hello = [replies.versions((17, 0, 1), (36, 0, 2)), replies.answer({"ErrorCode": 0, "Mechanisms": []})]
    cheat = replies.answer({"ErrorCode": 0, "AuthBytes": b"r=not-ours,s=W22Z,i=4096"})
    server = fake([*hello, cheat])
    with pytest.raises(Failure) as caught:
        BrokerConnection.open(server.address, Security(mechanism="SCRAM-SHA-256", username="a", password="b"))
    assert str(caught.value) == f"{server.address}: the broker's SCRAM nonce does not go on from ours"


def test_the_password_is_not_in_what_is_printed_of_options() -> None:
    assert "s3cret" not in repr(Security(mechanism="PLAIN", username="ann", password="s3cret"))
