"""Records of share groups that are delivered again since their lock ran out, and acknowledgements that came too late.

Sees AcquiredRecords.DeliveryCount and AcquisitionLockTimeoutMs of ShareFetch answers, the acknowledgements in
ShareFetch and ShareAcknowledge requests, and INVALID_RECORD_STATE (121) in their answers (KIP-932; SharePartition).
What a consumer released by itself is delivered again on purpose, and is not counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.findings import Finding, Reference, lasted
from kwire.counted import counted
from kwire.schema import codes
from kwire.schema.keys import SHARE_ACKNOWLEDGE, SHARE_FETCH

if TYPE_CHECKING:
    from kwire.analyze.case import Case
    from kwire.session.exchange import Exchange

DEFAULT_LOCK = 30_000  # ms: group.share.record.lock.duration.ms
RELEASE = 2
MOST = 1000  # share partitions
MOST_LOCKS = 20_000  # offsets of a share partition
MS = 1_000_000
SLACK = 200 * MS  # by which an acquisition may be seen after it was made


@dataclass(slots=True)
class Locked:
    """One share partition. held: who acquired an offset when, ns; released: offsets given back by their consumers."""

    held: dict[int, tuple[int, str, Reference]] = field(default_factory=dict)
    released: set[int] = field(default_factory=set)
    again: dict[int, int] = field(default_factory=dict)  # delivery counts of those that came again
    lost: int = 0  # of these, whose lock had run out
    first: int = 0
    last: int = 0
    holders: dict[str, None] = field(default_factory=dict)
    proofs: list[Reference] = field(default_factory=list)


class Redelivery(Watch):
    """partitions: by group, topic and partition; lock: ms, by group."""

    def __init__(self, case: Case, limits: Mapping[str, float]) -> None:
        super().__init__(case, limits)
        self.partitions: dict[tuple[str, str, int], Locked] = {}
        self.lock: dict[str, int] = {}

    def exchange(self, exchange: Exchange) -> None:
        request, response = exchange.request, exchange.response
        asked = request.body() if request else None
        if asked is None:
            return
        group = asked["GroupId"] or ""
        self._acknowledged(exchange, group, asked)
        answer = response.body() if response else None
        if answer is None or response is None:
            return
        if answer.get("AcquisitionLockTimeoutMs"):
            self.lock[group] = answer["AcquisitionLockTimeoutMs"]
        for topic in answer.get("Responses") or ():
            name = exchange.connection.topics.name(topic["TopicId"])
            for part in topic["Partitions"]:
                if part.get("AcquiredRecords"):
                    known = self._of(group, name, part["PartitionIndex"])
                    if known is not None:
                        self._acquired(exchange, group, known, part["AcquiredRecords"], Reference.of(response))

    def _of(self, group: str, topic: str, partition: int) -> Locked | None:
        key = group, topic, partition
        if key not in self.partitions and len(self.partitions) >= MOST:
            return None
        return self.partitions.setdefault(key, Locked())

    def _acknowledged(self, exchange: Exchange, group: str, asked: dict[str, Any]) -> None:
        closing = asked.get("ShareSessionEpoch") == -1  # what it holds goes back
        client = exchange.client_id or ""
        if closing:
            for (of, _, _), one in self.partitions.items():
                if of == group:
                    one.released |= {offset for offset, (_, who, _) in one.held.items() if who == client}
        for topic in asked.get("Topics") or ():
            name = exchange.connection.topics.name(topic["TopicId"])
            for part in topic["Partitions"]:
                known = self._of(group, name, part["PartitionIndex"])
                for batch in part.get("AcknowledgementBatches") or () if known else ():
                    offsets = range(batch["FirstOffset"], min(batch["LastOffset"] + 1, batch["FirstOffset"] + 10_000))
                    types = batch["AcknowledgeTypes"]
                    for at, offset in enumerate(offsets):
                        kind = types[at] if len(types) > 1 and at < len(types) else types[0] if types else 0
                        if kind == RELEASE and known is not None and len(known.released) < MOST_LOCKS:
                            known.released.add(offset)

    def _acquired(self, exchange: Exchange, group: str, known: Locked, rows: Any, proof: Reference) -> None:
        lock = self.lock.get(group, DEFAULT_LOCK) * MS
        client = exchange.client_id or ""
        for row in rows:
            for offset in range(row["FirstOffset"], min(row["LastOffset"] + 1, row["FirstOffset"] + 10_000)):
                before = known.held.get(offset)
                if row["DeliveryCount"] >= self.limit("count") and offset not in known.released and before:
                    since, holder, taken = before
                    if proof.time - since >= lock - SLACK:
                        known.lost += 1
                        known.holders[holder] = None
                        known.again[offset] = row["DeliveryCount"]
                        known.first = known.first or since + lock
                        known.last = proof.time
                        if proof not in known.proofs and len(known.proofs) < 6:
                            known.proofs += [one for one in (taken, proof) if one not in known.proofs]
                known.released.discard(offset)
                if len(known.held) >= MOST_LOCKS:
                    known.held.pop(next(iter(known.held)))
                known.held[offset] = proof.time, client, proof

    def findings(self) -> Iterator[Finding]:
        late = {
            (str(one.fact.about.get("topic", "")), int(one.fact.about.get("partition", -1))): one
            for one in self.case.troubles.of(codes.INVALID_RECORD_STATE)
        }
        for (group, topic, partition), known in self.partitions.items():
            if not known.lost:
                continue
            refused = late.pop((topic, partition), None)
            lock = self.lock.get(group, DEFAULT_LOCK) * MS
            holders = " and ".join(one or "a client" for one in list(known.holders)[:3])
            what = f"{counted(known.lost, 'record')} of {topic}-{partition} came to group {group} again (delivery "
            what += f"count up to {max(known.again.values())}), as {holders} did not acknowledge them within the lock "
            what += f"of {lasted(lock)}"
            if refused is not None:
                what += f"; {counted(refused.count, 'acknowledgement')} after that refused: INVALID_RECORD_STATE"
            advice = (
                "Records are worked on twice. Raise share.record.lock.duration.ms of the group (30,000 by default), or "
            )
            advice += "fetch fewer records at once (max.poll.records)."
            proofs = [*known.proofs, *(refused.samples[:2] if refused else ())]
            about: dict[str, str | int] = {"group": group, "topic": topic, "partition": partition}
            if len(known.holders) == 1 and (client := next(iter(known.holders))):
                about["client_id"] = client
            yield Finding(
                "warning", what, tuple(dict.fromkeys(proofs)), advice, time=known.first, last=known.last,
                count=known.lost, about=about, otherwise="they were released by somebody whom the capture lacks",
            )  # fmt: skip
        for (topic, partition), trouble in late.items():
            fact = trouble.fact
            groups = [group for group, *place in self.partitions if place == [topic, partition]]
            what = f"{fact.client_id or fact.host} acknowledged records of {topic}-{partition} that it did not hold "
            what += f"any more: {counted(trouble.count, 'time')} {fact.error}"
            yield Finding(
                "warning", what, tuple(trouble.samples), "Its locks ran out, or were released: acknowledge sooner.",
                time=fact.time, last=trouble.last.time, count=trouble.count,
                about=trouble.about | {"api": fact.api} | ({"group": groups[0]} if len(groups) == 1 else {}),
                words=trouble.words, otherwise="it acknowledged the same records twice",
            )  # fmt: skip


DETECTOR = Detector(
    "share groups' records whose locks run out",
    watch=Redelivery,
    fields="ShareFetch: AcquiredRecords, AcquisitionLockTimeoutMs; AcknowledgementBatches; error 121",
    source="KIP-932; group.share.record.lock.duration.ms=30000, group.share.delivery.count.limit=5",
    means="The consumer held records for longer than it may: they went to somebody else, and its word came too late.",
    proof="The answer in which the records were acquired first, and the later one with a delivery count of 2 or more.",
    advice="Longer locks or smaller batches.",
    thresholds={"count": 2},
    exchanges=(SHARE_FETCH, SHARE_ACKNOWLEDGE),
)
