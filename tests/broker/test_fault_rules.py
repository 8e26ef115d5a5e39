"""The grammar of fault rules: what a text means, and what is said of one that means nothing."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.broker.fault_rules import GROUP_APIS, LEADER_APIS, FaultRule, address, duration
from kwire.errors import KwireError
from kwire.schema.model import Versions

Parsed = tuple[frozenset[str] | None, dict[str, str], list[tuple[str, Any]], int, int | None, float]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Heartbeat:error=UNKNOWN_MEMBER_ID,times=3", ({"Heartbeat"}, {}, [("error", 25)], 0, 3, 1)),
        ("Fetch:error=6", ({"Fetch"}, {}, [("error", 6)], 0, None, 1)),
        ("Fetch:delay=2s", ({"Fetch"}, {}, [("delay", 2_000_000_000)], 0, None, 1)),
        ("Produce:drop", ({"Produce"}, {}, [("drop", "before")], 0, None, 1)),
        ("Produce:drop=after,after=2", ({"Produce"}, {}, [("drop", "after")], 2, None, 1)),
        ("metadata:cut", ({"Metadata"}, {}, [("cut", "before")], 0, None, 1)),
        ("Fetch:short=20", ({"Fetch"}, {}, [("short", 20)], 0, None, 1)),
        ("Fetch:flip=3,chance=0.25", ({"Fetch"}, {}, [("flip", 3)], 0, None, 0.25)),
        ("group=g:forget", (None, {"group": "g"}, [("forget", True)], 0, 1, 1)),
        ("coordinator:move", (GROUP_APIS, {}, [("move", True)], 0, 1, 1)),
        ("leader,topic=t*:move,times=2", (LEADER_APIS, {"topic": "t*"}, [("move", True)], 0, 2, 1)),
        ("Heartbeat,client=c1:expire", ({"Heartbeat"}, {"client": "c1"}, [("expire", True)], 0, 1, 1)),
        ("advertise=10.1.2.3:9092", (None, {}, [("advertise", ("10.1.2.3", 9092))], 0, None, 1)),
        ("coordinator:advertise=h:1", ({"FindCoordinator"}, {}, [("advertise", ("h", 1))], 0, None, 1)),
        ("leader:advertise=h:1", ({"Metadata", "DescribeCluster"}, {}, [("advertise", ("h", 1))], 0, None, 1)),
        ("Metadata:advertise=h:1", ({"Metadata"}, {}, [("advertise", ("h", 1))], 0, None, 1)),
        ("node=2:advertise=[::1]:9", (None, {"node": "2"}, [("advertise", ("::1", 9))], 0, None, 1)),
        ("ApiVersions:unsupported", ({"ApiVersions"}, {}, [("unsupported", True)], 0, None, 1)),
        ("Fetch:versions=0-11", ({"Fetch"}, {}, [("versions", Versions(0, 11))], 0, None, 1)),
        (
            "JoinGroup+SyncGroup,version=5:cut",
            ({"JoinGroup", "SyncGroup"}, {"version": "5"}, [("cut", "before")], 0, None, 1),
        ),
        ("any:throttle=1s,delay=300ms", (None, {}, [("throttle", 10**9), ("delay", 3 * 10**8)], 0, None, 1)),
        ("cut", (None, {}, [("cut", "before")], 0, None, 1)),
    ],
)
def test_a_rule_says_who_what_and_when(text: str, expected: Parsed) -> None:
    rule = FaultRule.parse(text)
    assert (rule.apis, rule.where, rule.actions, rule.after, rule.times, rule.chance) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Produce:client=foo,error=X", "fault Produce:client=foo,error=X: did you mean Produce,client=foo:error=X?"),
        ("Produce,error=6", "fault Produce,error=6: did you mean Produce:error=6?"),
        ("error=6:Produce", "fault error=6:Produce: did you mean Produce:error=6?"),
        ("Fetch cut topic=t", "fault Fetch cut topic=t: did you mean Fetch,topic=t:cut?"),
        ("Produce,Fetch:cut", "fault Produce,Fetch:cut: did you mean Produce+Fetch:cut?"),
        ("Fetch:cut,topic=t,times=2", "fault Fetch:cut,topic=t,times=2: did you mean Fetch,topic=t:cut,times=2?"),
        ("node=1,advertise=h:1", "fault node=1,advertise=h:1: did you mean node=1:advertise=h:1?"),
        ("Hartbeat:drop", "fault Hartbeat:drop: no API Hartbeat; did you mean Heartbeat?"),
        ("Fetch+Zzz:drop", "fault Fetch+Zzz:drop: no API Zzz"),
        ("Fetch:cut,chance=7", "fault Fetch:cut,chance=7: chance=7; write 0 to 1, as chance=0.1"),
        ("Fetch:cut,chance=-1", "fault Fetch:cut,chance=-1: chance=-1; write 0 to 1, as chance=0.1"),
        ("Fetch:cut,chance=nan", "fault Fetch:cut,chance=nan: chance=nan; write 0 to 1, as chance=0.1"),
        ("Fetch:cut,times=0", "fault Fetch:cut,times=0: times=0 would be never"),
        ("Fetch:flip=0", "fault Fetch:flip=0: flip=0 changes nothing"),
        ("Produce:delay=-1", "fault Produce:delay=-1: -1 is no time; write 300ms, 2s or 1m"),
        ("Produce:throttle=99999m", "fault Produce:throttle=99999m: 99999m is more than a day"),
        ("Produce:versions=9-3", "fault Produce:versions=9-3: versions=9-3; write 0-3, 2+, 5 or none"),
        ("Produce:versions=", "fault Produce:versions=: versions=; write 0-3, 2+, 5 or none"),
        ("versions=0-3", "fault versions=0-3: versions= is about one API or several, as Fetch:versions=0-3"),
        ("Fetch,client=c:versions=1", "fault Fetch,client=c:versions=1: client= does not go with versions, which holds "
         "for all"),
        ("group=g:advertise=h:1", "fault group=g:advertise=h:1: group= does not go with advertise, which holds for "
         "all"),
        ("advertise=h:1,after=2", "fault advertise=h:1,after=2: after= does not go with advertise, which holds all the "
         "time"),
        ("advertise=h:1,drop", "fault advertise=h:1,drop: advertise holds all the time; a rule of its own says drop"),
        ("advertise=h:0", "fault advertise=h:0: h:0 is no address; write HOST:PORT"),
        ("Heartbeat:advertise=h:1", "fault Heartbeat:advertise=h:1: Heartbeat names no broker; advertise is for "
         "coordinator, leader, FindCoordinator, Metadata, DescribeCluster"),
        ("Fetch:error=", "fault Fetch:error=: no error is named"),
        ("RequestHeader:cut", "fault RequestHeader:cut: RequestHeader is no API"),
        ("Fetch:delya=2s", "fault Fetch:delya=2s: no action delya; did you mean delay?"),
        ("Fetch:", "fault Fetch:: no action at all; there are error, delay, drop, cut, short, flip, throttle, "
         "unsupported, pause, half-open, versions, advertise, forget, move, expire, loading, down, after, times, "
         "chance"),
        ("Fetch:times=2", "fault Fetch:times=2: no action; there are error, delay, drop, cut, short, flip, throttle, "
         "unsupported, pause, half-open, versions, advertise, forget, move, expire, loading, down"),
        ("Fetch:error=UNKNOWN_MEMBERID", "fault Fetch:error=UNKNOWN_MEMBERID: no error UNKNOWN_MEMBERID; did you mean "
         "UNKNOWN_MEMBER_ID or UNKNOWN_PRODUCER_ID?"),
        ("Fetch:delay=soon", "fault Fetch:delay=soon: soon is no time; write 300ms, 2s or 1m"),
        ("Fetch:drop=never", "fault Fetch:drop=never: drop=never; there are drop and drop=after"),
        ("Fetch:short=x", "fault Fetch:short=x: short=x is no number"),
        ("Fetch:cut,times=x", "fault Fetch:cut,times=x: times=x is no number"),
        ("Fetch:cut,chance=x", "fault Fetch:cut,chance=x: chance=x; write 0 to 1, as chance=0.1"),
        ("Fetch,clinet=c:cut", "fault Fetch,clinet=c:cut: no selector clinet; did you mean client?"),
        ("Fetch,node=x:cut", "fault Fetch,node=x:cut: node=x is no number"),
        ("Fetch:versions=a", "fault Fetch:versions=a: versions=a; write 0-3, 2+, 5 or none"),
        ("advertise=nowhere", "fault advertise=nowhere: nowhere is no address; write HOST:PORT"),
        ("group=g:forget=1", "fault group=g:forget=1: forget takes no value"),
    ],
)  # fmt: skip
def test_what_means_nothing_is_explained(text: str, message: str) -> None:
    with pytest.raises(KwireError) as error:
        FaultRule.parse(text)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("text", "ns"), [("2s", 2 * 10**9), ("300ms", 3 * 10**8), ("1m", 6 * 10**10), ("0.5", 5 * 10**8)]
)
def test_durations(text: str, ns: int) -> None:
    assert duration(text) == ns


@pytest.mark.parametrize("text", ["", "host", "host:", "host:x", "host:0", "host:70000", ":9092"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="is no address; write HOST:PORT"):
        address(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Heartbeat:error=UNKNOWN_MEMBER_ID", True),
        ("coordinator:error=25,times=1", True),
        ("Heartbeat:error=REBALANCE_IN_PROGRESS", False),
        ("Heartbeat:error=UNKNOWN_MEMBER_ID,expire", False),
        ("Produce:error=25", False),
    ],
)
def test_a_rule_says_what_it_leaves_as_it_is(text: str, says: bool) -> None:
    assert ("Heartbeat:expire takes it out" in FaultRule.parse(text).note) is says
