"""What a consumer reads of the partitions it was given: committed offsets, the log's ends, records."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from kwire.client import bodies
from kwire.client.address import Address
from kwire.client.bodies import EARLIEST, LATEST, FetchAnswer, Partition
from kwire.client.failure import Refusal
from kwire.client.topology import GroupPlace
from kwire.errors import KwireError
from kwire.records import Record

PARTITION_BYTES = 1 << 20


class Polled(NamedTuple):
    topic: str
    partition: int
    record: Record


class PartitionReader:
    """partitions: what was assigned. positions: by partition the next offset, after seek(). member and epoch: those
    of a KIP-848 consumer. Methods raise Failure, Refusal; DecodeError for records that are none."""

    def __init__(self, place: GroupPlace, earliest: bool) -> None:
        self.place, self.earliest = place, earliest
        self.member: str | None = None
        self.epoch = -1
        self.partitions: list[Partition] = []
        self.positions: dict[Partition, int] = {}

    def assign(self, partitions: list[Partition]) -> None:
        """Takes over an assignment; of partitions that stay the positions stay."""
        self.partitions = partitions
        self.positions = {one: offset for one, offset in self.positions.items() if one in partitions}

    def committed(self) -> dict[Partition, int]:
        """The group's offsets of the assigned partitions, -1 without a commit."""
        place = self.place
        exchange = place.ask(
            "OffsetFetch",
            lambda version: bodies.offset_fetch(
                version, place.group, self.partitions, place.ids(), self.member, self.epoch
            ),
        )
        error, offsets = bodies.committed(exchange.body(), place.names())
        first = error or next((code for _, code in offsets.values() if code), 0)
        if first:
            raise Refusal(exchange, first)
        return {partition: offsets.get(partition, (-1, 0))[0] for partition in self.partitions}

    def ends(self, partitions: Sequence[Partition], earliest: bool) -> dict[Partition, int]:
        """The first or the next offset of partitions, from their leaders."""
        out: dict[Partition, int] = {}
        for address, own in self.place.by_leader(partitions).items():
            asked = partial(bodies.list_offsets, partitions=own, time=EARLIEST if earliest else LATEST)
            exchange = self.place.cluster.ask(address, "ListOffsets", asked)
            listed = bodies.listed_offsets(exchange.body())
            for one in own:
                if one not in listed:
                    raise KwireError(f"the answer to {exchange.name} lacks {one[0]}-{one[1]}")
                offset, error = listed[one]
                if error:
                    raise Refusal(exchange, error)
                out[one] = offset
        return out

    def seek(self) -> dict[Partition, int]:
        """Where to read on: what was committed, else the first or the next offset."""
        positions = self.committed()
        missing = [partition for partition, offset in positions.items() if offset < 0]
        if missing:
            positions |= self.ends(missing, self.earliest)
        self.positions = positions
        return positions

    def poll(self, wait_ms: int = 500) -> list[Polled]:
        """Fetches once from every leader; positions move on behind what came."""
        if set(self.partitions) - set(self.positions):
            self.seek()
        out: list[Polled] = []
        for address, own in self.place.by_leader(list(self.positions)).items():
            for partition, got in self.fetch(address, own, wait_ms).items():
                out += self.read(partition, got)
        return out

    def fetch(self, address: Address, partitions: Sequence[Partition], wait_ms: int) -> dict[Partition, FetchAnswer]:
        """What one leader has of partitions, from their positions on; one that is not in the answer lacks."""
        place = self.place
        wanted = {partition: self.positions[partition] for partition in partitions}
        exchange = place.cluster.ask(
            address, "Fetch", lambda version: bodies.fetch(version, wanted, place.ids(), wait_ms, PARTITION_BYTES),
            place.cluster.timeout + wait_ms / 1000,
        )  # fmt: skip
        error, rows = bodies.fetched(exchange.body(), place.names())
        first = error or next((row.error for row in rows.values() if row.error), 0)
        if first:
            raise Refusal(exchange, first)
        return {partition: row for partition, row in rows.items() if partition in wanted}

    def read(self, partition: Partition, got: FetchAnswer) -> list[Polled]:
        """The records from the position on, which moves behind them; control batches are passed over."""
        out: list[Polled] = []
        position = self.positions.get(partition, 0)
        for batch in got.batches():
            if not batch.is_control:
                out += [Polled(*partition, record) for record in batch.records if record.offset >= position]
            self.positions[partition] = max(self.positions.get(partition, 0), batch.last_offset + 1)
        return out
