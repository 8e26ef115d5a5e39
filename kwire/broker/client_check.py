"""How a client copes: it runs against a broker of its own for each trouble, and what it asks afterwards is held against
what the Java client does: retry, look for the leader or coordinator anew, rejoin, wait.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Callable, Sequence
from typing import NamedTuple

from kwire.broker.answers import error_body
from kwire.broker.context import Body, Request, Seen
from kwire.broker.handle import Broker
from kwire.schema.errorcodes import errors

TOPIC = "kwire-check"
HANDLED, NOT_HANDLED, NOT_SEEN, FAILED = "handled", "not handled", "not asked", "failed"
THROTTLE = 1_500  # ms
ENOUGH = 0.9  # of a throttle time, that counts as having waited
GRACE = 5.0  # seconds for a client to end that is told to


class Scenario(NamedTuple):
    """rule: the fault, met once or a few times, of Fetch an error in its partitions, met once; then: the APIs that must
    be asked after it, in that order, by the same client; waits: whether the client has to be silent for the throttle
    time."""

    name: str
    rule: str
    then: tuple[str, ...]
    does: str
    waits: bool = False


TROUBLES = (
    Scenario("Metadata: LEADER_NOT_AVAILABLE", "Metadata:error=LEADER_NOT_AVAILABLE,times=2", ("Metadata",),
             "asks again"),
    Scenario("Produce: NOT_LEADER_OR_FOLLOWER", "Produce:error=NOT_LEADER_OR_FOLLOWER,times=1", ("Metadata", "Produce"),
             "asks for the leader, sends again"),
    Scenario("Produce: NOT_ENOUGH_REPLICAS", "Produce:error=NOT_ENOUGH_REPLICAS,times=1", ("Produce",), "sends again"),
    Scenario("Produce: the connection is closed", "Produce:cut,times=1", ("Produce",), "connects and sends again"),
    Scenario("Produce: throttled", f"Produce:throttle={THROTTLE}ms,times=1", (), "waits as long as it is told", True),
    Scenario("InitProducerId: COORDINATOR_LOAD_IN_PROGRESS",
             "InitProducerId:error=COORDINATOR_LOAD_IN_PROGRESS,times=1", ("InitProducerId",), "asks again"),
    Scenario("FindCoordinator: COORDINATOR_NOT_AVAILABLE", "FindCoordinator:error=COORDINATOR_NOT_AVAILABLE,times=2",
             ("FindCoordinator",), "asks again"),
    Scenario("JoinGroup: COORDINATOR_LOAD_IN_PROGRESS", "JoinGroup:error=COORDINATOR_LOAD_IN_PROGRESS,times=1",
             ("JoinGroup",), "joins again"),
    Scenario("JoinGroup: NOT_COORDINATOR", "JoinGroup:error=NOT_COORDINATOR,times=1", ("FindCoordinator", "JoinGroup"),
             "looks for the coordinator, joins again"),
    Scenario("SyncGroup: REBALANCE_IN_PROGRESS", "SyncGroup:error=REBALANCE_IN_PROGRESS,times=1",
             ("JoinGroup", "SyncGroup"), "joins again"),
    Scenario("Heartbeat: REBALANCE_IN_PROGRESS", "Heartbeat:error=REBALANCE_IN_PROGRESS,times=1",
             ("JoinGroup", "SyncGroup"), "joins again"),
    Scenario("Heartbeat: UNKNOWN_MEMBER_ID", "Heartbeat:expire,times=1", ("JoinGroup", "SyncGroup"),
             "joins as a new member"),
    Scenario("Heartbeat: NOT_COORDINATOR", "Heartbeat:error=NOT_COORDINATOR,times=1", ("FindCoordinator", "Heartbeat"),
             "looks for the coordinator, goes on"),
    Scenario("OffsetCommit: COORDINATOR_LOAD_IN_PROGRESS", "OffsetCommit:error=COORDINATOR_LOAD_IN_PROGRESS,times=1",
             ("OffsetCommit",), "commits again"),
    Scenario("Fetch: NOT_LEADER_OR_FOLLOWER", "Fetch:error=NOT_LEADER_OR_FOLLOWER", ("Metadata", "Fetch"),
             "asks for the leader, fetches again"),
    Scenario("Fetch: OFFSET_OUT_OF_RANGE", "Fetch:error=OFFSET_OUT_OF_RANGE", ("ListOffsets", "Fetch"),
             "asks where to begin, fetches again"),
    Scenario("Fetch: the connection is closed", "Fetch:cut,times=1", ("Fetch",), "connects and fetches again"),
    Scenario("ApiVersions: UNSUPPORTED_VERSION", "ApiVersions:unsupported,times=1", ("ApiVersions",),
             "asks in an older version"),
)  # fmt: skip


class CheckOutcome(NamedTuple):
    """verdict: HANDLED, NOT_HANDLED, NOT_SEEN (the client never asked what the trouble is about) or FAILED (it ended
    with another status than without trouble); told: what it did."""

    trouble: Scenario
    verdict: str
    told: str


class Ran(NamedTuple):
    """What a run of the client left: its status (None: it was ended, having taken too long), the last line that it
    wrote, what it asked, and when the trouble came, ns; None when it did not."""

    status: int | None
    words: str
    requests: Sequence[Seen]
    met: int | None


Run = Callable[[str, float], Ran]


def run(command: str, rule: str | None, timeout: float) -> Ran:
    """Runs the client against a broker of its own. In the command {broker} and {topic} stand for what it must use,
    which KWIRE_BROKER and KWIRE_TOPIC are too. Raises OSError for a command that does not start."""
    partitions = Partitions.of(rule)
    faults = [rule] if rule and partitions is None else []
    with Broker(topics={TOPIC: 1}, faults=faults, config={"group.initial.rebalance.delay.ms": 0}) as broker:
        if partitions is not None:
            broker.control("Fetch", partitions)
        words = [word.replace("{broker}", broker.address).replace("{topic}", TOPIC) for word in shlex.split(command)]
        environment = {**os.environ, "KWIRE_BROKER": broker.address, "KWIRE_TOPIC": TOPIC}
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment,
            start_new_session=True,
        )  # fmt: skip
        status, output = _ended(process, timeout)
        met = [event.time for event in broker.events("fault")] if partitions is None else partitions.met
        last = next((line for line in reversed(output.decode(errors="replace").splitlines()) if line.strip()), "")
        return Ran(status, last.strip()[:200], broker.requests(), met[0] if met else None)


class Partitions:
    """A hook: an error in the partitions of the first Fetch that names some, as a broker has it; a rule's error stands
    before them too, where only those of sessions do. met: when, ns."""

    def __init__(self, error: str) -> None:
        self._code = errors[error].code
        self.met: list[int] = []

    @classmethod
    def of(cls, rule: str | None) -> Partitions | None:
        """Of such a rule; None of others."""
        api, _, error = (rule or "").partition(":error=")
        return cls(error) if api == "Fetch" else None

    def __call__(self, request: Request) -> Body | None:
        if self.met or not request.body["Topics"]:
            return None
        self.met.append(request.time)
        return {**error_body(request, self._code), "ErrorCode": 0}


def _ended(process: subprocess.Popen[bytes], timeout: float) -> tuple[int | None, bytes]:
    """Its status and what it wrote; ends it, and what it started, when it takes too long."""
    try:
        output, _ = process.communicate(timeout=timeout)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        for number, patience in ((signal.SIGTERM, GRACE), (signal.SIGKILL, None)):
            try:
                os.killpg(process.pid, number)
                output, _ = process.communicate(timeout=patience)
                break
            except subprocess.TimeoutExpired:
                continue
        return None, output
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise


def judge(trouble: Scenario, plain: Ran, ran: Ran) -> CheckOutcome:
    """What the client made of a trouble, by what it asked and by how it ended without one."""
    if ran.met is None:
        return CheckOutcome(trouble, NOT_SEEN, f"never asks {trouble.name.partition(':')[0]}")
    met = ran.met
    before = [seen for seen in ran.requests if seen.time <= met]
    whom = next((seen for seen in reversed(before) if seen.api == trouble.name.partition(":")[0]), None)
    after = [seen for seen in ran.requests if seen.time > met and (whom is None or seen.client_id == whom.client_id)]
    if ran.status != plain.status:
        how = "does not end in time" if ran.status is None else f"ends with status {ran.status}"
        return CheckOutcome(trouble, FAILED, f"{how}: {ran.words}" if ran.words else how)
    if trouble.waits:
        return _waited(trouble, met, [seen for seen in after if whom is None or seen.client == whom.client])
    left = list(trouble.then)
    for seen in after:
        if left and seen.api == left[0]:
            left.pop(0)
    if left:
        return CheckOutcome(trouble, NOT_HANDLED, f"no {left[0]} afterwards")
    return CheckOutcome(trouble, HANDLED, trouble.does)


def _waited(trouble: Scenario, met: int, after: list[Seen]) -> CheckOutcome:
    if not after:
        return CheckOutcome(trouble, HANDLED, "asks no more")
    waited = (after[0].time - met) / 1e6
    if waited >= ENOUGH * THROTTLE:
        return CheckOutcome(trouble, HANDLED, trouble.does)
    return CheckOutcome(trouble, NOT_HANDLED, f"asks {after[0].api} after {waited:,.0f} of {THROTTLE:,} ms")
