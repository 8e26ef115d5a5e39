"""Producers that send much without compression, and what compression would have saved.

Sees the codec in the attributes of each batch of Produce requests and the bytes of records. A sample of what was sent
is compressed with zstd: producers of data that is compressed already are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from kwire.analyze.callers import Caller, callers, grouped, request_of
from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.findings import Finding, Reference
from kwire.analyze.produced import produced
from kwire.records.compression import compress
from kwire.schema.keys import PRODUCE

if TYPE_CHECKING:
    from kwire.analyze.case import Case
    from kwire.session.decoded import Decoded

MOST = 10_000
SAMPLE = 64 * 1024  # bytes of which the ratio is taken
SECOND = 1_000_000_000


@dataclass(slots=True)
class UncompressedSender:
    """Bytes of one client and topic, without compression and with it. first and last: ns."""

    caller: Caller
    topic: str
    plain: int = 0
    packed: int = 0
    batches: int = 0
    first: int = 0
    last: int = 0
    sample: list[bytes] = field(default_factory=list)
    sampled: int = 0
    proofs: list[Reference] = field(default_factory=list)


class Uncompressed(Watch):
    def __init__(self, case: Case, limits: Mapping[str, float]) -> None:
        super().__init__(case, limits)
        self.senders: dict[tuple[str, str, str], UncompressedSender] = {}

    def columns(self, decoded: Decoded, number: int) -> None:
        batch, made = decoded.batch, produced(decoded, number)
        if not len(made):
            return
        people, which = callers(batch)
        for key, places in grouped(which[made.row] * len(made.names) + made.topic):
            at, topic = divmod(key, len(made.names))
            caller, name = people[at], made.names[topic]
            sender = self.senders.get((*caller.client, name))
            if sender is None:
                if len(self.senders) >= MOST:
                    continue
                sender = self.senders[(*caller.client, name)] = UncompressedSender(caller, name)
            times, plain = batch.request.time[made.row[places]], made.codec[places] == 0
            sender.first = min(sender.first or int(times.min()), int(times.min()))
            sender.last = max(sender.last, int(times.max()))
            sender.plain += int(made.size[places][plain].sum())
            sender.packed += int(made.size[places][~plain].sum())
            sender.batches += int(plain.sum())
            if sender.sampled < SAMPLE:
                for place in places[plain].tolist():
                    data = made.bytes_of(place)[: SAMPLE - sender.sampled]
                    sender.sample.append(data)
                    sender.sampled += len(data)
                    if sender.sampled >= SAMPLE:
                        break
            if plain.any() and len(sender.proofs) < 3:
                rows = np.unique(made.row[places[plain]])
                sender.proofs += [request_of(batch, row) for row in rows[: 3 - len(sender.proofs)].tolist()]

    def findings(self) -> Iterator[Finding]:
        for sender in self.senders.values():
            rate = sender.plain * SECOND / max(sender.last - sender.first, SECOND)
            share = sender.plain / max(sender.plain + sender.packed, 1)
            if rate < self.limit("bytes_per_second") or share < self.limit("share"):
                continue
            ratio = sender.sampled / max(len(compress("zstd", b"".join(sender.sample))), 1)
            if ratio < self.limit("ratio"):
                continue
            what = f"{sender.caller.label} sends {rate / 1e6:.1f} MB/s to {sender.topic} without compression "
            what += f"({sender.plain / 1e6:.1f} MB in all); zstd makes a sample of it {ratio:.1f} times smaller"
            advice = (
                "compression.type=zstd (or lz4, which takes less CPU) on the producer: brokers store and send it as it "
            )
            advice += "comes."
            yield Finding(
                "warning",
                what,
                tuple(sender.proofs),
                advice,
                time=sender.first,
                last=sender.last,
                count=sender.batches,
                about=sender.caller.about | {"topic": sender.topic, "api": "Produce"},
                otherwise="the producer's CPU is what is short, and not network or disk",
            )


DETECTOR = Detector(
    "much that is sent without compression",
    watch=Uncompressed,
    fields="Produce: attributes of each batch, bytes of Records",
    source="compression.type=none is the default of producers (KIP-110 for zstd)",
    means="Network, disks, replicas and all consumers carry several times what is needed.",
    proof="Batches with codec 0; a sample of them, compressed.",
    advice="compression.type=zstd or lz4 on the producer.",
    thresholds={"bytes_per_second": 1e6, "share": 0.5, "ratio": 1.5},
    bodies=(PRODUCE,),
    needs=("clock",),
)
