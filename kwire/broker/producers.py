"""What a partition remembers of idempotent producers, and the rules for sequence numbers (KIP-98).

The rules are those of Kafka's ProducerAppendInfo and ProducerStateEntry: the last five batches of a producer are
known, a repeat of one of them is answered with its offset and not written; otherwise sequences follow without a gap,
and a new epoch begins at 0. A producer of whom nothing is known may begin anywhere (KAFKA-14402).
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import NamedTuple

from kwire.broker.codes import Code, Refused
from kwire.records.batch import Header, sequence_after

REMEMBERED = 5  # ProducerStateEntry.NUM_BATCHES_TO_RETAIN


class Wrote(NamedTuple):
    """A batch of a producer's: its sequences and the offset of its first record."""

    first: int
    last: int
    base: int


@dataclass(slots=True)
class Producer:
    """One producer id: its newest epoch, its last batches, and when it wrote last."""

    epoch: int
    batches: list[Wrote] = field(default_factory=list)  # a deque takes ten times as much
    time_ms: int = -1


class Producers:
    """By producer id, at most so many; the one that has been silent longest is forgotten first."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.known: OrderedDict[int, Producer] = OrderedDict()

    def check(self, header: Header) -> int | None:
        """The offset of an earlier copy of the batch, or None: it is to be written. Raises Refused."""
        known = self.known.get(header.producer_id)
        if header.producer_id < 0 or known is None:
            return None
        first, epoch = header.base_sequence, header.producer_epoch
        if epoch < known.epoch:
            raise Refused(Code.INVALID_PRODUCER_EPOCH, f"epoch {epoch}, the newest is {known.epoch}")
        if epoch > known.epoch:
            if first != 0 and known.batches:
                why = f"sequence {first} at the start of epoch {epoch}, must be 0"
                raise Refused(Code.OUT_OF_ORDER_SEQUENCE_NUMBER, why)
            return None
        last = sequence_after(first, header.last_offset_delta)
        for batch in known.batches:
            if (batch.first, batch.last) == (first, last):
                return batch.base
        if known.batches and first != sequence_after(known.batches[-1].last, 1):
            why = f"sequence {first}, the last one was {known.batches[-1].last}"
            raise Refused(Code.OUT_OF_ORDER_SEQUENCE_NUMBER, why)
        return None

    def wrote(self, header: Header, base: int, now_ms: int) -> None:
        """The batch is in the log."""
        if header.producer_id < 0:
            return
        known = self.known.get(header.producer_id)
        if known is None:
            known = self.known[header.producer_id] = Producer(header.producer_epoch)
            if len(self.known) > self.limit:
                self.known.popitem(last=False)
        self.known.move_to_end(header.producer_id)
        if header.producer_epoch > known.epoch:
            known.epoch = header.producer_epoch
            known.batches.clear()
        known.time_ms = now_ms
        last = sequence_after(header.base_sequence, header.last_offset_delta)
        known.batches = [*known.batches[-REMEMBERED + 1 :], Wrote(header.base_sequence, last, base)]
