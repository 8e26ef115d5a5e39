"""kwire call against the embedded broker."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kwire.testing import Broker

Kwire = Callable[..., Any]
ORDERS = '{"Topics":[{"Name":"orders"}]}'


def test_both_frames_are_drawn(kwire: Kwire) -> None:
    with Broker(topics={"orders": 1}) as broker:
        ran = kwire("call", broker.address, "Metadata", ORDERS)
    assert ran.status == 0
    assert ran.err == ""
    lines = ran.text.splitlines()
    assert lines[0].split(" → ")[1].split(" · ")[0] == broker.address
    assert [line.split(" · ")[0] for line in lines if " · correlation id" in line] == [
        "MetadataRequest v13",
        "MetadataResponse v13",
    ]


def test_json_holds_both_and_quiet_the_answer_alone(kwire: Kwire) -> None:
    with Broker(topics={"orders": 1}) as broker:
        both = json.loads(kwire("call", broker.address, "metadata", ORDERS, "--format", "json").text)
        alone = json.loads(kwire("call", broker.address, "Metadata", ORDERS, "--format", "json", "-q").text)
    assert (both["broker"], both["api"], both["api_version"]) == (broker.address, "Metadata", 13)
    assert both["request"]["body"]["AllowAutoTopicCreation"] is False
    assert both["response"]["body"]["Topics"][0]["Name"] == "orders"
    assert alone["kind"] == "response"
    assert alone["body"] == both["response"]["body"]


def test_an_api_by_its_key(kwire: Kwire) -> None:
    with Broker(topics={"orders": 1}) as broker:
        assert kwire("call", broker.address, "3", "-q").text.startswith("MetadataResponse v13")
        assert kwire("call", broker.address, "999").err == "kwire: no API key 999\n"


def test_the_newest_version_with_the_fields_given(kwire: Kwire) -> None:
    body = '{"Topics":[{"Topic":"orders","Partitions":[{"Partition":0}]}]}'
    with Broker(topics={"orders": 1}) as broker:
        ran = kwire("call", broker.address, "Fetch", body, "-q", "--format", "json")
    assert ran.status == 0
    assert ran.err == "kwire: Fetch v12, the newest with these fields; both know v18\n"
    assert json.loads(ran.text)["api_version"] == 12


def test_a_field_that_no_version_has(kwire: Kwire) -> None:
    ran = kwire("call", "127.0.0.1:1", "Metadata", '{"Tropics":[]}')
    assert ran.status == 2
    assert (
        ran.err == "kwire: MetadataRequest v13: Tropics: no such field in MetadataRequest v13; did you mean Topics?\n"
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["CreateTopics", '{"Topics":[{"Name":"x"}]}'], "CreateTopics creates topics"),
        (["DeleteGroups", '{"GroupsNames":["g"]}'], "DeleteGroups deletes groups with their offsets"),
        (["Metadata", '{"Topics":[{"Name":"x"}],"AllowAutoTopicCreation":true}'],
         "Metadata creates the topics that it names, where the broker allows that"),
        (["Metadata", '{"Topics":[{"Name":"x"}]}', "-v", "1"],
         "Metadata creates the topics that it names, where the broker allows that"),
    ],
)  # fmt: skip
def test_what_changes_something_needs_a_yes(kwire: Kwire, arguments: list[str], said: str) -> None:
    with Broker() as broker:
        ran = kwire("call", broker.address, *arguments)
        assert ran.status == 2
        assert ran.err.splitlines()[-1] == f"Error: {said}; --yes sends it, --dry-run shows it"
        assert broker.requests() == []
        assert kwire("call", broker.address, *arguments, "--yes").status in (0, 1)
        assert len(broker.requests()) > 0


def test_a_dry_run_sends_nothing(kwire: Kwire) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.05)
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        ran = kwire("call", address, "DeleteTopics", '{"TopicNames":["t"]}', "-n", "-v", "5", "--client-id", "me")
        with pytest.raises(TimeoutError):
            listener.accept()
    assert ran.status == 0
    assert ran.text.splitlines()[0] == "DeleteTopicsRequest v5 · 25 bytes · correlation id 1 · client id me"


def test_an_error_code_is_status_1(kwire: Kwire) -> None:
    with Broker(faults=["ListGroups:error=COORDINATOR_LOAD_IN_PROGRESS"]) as broker:
        ran = kwire("call", broker.address, "ListGroups", "-q")
    assert ran.status == 1
    assert "14 COORDINATOR_LOAD_IN_PROGRESS" in ran.text


def test_the_body_from_a_file_and_from_stdin(kwire: Kwire, tmp_path: Path) -> None:
    file = tmp_path / "body.json"
    file.write_text(ORDERS)
    with Broker(topics={"orders": 1}) as broker:
        for given, stdin in ((f"@{file}", b""), ("-", ORDERS.encode())):
            ran = kwire("call", broker.address, "Metadata", given, "-q", "--format", "json", stdin=stdin)
            assert [topic["Name"] for topic in json.loads(ran.text)["body"]["Topics"]] == ["orders"]


def test_nothing_is_waited_for_without_acks(kwire: Kwire) -> None:
    body = '{"Acks":0,"TopicData":[]}'
    with Broker() as broker:
        ran = kwire("call", broker.address, "Produce", body, "--yes", "--format", "json")
    assert (ran.status, json.loads(ran.text)["took_ns"]) == (0, None)
    assert "response" not in json.loads(ran.text)


def test_where_nothing_listens(kwire: Kwire) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    ran = kwire("call", f"127.0.0.1:{port}", "ListGroups")
    assert ran.status == 1
    assert ran.err == f"kwire: 127.0.0.1:{port}: connection refused: nothing listens there\n"


def test_of_several_the_first_that_can_be_reached_is_asked(kwire: Kwire) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with Broker() as broker:
        ran = kwire("call", f"127.0.0.1:{port},{broker.address},127.0.0.1:{port}", "ApiVersions", "-q")
    assert ran.status == 0
    assert ran.err == f"kwire: 127.0.0.1:{port}: connection refused: nothing listens there\n"
    assert "ApiVersionsResponse" in ran.text


def test_a_version_that_the_broker_lacks(kwire: Kwire) -> None:
    with Broker(era=(4, 0)) as broker:
        ran = kwire("call", broker.address, "Fetch", "-v", "1")
    assert ran.status == 1
    assert "it takes Fetch v4-17, not v1, which Kafka 4.0 removed" in ran.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["b", "Metadat"], "kwire: no message Metadat; did you mean Metadata?"),
        (["b", "GroupMetadataValue"], "kwire: no API GroupMetadataValue"),
        (["b:x", "Metadata"], "kwire: b:x is no broker's address; as host:9092, or [::1]:9092"),
        (["b", "Metadata", "-v", "99"], "kwire: no version 99 of MetadataRequest (it has 0-13)"),
        (["b", "Metadata", "{"], "kwire: MetadataRequest v13: not JSON: Expecting property name enclosed in double "
         "quotes: line 1 column 2 (char 1)"),
        (["b", "Metadata", "[]"], "kwire: MetadataRequest v13: needs an object with fields, has []"),
    ],
)  # fmt: skip
def test_wrong_usage_is_one_line(kwire: Kwire, arguments: list[str], said: str) -> None:
    ran = kwire("call", *arguments)
    assert (ran.status, ran.err.splitlines()[-1]) == (2, said)


def test_secrets_are_withheld(kwire: Kwire) -> None:
    body = json.dumps({"AuthBytes": "AGFubgBzM2NyZXQ="})
    ran = kwire("call", "b", "SaslAuthenticate", body, "-n")
    assert "s3cret" not in ran.text
    assert "withheld" in ran.text


def test_a_request_goes_to_whom_it_belongs(kwire: Kwire) -> None:
    groups = '{"Groups":["g"]}'
    with Broker(nodes=3) as broker:
        node = broker.server.state.cluster.coordinator("g")
        target = broker.addresses[node - 1]
        other = broker.addresses[node % 3]
        ran = kwire("call", other, "DescribeGroups", groups)
        assert ran.err == f"kwire: node {node} coordinates g: asked at {target}\n"
        assert f"→ {target} " in ran.text
        assert "GROUP_ID_NOT_FOUND" in ran.text
        assert "NOT_COORDINATOR" in kwire("call", other, "DescribeGroups", groups, "--no-route").text
        assert kwire("call", other, "DescribeGroups", groups, "-v", "3").err == ran.err
        assert kwire("call", target, "DescribeGroups", groups).err == ""


def test_a_coordinator_that_cannot_be_reached(kwire: Kwire) -> None:
    with Broker(faults=["FindCoordinator:advertise=127.0.0.1:1"]) as broker:
        ran = kwire("call", broker.address, "Heartbeat", '{"GroupId":"g"}', "--yes")
        assert ran.err.endswith(f"nothing listens there; --no-route asks {broker.address}\n")


def test_a_web_server(kwire: Kwire) -> None:
    from http.server import HTTPServer, SimpleHTTPRequestHandler
    from threading import Thread

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Quiet) as server:
        Thread(target=server.handle_request, daemon=True).start()
        ran = kwire("call", f"127.0.0.1:{server.server_port}", "Metadata", "--timeout", "300ms")
    assert ran.status == 3
    assert ran.err == f"kwire: 127.0.0.1:{server.server_port}: not Kafka: HTML page\n"
