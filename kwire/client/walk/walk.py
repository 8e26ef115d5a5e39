"""A consumer's start, lived through step by step: a generator of steps, each told when it is over.

The steps are those of Kafka's own consumer: (1) bootstrap and metadata, (2) coordinator, (3) join, (4) sync, (5)
heartbeat, (6) committed offsets, (7) list offsets and fetch; then it leaves. A step that fails ends the walk, with the
reason, and says where a client would go on for ever. Nothing is committed and no topic created; a group with members is
only joined when the settings say so, as joining makes them rebalance.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

from kwire.client.address import Address
from kwire.client.bootstrap import Attempt, View, attempts, reach
from kwire.client.cluster import ClusterClient
from kwire.client.reachable import of_metadata
from kwire.client.topology import PASSING, GroupPlace
from kwire.client.walk.classic import ClassicWalk, Waits, quietly
from kwire.client.walk.epochs import EpochWalk
from kwire.client.walk.group_status import GroupStatus, group_status
from kwire.client.walk.settings import WalkSettings
from kwire.client.walk.step import ERROR, NOTE, OK, Detail, Step
from kwire.client.walk.step_recorder import HANGS, LEFT_OUT, UNRESOLVED, Ended, Teller
from kwire.errors import Failure, KwireError
from kwire.schema.errorcodes import errors

REACH = 3.0  # seconds for a TCP connection to an advertised address
PAUSE = 1.0  # seconds before all addresses are tried again
FAREWELL = 2.0  # seconds for leaving when the walk is broken off
Sleep = Callable[[float], None]


class Walk:
    """steps() lives and tells. failed: whether a step was an error. left: whether breaking off left the group. waits is
    told of an answer that the broker may hold back: what for, and for how many seconds at most."""

    def __init__(self, settings: WalkSettings, sleep: Sleep = time.sleep, waits: Waits = quietly) -> None:
        self.settings, self._sleep, self._waits = settings, sleep, waits
        self.cluster = ClusterClient(
            settings.security, settings.client_id, settings.timeout, library=settings.library, era=settings.era
        )
        self.place = GroupPlace(settings.addresses, settings.group, settings.topic, self.cluster)
        self.teller = Teller(self.cluster)
        self.left = False
        self._life: ClassicWalk | EpochWalk | None = None

    @property
    def failed(self) -> bool:
        return self.teller.failed

    def steps(self) -> Generator[Step]:
        """Whatever ends it, the group is left and the connections are closed."""
        try:
            yield from self._bootstrap()
            yield from self._coordinator()
            if self.settings.protocol == "classic":
                self._life = ClassicWalk(self.place, self.teller, self.settings, self._sleep, self._waits)
            else:
                self._life = EpochWalk(self.place, self.teller, self.settings, self._sleep)
            yield from self._life.steps()
        except Ended as end:
            yield end.step
        finally:
            self._part()
            self.cluster.close()

    def _part(self) -> None:
        life = self._life
        if life is not None and life.inside:
            self.cluster.timeout = FAREWELL
            with contextlib.suppress(KwireError, OSError):
                code = life.leave()
                if code in PASSING:
                    self.place.find()
                    code = life.leave()
                self.left = not code

    # ---------------------------------------------------------------- 1

    def _bootstrap(self) -> Iterator[Step]:
        for left in range(self.settings.retry, -1, -1):
            self.teller.begin()
            tried = list(attempts(self.cluster, self.settings.addresses))
            if tried[-1].failure is None:
                break
            nobody = self._nobody(tried, left)
            if not left:
                raise Ended(nobody)
            yield nobody
            self._sleep(PAUSE)
        address = tried[-1].address
        try:
            view = self.place.refresh(address)
        except KwireError as error:
            raise Ended(self.teller.fail(1, error, bootstrap=str(address), tried=_tried(tried))) from error
        reached = reach(view.brokers.values(), min(REACH, self.settings.timeout))
        told = of_metadata(view, self.settings.topic, address, reached)
        details = [_unanswered(attempt, NOTE) for attempt in tried if attempt.failure]
        facts = {"bootstrap": str(address), "tried": _tried(tried)} | _seen(view, reached)
        step = self.teller.tell(
            1, told.verdict, told.text, [*details, *told.details], error=view.error, advice=told.advice, **facts
        )
        if told.ends:
            raise Ended(step)
        yield step

    def _nobody(self, tried: list[Attempt], left: int) -> Step:
        last = tried[-1].failure
        assert last is not None
        if len(tried) == 1 and not left:
            return self.teller.fail(1, last, tried=_tried(tried))
        text = f"none of {len(tried)} addresses answers" if len(tried) > 1 else str(last)
        details = [_unanswered(attempt, ERROR) for attempt in tried] if len(tried) > 1 else []
        if left:
            again = f"Once more in {PAUSE:g} s, {left} time{'' if left == 1 else 's'} at most."
            return self.teller.tell(1, NOTE, text, details, advice=again, tried=_tried(tried))
        advice = UNRESOLVED if all(map(_is_unresolved, tried)) else HANGS[1]
        return self.teller.tell(1, ERROR, text, details, advice=advice, tried=_tried(tried))

    # ---------------------------------------------------------------- 2

    def _coordinator(self) -> Iterator[Step]:
        self.teller.begin()
        try:
            found = self.place.find_coordinator()
        except KwireError as error:
            raise Ended(self.teller.fail(2, error)) from error
        here = found.address == self.place.entry
        text = f"broker {found.node} at {found.address}" + (", the connection that is there" if here else "")
        facts: dict[str, Any] = {"node": found.node, "address": str(found.address)}
        try:
            self.cluster.connect(found.address)
            group = group_status(self.place)
        except KwireError as error:
            raise Ended(self.teller.fail(2, error, [Detail(f"the coordinator is {text}")], **facts)) from error
        details = [Detail(f"not at once: {errors.label(code)}", NOTE) for code in self.place.passed[:1]]
        details.append(group.detail)
        step = self.teller.tell(2, self._stance(group), text, details, advice=self._advice(group), **facts,
                                state=group.state, members=group.members, kind=group.kind)  # fmt: skip
        if group.members and not self.settings.busy:
            raise Ended(step)
        yield step

    def _stance(self, group: GroupStatus) -> str:
        return OK if not group.members else NOTE if self.settings.busy else ERROR

    def _advice(self, group: GroupStatus) -> str | None:
        if not group.members or self.settings.busy:
            return None
        return "Joining makes its members rebalance and takes partitions from them: --yes joins all the same."


def _is_unresolved(attempt: Attempt) -> bool:
    return isinstance(attempt.failure, Failure) and attempt.failure.kind == "name"


def _unanswered(attempt: Attempt, verdict: str) -> Detail:
    more = f"; {LEFT_OUT}" if _is_unresolved(attempt) else ""
    return Detail(f"{attempt.failure}{more}", verdict)


def _tried(tried: Sequence[Attempt]) -> list[dict[str, Any]]:
    return [
        {"address": str(one.address), "took_ns": one.took, "failure": str(one.failure) if one.failure else None}
        for one in tried
    ]


def _seen(view: View, reached: dict[Address, Attempt]) -> dict[str, Any]:
    brokers = []
    for node, address in view.brokers.items():
        failure = reached[address].failure if address in reached else None
        brokers.append({"node": node, "address": str(address), "failure": str(failure) if failure else None})
    partitions = [
        {"partition": row.index, "leader": row.leader, "replicas": list(row.replicas), "in_sync": list(row.in_sync),
         "error_code": row.error}
        for row in view.partitions
    ]  # fmt: skip
    facts = {"cluster_id": view.cluster_id, "controller": view.controller, "brokers": brokers}
    return facts | {"partitions": partitions}
