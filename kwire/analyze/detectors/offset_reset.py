"""Consumers that begin elsewhere than where their group left off: the offset is gone, or none was committed.

Sees OFFSET_OUT_OF_RANGE (1) of Fetch with the FetchOffset that was asked for, CommittedOffset -1 of OffsetFetch, and
what ListOffsets then answered for timestamp -2 (earliest) or -1 (latest), which is what auto.offset.reset chose. A
group that begins for the first time has no commits either: that alone is a note."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kwire.analyze.callers import host_of, topic_name
from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.findings import Finding, Reference
from kwire.analyze.listed_offsets import EARLIEST, LATEST, ListedOffsets
from kwire.counted import counted
from kwire.schema import codes
from kwire.schema.keys import FETCH, LIST_OFFSETS, OFFSET_FETCH

if TYPE_CHECKING:
    from kwire.analyze.case import Case
    from kwire.session.decoded import Decoded
    from kwire.session.exchange import Exchange, Message

NOT_COMMITTED = -1  # the offset of a partition without one
MOST = 10_000
BOTH = 0  # where LATEST and EARLIEST were asked for


@dataclass(slots=True)
class Reset:
    """Of one client, topic and partition. asked: the offset out of range, None where none was committed; found: what
    ListOffsets said, by timestamp."""

    client_id: str
    host: str
    topic: str
    partition: int
    proof: Reference
    asked: int | None = None
    count: int = 1
    last: int = 0


class Resets(Watch):
    """resets: by client, host, topic, partition and whether an offset was asked for; groups: of each client."""

    def __init__(self, case: Case, limits: Mapping[str, float]) -> None:
        super().__init__(case, limits)
        self.resets: dict[tuple[str, str, str, int, bool], Reset] = {}
        self.groups: dict[tuple[str, str], str] = {}
        self.listed = ListedOffsets()

    def columns(self, decoded: Decoded, number: int) -> None:
        batch = decoded.batch
        for row in ((batch.kind == number) & (batch.errors > 0)).nonzero()[0].tolist():
            exchange = batch[row]
            if exchange.request is not None and exchange.response is not None:
                self._out_of_range(exchange, exchange.request, exchange.response)

    def _out_of_range(self, exchange: Exchange, request: Message, response: Message) -> None:
        if codes.OFFSET_OUT_OF_RANGE not in response.errors:
            return
        asked, answer = request.body() or {}, response.body() or {}
        if asked.get("ReplicaId", -1) >= 0:
            return
        offsets = {
            (topic_name(exchange, topic), part["Partition"]): part["FetchOffset"]
            for topic in asked.get("Topics") or () for part in topic["Partitions"]
        }  # fmt: skip
        for topic in answer.get("Responses") or ():
            for part in topic["Partitions"]:
                if part["ErrorCode"] == codes.OFFSET_OUT_OF_RANGE:
                    place = topic_name(exchange, topic), part["PartitionIndex"]
                    self._take(exchange, response, *place, offsets.get(place, NOT_COMMITTED))

    def exchange(self, exchange: Exchange) -> None:
        request, response = exchange.request, exchange.response
        if request is None or response is None or request.api is None:
            return
        who = request.client_id or "", host_of(exchange.connection)
        if request.api.key == LIST_OFFSETS:
            self.listed.take(exchange, who, request, response)
            return
        asked, answer = request.body() or {}, response.body() or {}
        groups = asked.get("Groups") or [asked]
        if len(groups) != 1 or "GroupId" not in groups[0]:
            return  # who asks for several groups at once is no member of them
        group = groups[0]["GroupId"]
        if len(self.groups) < MOST:
            self.groups[who] = group
        for topic in (answer.get("Groups") or [answer])[0].get("Topics") or ():
            for part in topic["Partitions"]:
                if part["CommittedOffset"] == NOT_COMMITTED and not part["ErrorCode"]:
                    self._take(exchange, response, topic_name(exchange, topic), part["PartitionIndex"], None)

    def _take(self, exchange: Exchange, response: Message, topic: str, partition: int, asked: int | None) -> None:
        client, host = exchange.client_id or "", host_of(exchange.connection)
        key = client, host, topic, partition, asked is not None
        known = self.resets.get(key)
        if known is not None:
            known.count += 1
            known.last = response.time
        elif len(self.resets) < MOST:
            self.resets[key] = Reset(client, host, topic, partition, Reference.of(response), asked, last=response.time)

    def _found(self, reset: Reset) -> dict[int, tuple[int, Reference]]:
        return self.listed.after(reset.client_id, reset.host, reset.topic, reset.partition, reset.proof.time)

    def findings(self) -> Iterator[Finding]:
        yield from (self._gone(reset) for reset in self.resets.values() if reset.asked is not None)
        fresh: dict[tuple[str, str, int], list[Reset]] = {}
        for reset in self.resets.values():
            found = self._found(reset) if reset.asked is None else {}
            if found:  # who asks for start and end, as sarama does, may begin at either
                timestamp = BOTH if len(found) > 1 else next(iter(found))
                fresh.setdefault((reset.client_id, reset.host, timestamp), []).append(reset)
        yield from (self._none(timestamp, resets) for (_, _, timestamp), resets in fresh.items())

    def _about(self, reset: Reset) -> dict[str, str | int]:
        about: dict[str, str | int] = {"client_id": reset.client_id, "address": reset.host, "topic": reset.topic}
        if group := self.groups.get((reset.client_id, reset.host)):
            about["group"] = group
        return {name: value for name, value in about.items() if value}

    def _gone(self, reset: Reset) -> Finding:
        who = reset.client_id or f"a client at {reset.host}"
        place = f"{reset.topic}-{reset.partition}"
        at = f"offset {reset.asked:,}" if reset.asked is not None and reset.asked >= 0 else "an offset"
        what = f"{who} asked for {at} of {place}, which the log does not hold"
        proofs = [reset.proof]
        for timestamp, (offset, proof) in sorted(self._found(reset).items()):
            proofs.append(proof)
            what += f"; the log's {'end' if timestamp == LATEST else 'start'} is {offset:,}"
            skipped = offset - (reset.asked or 0)
            if reset.asked is not None and 0 <= reset.asked < offset and timestamp == EARLIEST:
                what += f": {counted(skipped, 'record')} are gone unread"
        advice = (
            "Retention (retention.ms, retention.bytes) or DeleteRecords took what was not read, or the topic was made "
        )
        advice += "again: keep up, or keep records longer; auto.offset.reset=none tells the program."
        return Finding(
            "warning", what, tuple(proofs), advice, time=reset.proof.time, last=reset.last, count=reset.count,
            about=self._about(reset) | {"partition": reset.partition, "api": "Fetch"},
            otherwise="the program sought to that offset by itself",
        )  # fmt: skip

    def _none(self, timestamp: int, resets: list[Reset]) -> Finding:
        first = min(resets, key=lambda reset: reset.proof.time)
        who, group = first.client_id or f"a client at {first.host}", self.groups.get((first.client_id, first.host), "?")
        end, many = timestamp == LATEST, counted(len(resets), "partition")
        found, place = self._found(first), f"{first.topic}-{first.partition}"
        what = f"group {group} has no offset for {many} of {who}: "
        if timestamp == BOTH:
            (start, proof), (last, _) = found[EARLIEST], found[LATEST]
            what += f"it asks for the log's start and end ({place}: {start:,} and {last:,})"
        else:
            offset, proof = found[timestamp]
            what += f"it begins at the log's {'end' if end else 'start'} ({place} at {offset:,})"
        advice = "A new group does so. Of one that has run before, commits are gone: offsets.retention.minutes (7 days "
        advice += "without members), a deleted group, or a mistyped group.id"
        advice += "; what was written before it began is not read (auto.offset.reset=latest)." if end else "."
        about = self._about(first) | ({"partition": first.partition} if len(resets) == 1 else {})
        return Finding(
            "note", what, (first.proof, proof), advice, time=first.proof.time,
            last=max(reset.last for reset in resets), count=len(resets), about=about | {"api": "OffsetFetch"},
            otherwise="the group is new",
        )  # fmt: skip


DETECTOR = Detector(
    "consumers without committed offsets, or out of range",
    watch=Resets,
    fields="Fetch: ErrorCode 1, FetchOffset; OffsetFetch: CommittedOffset -1; ListOffsets: Timestamp -1 and -2, Offset",
    source="auto.offset.reset, offsets.retention.minutes=10080 (KIP-186), retention.ms",
    means="The consumer reads from another place than the group had come to: records are skipped, or read again.",
    proof="The answer that says so, and the ListOffsets after it that tells where it begins.",
    advice="Keep records and commits longer than consumers may be away.",
    exchanges=(LIST_OFFSETS, OFFSET_FETCH),
    bodies=(FETCH,),
)
