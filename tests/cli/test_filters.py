"""Filters that match nothing say what there is, in every command that has them."""

from __future__ import annotations

from typing import Any

import click
import pytest

from kwire.cli.filters import AskedValues, there_are
from kwire.cli.quantities import DAY, Instant
from kwire.cli.wanted import Wanted
from kwire.errors import Exit
from kwire.session.select import fits

CLASSIC = "fixtures/captures/classic.pcap.gz"
CLIENTS = "4 there are: classic-admin, classic-c1, classic-c2, classic-producer"


@pytest.mark.parametrize("command", ["read", "stats", "clients", "groups"])
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--client-id", "nobody"), [f"no client id nobody; {CLIENTS}"]),
        (("--client-id", "classic-c1", "--client-id", "clasic-c2"),
         ["no client id clasic-c2; 4 there are: classic-c2, classic-c1, classic-producer, classic-admin"]),
        (("--client-id", "classic-*"), []),
        (("--topic", "order"), ["no topic order; 1 there is: classic-orders"]),
        (("--client", "10.9.8.7", "--broker", ":1"),
         ["no client 10.9.8.7; 1 there is: 127.0.0.1", "no broker :1; 1 there is: 127.0.0.1:9092"]),
        (("--id", "999"), ["no correlation id 999; 49 there are: 1, 2, 3, 4, 5, 6 and 43 more"]),
        (("--slower", "9s"), ["no answer took 9.00 s; the slowest came after 540 ms"]),
        (("--from", "99"), ["nothing began at 99.000000 or later; the last exchange began at 22.781230"]),
        (("--to", "01:59"),
         ["nothing began until 01:59:59.999999; the first exchange began at 02:16:11.331748"]),
        (("--error", "25"), []),
        (("--error", "*member*", "--error", "REBALANCE_IN_PROGRESS"), []),
        (("--error", "GROUP_ID_NOT_FOUND", "--client-id", "classic-c1"),
         ["no error GROUP_ID_NOT_FOUND; 5 there are: COORDINATOR_NOT_AVAILABLE, MEMBER_ID_REQUIRED, NOT_COORDINATOR, "
          "REBALANCE_IN_PROGRESS, UNKNOWN_MEMBER_ID"]),
        (("--api", "CreateTopics", "--errors"), ["none of 166 exchanges fits --api, --errors at once"]),
        (("--port", "1"), ["no Kafka on port 1; brokers elsewhere in it: 127.0.0.1:9092"]),
        (("--host", "10.0.0.1", "--port", "1"),
         ["no Kafka on port 1 of these hosts; brokers elsewhere in it: 127.0.0.1:9092"]),
    ],
)  # fmt: skip
def test_what_matches_nothing_is_said_and_what_there_is(
    command: str, options: tuple[str, ...], said: list[str], kwire: Any
) -> None:
    ran = kwire(command, CLASSIC, *options)
    lines = [line.removeprefix("kwire: ") for line in ran.err.splitlines()]
    assert [line for line in lines if " exchange" not in line[:14]] == said


@pytest.mark.parametrize("command", ["read", "stats", "trace"])
def test_an_end_before_the_start_is_said(command: str, kwire: Any) -> None:
    ran = kwire(command, CLASSIC, "--from", "02:16:21", "--to", "+5s")
    assert ran.status == Exit.USAGE
    assert ran.err == (
        "kwire: --to 02:16:16.331510 lies before --from 02:16:21.000000; "
        "it counts from the capture's start, not from --from\n"
    )  # fmt: skip
    ran = kwire(command, CLASSIC, "--from", "02:16:21", "--to", "02:16:20")
    assert ran.status == Exit.USAGE
    assert ran.err == "kwire: --to 02:16:20.000000 lies before --from 02:16:21.000000\n"


def test_an_end_after_midnight() -> None:
    noon, nothing = DAY // 2, Wanted((), (), (), (), (), (), False, (), None, None, None, (), (), (), False)
    wanted = nothing._replace(start=Instant("day", DAY - 1, 1), end=Instant("day", 600, 1))
    assert wanted.selection(lambda: noon, lambda: DAY).end == DAY + 600
    with pytest.raises(click.ClickException, match="lies before"):
        wanted.selection(lambda: noon, lambda: DAY - 1)


@pytest.mark.parametrize("command", ["groups", "trace"])
def test_groups_that_are_not_there(command: str, kwire: Any) -> None:
    ran = kwire(command, CLASSIC, "--group", "classic-biling")
    assert "no " in ran.err
    assert "group classic-biling; 1 there is: classic-billing" in ran.err


def test_trace_names_its_consumers(kwire: Any) -> None:
    ran = kwire("trace", CLASSIC, "--client-id", "classic-admin")
    assert ran.err == "kwire: no consumer with client id classic-admin; 2 there are: classic-c2, classic-c1\n"


def test_an_api_may_be_a_pattern(kwire: Any) -> None:
    lines = kwire("read", CLASSIC, "--api", "*group").text.splitlines()[1:]
    assert {word for line in lines for word in line.split() if word.endswith("Group")} == {
        "JoinGroup", "SyncGroup", "LeaveGroup"
    }  # fmt: skip
    ran = kwire("read", CLASSIC, "--api", "Nothing*")
    assert (ran.status, ran.err) == (Exit.USAGE, "kwire: no API Nothing*\n")


def test_names_may_hold_brackets() -> None:
    assert fits("topic[1]", "topic[1]")
    assert fits("topic[1]", "topic[?]")
    assert not fits("topic1", "topic[1]")
    assert fits("Fetch", "fetch", exact=False)


def test_what_comes_late_counts_too() -> None:
    asked = AskedValues("topic", ["b*", "c"], fits)
    asked.see(["a", "bb"])
    assert list(asked.complaints()) == ["no topic c; 2 there are: a, bb"]
    asked.see(["c"])
    assert not list(asked.complaints())
    assert there_are([], "x") == "there is none"
    assert there_are([f"t{number}" for number in range(9)], "t8") == "9 there are: t8, t0, t1, t2, t3, t4 and 3 more"


def test_an_error_that_is_none(kwire: Any) -> None:
    ran = kwire("read", CLASSIC, "--error", "UNKNOWN_MEMBER")
    assert ran.status == Exit.USAGE
    assert ran.err.startswith("kwire: no error UNKNOWN_MEMBER; did you mean UNKNOWN_MEMBER_ID, ")


def test_what_is_kept_of_values_is_bounded() -> None:
    asked = AskedValues("client id", ["nobody"], fits)
    for number in range(3000):
        asked.see([f"{number}-{'x' * 30_000}"])
    (line,) = asked.complaints()
    assert line.startswith("no client id nobody; over 1,000 there are: ")
    assert len(line) < 2000
