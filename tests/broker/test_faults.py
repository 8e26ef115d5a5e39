"""What faults make of requests: answers, silence, closed connections, damaged frames, and hooks in Python."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.broker.answers import ReplyFrame
from kwire.broker.context import Body, BrokerSettings, Request
from kwire.errors import KwireError

METADATA: Body = {"Topics": None}
HEARTBEAT: Body = {"GroupId": "g", "GenerationId": 1, "MemberId": "m"}


def test_an_error_so_often_and_after_so_many(socketless: Any) -> None:
    socketless.faults.add("Heartbeat:error=REBALANCE_IN_PROGRESS,after=1,times=2")
    codes = [socketless.ask("Heartbeat", 4, HEARTBEAT)["ErrorCode"] for _ in range(5)]
    assert codes == [25, 27, 27, 25, 25]


@pytest.mark.parametrize(
    ("rule", "client", "hit"),
    [
        ("Heartbeat,client=c1:error=27", "c1", True),
        ("Heartbeat,client=c?:error=27", "c2", True),
        ("Heartbeat,client=c1:error=27", "c2", False),
        ("group=g:error=27", "c1", True),
        ("group=other:error=27", "c1", False),
        ("any,version=4:error=27", "c1", True),
        ("any,version=3:error=27", "c1", False),
        ("Fetch:error=27", "c1", False),
        ("any,chance=0:error=27", "c1", None),
        ("any:error=27,chance=0", "c1", False),
    ],
)
def test_only_who_is_meant_is_hit(socketless: Any, rule: str, client: str, hit: bool | None) -> None:
    if hit is None:
        with pytest.raises(Exception, match="did you mean any:chance=0,error=27"):
            socketless.faults.add(rule)
        return
    socketless.faults.add(rule)
    assert (socketless.ask("Heartbeat", 4, HEARTBEAT, client=client)["ErrorCode"] == 27) is hit


def test_only_the_node_that_is_meant_is_hit(make_socketless: Any) -> None:
    socketless = make_socketless(BrokerSettings(nodes=2))
    socketless.faults.add("any,node=2:error=27")
    assert [socketless.ask("Heartbeat", 4, HEARTBEAT, node=node)["ErrorCode"] == 27 for node in (1, 2)] == [False, True]


@pytest.mark.parametrize(("nodes", "known"), [(1, "is node 1 alone"), (3, "are nodes 1 to 3")])
def test_a_node_that_is_not_there(make_socketless: Any, nodes: int, known: str) -> None:
    socketless = make_socketless(BrokerSettings(nodes=nodes))
    with pytest.raises(KwireError, match=f"^fault node=4:cut: there {known}$"):
        socketless.faults.add("node=4:cut")


@pytest.mark.parametrize(
    ("rule", "reply", "written"),
    [
        ("Produce:drop", ReplyFrame(None), 0),
        ("Produce:drop=after", ReplyFrame(None), 1),
        ("Produce:cut", ReplyFrame(None, "cut on purpose"), 0),
        ("Produce:cut=after", ReplyFrame(None, "cut on purpose"), 1),
        ("Produce:error=NOT_LEADER_OR_FOLLOWER,cut=after", ReplyFrame(None, "cut on purpose"), 0),
    ],
)
def test_answers_that_never_come(socketless: Any, rule: str, reply: ReplyFrame, written: int) -> None:
    from kwire.records import build

    socketless.faults.add(rule)
    part = {"Index": 0, "Records": build([(None, b"v")])}
    body = {"Acks": -1, "TimeoutMs": 9, "TopicData": [{"Name": "t", "PartitionData": [part]}]}
    assert socketless.send("Produce", 9, body) == [reply]
    assert socketless.state.cluster.topics["t"].partitions[0].log.end == written


def test_a_delay_comes_after_the_deed(socketless: Any) -> None:
    socketless.faults.add("Metadata:delay=2s")
    replies = socketless.send("Metadata", 12, {"Topics": [{"Name": "new"}]})
    socketless.clock.run(1_999)
    assert (replies, "new" in socketless.state.cluster.topics) == ([], True)
    socketless.clock.run(1)
    assert socketless.body("Metadata", 12, replies[0])["Topics"][0]["Name"] == "new"


def test_a_delayed_answer_to_a_closed_connection_is_none(socketless: Any) -> None:
    socketless.faults.add("Metadata:delay=2s")
    replies = socketless.raw(socketless.frame("Metadata", 12, METADATA))
    socketless.peer.close()
    socketless.clock.run(3_000)
    assert replies == []


def test_a_frame_cut_short(socketless: Any) -> None:
    whole = socketless.send("Metadata", 12, METADATA)[0].data
    socketless.faults.add("Metadata:short=20")
    assert socketless.send("Metadata", 12, METADATA) == [ReplyFrame(whole[:20], "cut short after 20 bytes, on purpose")]


def test_flipped_bytes_spare_size_and_correlation_id(socketless: Any) -> None:
    whole = socketless.send("Metadata", 12, METADATA)[0].data
    socketless.faults.add("Metadata:flip=3")
    bad = socketless.send("Metadata", 12, METADATA)[0].data
    assert (bad[:8], len(bad)) == (whole[:8], len(whole))
    assert sum(a != b for a, b in zip(whole, bad, strict=True)) == 3


def test_throttling_is_said(socketless: Any) -> None:
    socketless.faults.add("Metadata:throttle=1500ms")
    assert socketless.ask("Metadata", 12, METADATA)["ThrottleTimeMs"] == 1500


def test_versions_are_announced_and_kept_to(socketless: Any) -> None:
    socketless.faults.add("Metadata:versions=0-4")
    rows = socketless.ask("ApiVersions", 0, {})["ApiKeys"]
    assert [(row["MinVersion"], row["MaxVersion"]) for row in rows if row["ApiKey"] == 3] == [(0, 4)]
    assert socketless.ask("Metadata", 4, {**METADATA, "AllowAutoTopicCreation": False})["ControllerId"] == 1
    assert socketless.send("Metadata", 5, METADATA) == [ReplyFrame(None, "Metadata v5 is not served, 0-4 are")]


@pytest.mark.parametrize(("version", "rows"), [(0, 1), (3, 1), (4, 1)])
def test_api_versions_unsupported_has_the_form_of_v0(socketless: Any, version: int, rows: int) -> None:
    socketless.faults.add("ApiVersions:unsupported")
    body = {"ClientSoftwareName": "n", "ClientSoftwareVersion": "1"} if version > 2 else {}
    (reply,) = socketless.send("ApiVersions", version, body)
    answer = socketless.body("ApiVersions", 0, reply)
    assert (answer["ErrorCode"], len(answer["ApiKeys"])) == (35, rows)


def test_other_apis_unsupported_say_so(socketless: Any) -> None:
    socketless.faults.add("Heartbeat:unsupported")
    assert socketless.ask("Heartbeat", 4, HEARTBEAT)["ErrorCode"] == 35


def test_another_address_is_advertised(make_socketless: Any) -> None:
    socketless = make_socketless(BrokerSettings(nodes=2))
    socketless.faults.add("node=2:advertise=10.1.2.3:9999")
    brokers = socketless.ask("Metadata", 12, METADATA)["Brokers"]
    assert [(row["Host"], row["Port"]) for row in brokers] == [("127.0.0.1", 0), ("10.1.2.3", 9999)]
    socketless.faults.add("advertise=kafka.example:1")
    assert socketless.ask("DescribeCluster", 1, {})["Brokers"][0]["Host"] == "kafka.example"


ELSEWHERE, AT_HOME = "10.1.2.3", "127.0.0.1"


@pytest.mark.parametrize(
    ("rule", "metadata", "coordinator"),
    [
        ("advertise=10.1.2.3:9", ELSEWHERE, ELSEWHERE),
        ("any:advertise=10.1.2.3:9", ELSEWHERE, ELSEWHERE),
        ("coordinator:advertise=10.1.2.3:9", AT_HOME, ELSEWHERE),
        ("FindCoordinator:advertise=10.1.2.3:9", AT_HOME, ELSEWHERE),
        ("leader:advertise=10.1.2.3:9", ELSEWHERE, AT_HOME),
        ("Metadata+DescribeCluster:advertise=10.1.2.3:9", ELSEWHERE, AT_HOME),
    ],
)
def test_where_an_advertised_address_is_said(socketless: Any, rule: str, metadata: str, coordinator: str) -> None:
    socketless.faults.add(rule)
    assert socketless.ask("Metadata", 12, METADATA)["Brokers"][0]["Host"] == metadata
    assert socketless.ask("DescribeCluster", 1, {})["Brokers"][0]["Host"] == metadata
    assert socketless.ask("FindCoordinator", 3, {"Key": "g", "KeyType": 0})["Host"] == coordinator


def test_the_leaders_of_a_topic_move_on(make_socketless: Any) -> None:
    socketless = make_socketless(BrokerSettings(nodes=2, topics=(("t", 1),)))
    partition = socketless.state.cluster.topics["t"].partitions[0]
    leader = partition.leader
    socketless.faults.add("leader:move")
    rows = socketless.ask("Fetch", 12, socketless.fetch_body("t"), node=leader)["Responses"][0]["Partitions"]
    other = 3 - leader
    assert (rows[0]["ErrorCode"], rows[0]["CurrentLeader"]) == (6, {"LeaderId": other, "LeaderEpoch": 1})
    assert (
        socketless.ask("Fetch", 12, socketless.fetch_body("t"), node=other)["Responses"][0]["Partitions"][0][
            "ErrorCode"
        ]
        == 0
    )


def test_what_was_done_is_told(socketless: Any) -> None:
    socketless.faults.add("Metadata:throttle=1s")
    socketless.ask("Metadata", 12, METADATA)
    assert [(h.kind, h.text) for h in socketless.state.happenings][-1] == ("fault", "Metadata: Metadata:throttle=1s")


# ---------------------------------------------------------------- hooks


def test_a_hook_answers_goes_on_or_gives_actions(socketless: Any) -> None:
    said: list[Any] = [None, {"ErrorCode": 14}, "error=NOT_COORDINATOR", "cut", "nonsense"]
    seen: list[Request] = []

    def hook(request: Request) -> Body | str | None:
        seen.append(request)
        answer: Body | str | None = said.pop(0)
        return answer

    control = socketless.faults.control("heartbeat", hook)
    assert [socketless.ask("Heartbeat", 4, HEARTBEAT)["ErrorCode"] for _ in range(3)] == [25, 14, 16]
    assert socketless.send("Heartbeat", 4, HEARTBEAT) == [ReplyFrame(None, "cut on purpose")]
    why = socketless.send("Heartbeat", 4, HEARTBEAT)[0].close
    assert why.startswith("the hook on Heartbeat at tests/broker/test_faults.py:")
    assert " gave no rule's actions: fault nonsense: no action" in why
    control.remove()
    assert socketless.ask("Heartbeat", 4, HEARTBEAT)["ErrorCode"] == 25
    assert (seen[0].api, seen[0].version, seen[0].client_id, seen[0].body["GroupId"]) == ("Heartbeat", 4, "test", "g")


def test_a_hook_lives_as_long_as_its_block(socketless: Any) -> None:
    with socketless.faults.control("any", lambda request: "error=1" if request.api == "Heartbeat" else None):
        assert socketless.ask("Heartbeat", 4, HEARTBEAT)["ErrorCode"] == 1
    assert socketless.faults.controls == []


def test_rules_and_hooks_can_be_taken_away(socketless: Any) -> None:
    rule = socketless.faults.add("Heartbeat:error=27")
    socketless.faults.remove(rule)
    socketless.faults.add("Heartbeat:error=14")
    socketless.faults.clear()
    assert socketless.ask("Heartbeat", 4, HEARTBEAT)["ErrorCode"] == 25


def test_a_paused_node_is_silent_and_the_others_speak(make_socketless: Any) -> None:
    socketless = make_socketless(BrokerSettings(nodes=2))
    socketless.faults.add("node=2:pause=2s")
    replies = [socketless.send("Metadata", 12, METADATA, node=2) for _ in range(2)]
    socketless.ask("Metadata", 12, METADATA, node=1)
    socketless.clock.run(1_999)
    assert replies == [[], []]
    socketless.clock.run(1)
    assert [len(each) for each in replies] == [1, 1]
    socketless.ask("Metadata", 12, METADATA, node=2)


def test_a_pause_without_an_end_is_over_when_its_rule_is(socketless: Any) -> None:
    rule = socketless.faults.add("any:pause")
    replies = socketless.send("Metadata", 12, METADATA)
    socketless.clock.run(600_000)
    assert replies == []
    socketless.faults.remove(rule)
    socketless.clock.run(100)
    assert len(replies) == 1


def test_a_half_open_connection_gets_nothing_more(socketless: Any) -> None:
    socketless.faults.add("Metadata:half-open")
    replies = socketless.send("Metadata", 12, METADATA)
    socketless.clock.run(600_000)
    assert replies == []
