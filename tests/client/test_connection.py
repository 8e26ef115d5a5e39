"""One connection: negotiating versions, frames kept whole, and every way in which an answer may fail to come."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kwire.client.address import Address
from kwire.client.connection import BrokerConnection, unserved
from kwire.client.diagnose import why_closed
from kwire.client.security import Security
from kwire.errors import EncodeError, Exit, Failure, KwireError, UnknownName
from kwire.schema.model import Versions
from kwire.testing import Broker

SHORT = 0.3  # seconds that a silent server is given


def test_an_exchange_keeps_both_frames() -> None:
    with Broker(topics={"orders": 2}) as broker, BrokerConnection.open(Address.parse(broker.address)) as connection:
        version = connection.version("Metadata")
        exchange = connection.request("Metadata", version, {"Topics": [{"Name": "orders"}]})
        (asked, sent), (answered, got) = exchange.frames()
        assert (asked.name, answered.name) == (f"MetadataRequest v{version}", f"MetadataResponse v{version}")
        assert (asked.quality, answered.quality) == ("ok", "ok")
        assert asked.client_id == "kwire"
        assert asked.correlation_id == answered.correlation_id == exchange.correlation_id
        assert int.from_bytes(sent[:4], "big") == len(sent) - 4
        assert got == exchange.response
        assert exchange.body() == answered.body
        assert [row["Name"] for row in exchange.body()["Topics"]] == ["orders"]
        assert exchange.took > 0
        assert connection.take()[-1] is exchange
        assert connection.take() == []


def test_versions_are_the_newest_that_both_know(fake: Callable[..., Any], replies: Any) -> None:
    server = fake([replies.versions((18, 0, 3), (3, 0, 5), (12, 7, 9))])
    with BrokerConnection.open(server.address) as connection:
        assert connection.offered == {18: Versions(0, 3), 3: Versions(0, 5), 12: Versions(7, 9)}
        assert connection.version("Metadata") == 5
        with pytest.raises(Failure, match=r"takes Heartbeat v7-9, kwire knows v0-4$"):
            connection.version("Heartbeat")
        with pytest.raises(Failure, match=r"this listener does not serve Fetch$"):
            connection.version("Fetch")


@pytest.mark.parametrize(("highest", "second"), [(3, "ApiVersions v3"), (0, "ApiVersions v0"), (99, "ApiVersions v4")])
def test_an_older_broker_is_asked_again(
    fake: Callable[..., Any], replies: Any, highest: int, second: str
) -> None:  # fmt: skip
    refusal = replies.answer(
        {"ErrorCode": 35, "ApiKeys": [{"ApiKey": 18, "MinVersion": 0, "MaxVersion": highest}]}, version=0
    )
    server = fake([refusal, replies.versions((3, 0, 1))])
    with BrokerConnection.open(server.address) as connection:
        assert connection.offered == {3: Versions(0, 1)}
    assert server.asked() == ["ApiVersions v5", second]


def test_a_broker_that_names_no_versions_is_asked_in_v0(fake: Callable[..., Any], replies: Any) -> None:
    server = fake([replies.answer({"ErrorCode": 35, "ApiKeys": []}, version=0), replies.versions((3, 0, 1))])
    with BrokerConnection.open(server.address):
        assert server.asked() == ["ApiVersions v5", "ApiVersions v0"]


CASES = [
    ("close", "closed", "closed the connection instead of an answer to ApiVersions v5; brokers before 0.10 do "
     "that (walk --era 0.9 and call -v 0 suit them), and what is no broker"),
    ("silent", "timeout", "timed out: no answer to ApiVersions v5; Kafka answers this at once: a broker that hangs, or "
     "no broker"),
    (b"\0\0\1\0abcd", "closed", "closed in the answer to ApiVersions v5: 8 of 260 bytes came"),
    (b"\0\0", "not kafka", "answers what is not Kafka: 00 00"),
    (b"HTTP/1.1 400 Bad Request\r\n\r\n", "not kafka", "not Kafka: HTTP response (HTTP/1.1 400 Bad Request)"),
    (b"\x15\x03\x01\0\2\2\x50", "not kafka", "not Kafka: TLS alert (fatal internal_error); this listener wants TLS: "
     "--tls"),
]  # fmt: skip


@pytest.mark.parametrize(("reply", "kind", "said"), CASES)
def test_what_comes_instead_of_an_answer(
    fake: Callable[..., Any], replies: Any, reply: str | bytes, kind: str, said: str
) -> None:
    server = fake([getattr(replies, reply) if isinstance(reply, str) else replies.raw(reply)])
    with pytest.raises(Failure) as caught:
        BrokerConnection.open(server.address, timeout=SHORT if reply == "silent" else 5.0)
    assert caught.value.kind == kind
    assert str(caught.value) == f"{server.address}: {said}"
    assert caught.value.status == (Exit.NOT_KAFKA if kind == "not kafka" else Exit.MALFORMED)


@pytest.mark.parametrize("negotiate", [True, False])
def test_a_listener_with_tls_that_closes_without_a_word(negotiate: bool) -> None:
    with Broker(tls=True) as broker:
        address = Address.parse(broker.address)
        with pytest.raises(Failure) as caught, BrokerConnection.open(address, negotiate=negotiate) as connection:
            connection.request("Metadata", 9, {})
        said = caught.value.hint or why_closed(address, Security(), "Metadata", 9, 5.0)
    assert (caught.value.kind, said) == ("closed", "this listener wants TLS: --tls")


def test_an_answer_that_stops_in_the_middle(fake: Callable[..., Any], replies: Any) -> None:
    server = fake([replies.versions((3, 0, 9)), replies.raw(b"\0\0\0\x40abc"), replies.silent])
    with BrokerConnection.open(server.address) as connection:
        with pytest.raises(Failure, match=r"timed out in the answer to Metadata v9: 7 of 68 bytes came$"):
            connection.request("Metadata", 9, {}, timeout=SHORT)
        assert connection.closed
        assert connection.exchanges[-1].response is None


def test_another_requests_answer_is_none(fake: Callable[..., Any], replies: Any) -> None:
    server = fake([replies.answer({"ErrorCode": 0, "ApiKeys": []}, shift=1)])
    with pytest.raises(Failure, match=r"answers ApiVersions v5 \(correlation id 1\) with id 2$"):
        BrokerConnection.open(server.address)


def test_an_answer_that_cannot_be_read(fake: Callable[..., Any], replies: Any) -> None:
    server = fake([replies.versions((12, 0, 4)), lambda request: b"\0\0\0\7" + request[8:12] + b"\0\0\0"])
    with BrokerConnection.open(server.address) as connection:
        exchange = connection.request("Heartbeat", 4, {})
        with pytest.raises(Failure, match=r"the answer to Heartbeat v4 cannot be read: HeartbeatResponse v4"):
            exchange.body()
        assert exchange.frames()[1][0].quality == "malformed"


def test_an_old_request_has_no_hint(fake: Callable[..., Any], replies: Any) -> None:
    server = fake([replies.close])
    with BrokerConnection.open(server.address, negotiate=False) as connection, pytest.raises(Failure) as caught:
        connection.request("Metadata", 0, {})
    assert str(caught.value) == f"{server.address}: closed the connection instead of an answer to Metadata v0"


def test_nothing_listens(unused: Address) -> None:
    with pytest.raises(Failure) as caught:
        BrokerConnection.open(unused)
    assert str(caught.value) == f"{unused}: connection refused: nothing listens there"


@pytest.mark.parametrize(
    ("address", "said"),
    [
        (Address("", 9092), ":9092: no address to connect to"),
        (Address("127.0.0.1", 0), "127.0.0.1:0: no address to connect to"),
        (Address("127.0.0.1", -1), "127.0.0.1:-1: no address to connect to"),
        (Address("x" * 300, 9092), f"{'x' * 300}:9092: no host name"),
    ],
)
def test_addresses_that_metadata_may_hold(address: Address, said: str) -> None:
    with pytest.raises(Failure) as caught:
        BrokerConnection.open(address)
    assert caught.value.kind == "name"
    assert str(caught.value) == said


def test_a_request_that_cannot_be_written_leaves_the_connection() -> None:
    with Broker() as broker, BrokerConnection.open(Address.parse(broker.address)) as connection:
        with pytest.raises(EncodeError):
            connection.request("Metadata", 12, {"Nonsense": 1})
        with pytest.raises(UnknownName):
            connection.request("FetchResponse", 99, {})
        assert connection.request("ListGroups", 4, {}).body()["ErrorCode"] == 0


def test_no_answer_is_waited_for_where_none_is_due() -> None:
    with Broker(topics={"t": 1}) as broker, BrokerConnection.open(Address.parse(broker.address)) as connection:
        exchange = connection.request("Produce", 9, {"Acks": 0, "TopicData": []}, answer=False)
        assert (exchange.response, exchange.answered, exchange.took) == (None, None, 0)
        assert connection.request("ListGroups", 4, {}).body()["ErrorCode"] == 0


def test_tls() -> None:
    with Broker(tls=True) as broker:
        address = Address.parse(broker.address)
        with BrokerConnection.open(address, Security(tls=True, ca=Path(broker.certificate_file))) as connection:
            assert connection.version("Metadata") == 13
        with BrokerConnection.open(address, Security(tls=True, insecure=True)) as connection:
            assert connection.offered
        with pytest.raises(Failure, match=r"certificate not trusted: .*; --ca FILE, or --insecure$"):
            BrokerConnection.open(address, Security(tls=True))
        with pytest.raises(Failure) as caught:
            BrokerConnection.open(address, timeout=2.0)
        assert caught.value.kind in ("not kafka", "closed")


def test_tls_to_a_plaintext_listener() -> None:
    with Broker() as broker, pytest.raises(Failure) as caught:
        BrokerConnection.open(Address.parse(broker.address), Security(tls=True, insecure=True))
    said = "closed in the TLS handshake; a plaintext listener does that: leave out --tls"
    assert str(caught.value) == f"{broker.address}: {said}"


def test_files_that_are_no_certificates(tmp_path: Path) -> None:
    bad = tmp_path / "bad.pem"
    for content in ("", "nonsense"):
        bad.write_text(content)
        with pytest.raises(KwireError, match=r"bad\.pem: ") as caught, Broker() as broker:
            BrokerConnection.open(Address.parse(broker.address), Security(tls=True, ca=bad))
        assert not isinstance(caught.value, Failure)
        with pytest.raises((KwireError, ssl.SSLError)), Broker() as broker:
            BrokerConnection.open(Address.parse(broker.address), Security(tls=True, insecure=True, cert=bad))


def test_a_controllers_listener_is_called_so() -> None:
    why = "this is a controller's listener: it does not serve Metadata, brokers' listeners do"
    assert unserved("Metadata", {52: Versions(0, 1)}) == why
    assert unserved("Vote", {3: Versions(0, 1)}) == "this listener does not serve Vote"
