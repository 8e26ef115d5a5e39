"""Groups and transactional ids whose coordinator moves, is missing or does not get ready.

Sees COORDINATOR_LOAD_IN_PROGRESS (14), COORDINATOR_NOT_AVAILABLE (15) and NOT_COORDINATOR (16), and the nodes that
FindCoordinator names. At the start of a cluster and of its first group these errors are usual and short.
"""

from __future__ import annotations

from collections.abc import Iterator

from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.facts import Trouble
from kwire.analyze.findings import Finding, lasted
from kwire.counted import counted
from kwire.schema import codes

LOADING, MISSING, ELSEWHERE = codes.COORDINATOR_LOAD_IN_PROGRESS, codes.COORDINATOR_NOT_AVAILABLE, codes.NOT_COORDINATOR
SECOND = 1_000_000_000
WHY = {
    LOADING: "the coordinator was still loading", MISSING: "there was no coordinator",
    ELSEWHERE: "the broker that was asked did not coordinate it",
}  # fmt: skip


class Coordinators(Watch):
    def findings(self) -> Iterator[Finding]:
        yield from self._moves()
        together: dict[tuple[str, str], list[Trouble]] = {}
        for trouble in self.case.troubles.of(*WHY):
            about = trouble.fact.about
            for name in ("group", "transactional_id"):
                if name in about:
                    together.setdefault((name, str(about[name])), []).append(trouble)
        for (kind, name), troubles in together.items():
            first = min(one.begun for one in troubles)
            last = max(one.last.time for one in troubles)
            longest = max((one.lasted for one in troubles), default=0)
            if longest >= self.limit("seconds") * SECOND:
                yield self._trouble(kind, name, troubles, first, last, longest)

    def _trouble(
        self, kind: str, name: str, troubles: list[Trouble], first: int, last: int, longest: int
    ) -> Finding:  # fmt: skip
        worst = max(troubles, key=lambda one: one.lasted)
        over = all(one.over is not None for one in troubles)
        count = sum(one.count for one in troubles)
        clients = {(one.fact.client_id, one.fact.host) for one in troubles}
        what = f"{kind.replace('_', ' ')} {name}: {worst.fact.error} for {lasted(longest)}: {WHY[worst.fact.code]} "
        what += f"({counted(count, 'answer')} to {counted(len(clients), 'client')})"
        what += f"; over at {self.case.clock(max(one.over or 0 for one in troubles))}" if over else ""
        topic = "__consumer_offsets" if kind == "group" else "__transaction_state"
        advice = f"See that {topic} has leaders and replicas enough, and that its brokers are up."
        return Finding(
            "warning" if over else "error", what, tuple(ref for one in troubles for ref in one.samples)[:8], advice,
            time=first, last=last, about={kind: name}, count=count, words=worst.words,
            otherwise="a request to the coordinator went well in between", brokers=self._before(kind, name, first),
        )  # fmt: skip

    def _before(self, kind: str, name: str, time: int) -> frozenset[str]:
        """Whom answers had named as the coordinator last before a time, ns."""
        cluster, found = self.case.cluster, frozenset[str]()
        for (ident, of, key), states in cluster.coordinators.items():
            if (of.replace(" ", "_"), key) == (kind, name):
                found |= next(
                    (cluster.names_of_node(ident, one.node) for one in reversed(states) if one.time < time), found
                )
        return found

    def _moves(self) -> Iterator[Finding]:
        cluster = self.case.cluster
        for (ident, kind, name), states in cluster.coordinators.items():
            if len(states) < 2:
                continue
            nodes = " → ".join(str(state.node) for state in states[:6]) + (" → …" if len(states) > 6 else "")
            span = max(states[-1].time - states[1].time, 1)
            often = len(states) - 1 >= self.limit("moves") and span <= 60 * SECOND * (len(states) - 1)
            what = f"the coordinator of {kind} {name} moved {counted(len(states) - 1, 'time')}: node {nodes}"
            field = {"group": "group", "transactional id": "transactional_id"}.get(kind, "group")
            evidence = tuple(state.proof for state in states[:8])
            yield Finding(
                "warning" if often else "note", what, evidence, "Brokers restart, or their internal topics move."
                if often else "", time=states[1].time, last=states[-1].time, about={field: name}, count=len(states) - 1,
                otherwise="brokers answered that had not learned of the change yet",
                brokers=frozenset().union(*(cluster.names_of_node(ident, one.node) for one in states[:-1])),
            )  # fmt: skip


DETECTOR = Detector(
    "coordinators that move, are missing or do not load",
    watch=Coordinators,
    fields="error codes 14, 15 and 16; NodeId of FindCoordinator answers",
    source="org.apache.kafka.coordinator.group.GroupCoordinator; offsets.topic.*, transaction.state.log.*",
    means="A group or transactional id has no coordinator that answers for it, or gets another one again and again.",
    proof="Answers with these errors to one client without a success between; answers that name different nodes.",
    advice="Look at the brokers that lead __consumer_offsets or __transaction_state.",
    thresholds={"seconds": 5, "moves": 4},
    event=4,
)
