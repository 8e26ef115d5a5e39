"""Commits of offsets that the coordinator refuses.

Sees ILLEGAL_GENERATION (22), UNKNOWN_MEMBER_ID (25), REBALANCE_IN_PROGRESS (27), FENCED_INSTANCE_ID (82),
FENCED_MEMBER_EPOCH (110), STALE_MEMBER_EPOCH (113), OFFSET_METADATA_TOO_LARGE (12) and INVALID_COMMIT_OFFSET_SIZE (28)
in answers to OffsetCommit and TxnOffsetCommit, whose group is the request's (ClassicGroup.validateOffsetCommit,
ConsumerGroup.validateOffsetCommit, OffsetMetadataManager). What was read since the last good commit is read again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from kwire.analyze.callers import host_of
from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.facts import Trouble
from kwire.analyze.findings import Finding, Reference, lasted
from kwire.counted import counted
from kwire.schema import codes
from kwire.schema.keys import OFFSET_COMMIT, TXN_OFFSET_COMMIT

if TYPE_CHECKING:
    from kwire.analyze.case import Case
    from kwire.session.decoded import Decoded

COMMITS = (OFFSET_COMMIT, TXN_OFFSET_COMMIT)
MOST = 10_000
ADVICE = {
    codes.ILLEGAL_GENERATION: (
        "The commit names another generation than the group's, as a rule one that a rebalance has ended (kwire "
        "groups compares the two): commit in the callback of revocation, and see evicted and poll-timeout."
    ),
    codes.UNKNOWN_MEMBER_ID: (
        "The group does not know the member any more: it was evicted, or left. See evicted and poll-timeout."
    ),
    codes.REBALANCE_IN_PROGRESS: (
        "The group rebalances: commit again when the member has rejoined, or in the callback of revocation."
    ),
    codes.FENCED_INSTANCE_ID: "Another process has taken the group.instance.id: see static-clash.",
    codes.FENCED_MEMBER_EPOCH: (
        "The member's epoch is not the group's any more: it was fenced, and joins again by itself."
    ),
    codes.STALE_MEMBER_EPOCH: (
        "The member's epoch is behind: it learns of the new one with its next heartbeat, and commits again then."
    ),
    codes.OFFSET_METADATA_TOO_LARGE: "The commit's metadata is longer than offset.metadata.max.bytes.",
    codes.INVALID_COMMIT_OFFSET_SIZE: "One commit is larger than the coordinator takes: fewer partitions at once.",
}
SOON = (codes.REBALANCE_IN_PROGRESS, codes.STALE_MEMBER_EPOCH)  # what clients survive at once


class RefusedCommits(Watch):
    """groups: by client, host and when the refusal came."""

    def __init__(self, case: Case, limits: Mapping[str, float]) -> None:
        super().__init__(case, limits)
        self.groups: dict[tuple[str, str, int], str] = {}

    def columns(self, decoded: Decoded, number: int) -> None:
        batch = decoded.batch
        for row in ((batch.kind == number) & (batch.errors > 0)).nonzero()[0].tolist():
            exchange = batch[row]
            if exchange.response is not None and exchange.about.groups and len(self.groups) < MOST:
                who = exchange.client_id or "", host_of(exchange.connection), exchange.response.time
                self.groups[who] = exchange.about.groups[0]

    def findings(self) -> Iterator[Finding]:
        refusals: dict[tuple[str, str, str, int], list[Trouble]] = {}
        for trouble in self.case.troubles.of(*ADVICE):
            fact = trouble.fact
            if fact.key in COMMITS:
                group = self.groups.get((fact.client_id, fact.host, fact.time), "")
                who = group, fact.client_id, fact.host, fact.code
                refusals.setdefault(who, []).append(trouble)
        for (group, _, _, code), troubles in refusals.items():
            yield self._finding(group, code, troubles)

    def _finding(self, group: str, code: int, troubles: list[Trouble]) -> Finding:
        fact = min((one.fact for one in troubles), key=lambda one: one.time)
        last = max(one.last.time for one in troubles)
        count = max(one.count for one in troubles)  # the partitions of one commit are refused together
        over = [one.over for one in troubles if one.over is not None]
        recovered = len(over) == len(troubles)
        who = fact.client_id or f"a client at {fact.host}"
        what = f"{counted(count, 'commit')} of {who} in group {group or '?'} refused: {fact.error}"
        what += f", in {lasted(last - fact.time)}" if count > 1 else ""
        what += f"; a commit was taken at {self.case.clock(min(over))}" if recovered else ""
        about = {"client_id": fact.client_id, "address": fact.host, "group": group, "api": fact.api}
        proofs: dict[Reference, None] = dict.fromkeys(proof for one in troubles for proof in one.samples)
        severity = "note" if recovered and code in SOON and count < self.limit("least") else "warning"
        return Finding(
            severity, what, tuple(proofs)[:8], ADVICE[code], time=fact.time, last=last,
            about={name: value for name, value in about.items() if value}, count=count, words=troubles[0].words,
            otherwise="nothing was processed since the last commit that was taken",
        )  # fmt: skip


DETECTOR = Detector(
    "commits of offsets that were refused",
    watch=RefusedCommits,
    fields="ErrorCode of OffsetCommit's and TxnOffsetCommit's partitions: 12, 22, 25, 27, 28, 82, 110, 113",
    source="KIP-98, KIP-345, KIP-848; ClassicGroup.validateOffsetCommit, ConsumerGroup.validateOffsetCommit",
    means="The coordinator did not take a commit, since the member is not, or no longer, a member as it says it is.",
    proof="The answer to the commit, with the error in the element of each partition.",
    advice="What was processed since the last commit is processed again: find out why the member lost its place.",
    thresholds={"least": 3},
    bodies=COMMITS,
)
