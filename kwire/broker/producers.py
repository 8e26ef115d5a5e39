"""What a partition remembers of producers: their sequence numbers and epochs, and the transactions they have open here.

The rules are those of Kafka's ProducerAppendInfo, ProducerStateEntry and ProducerStateManager: the last five batches of
a producer are known, a repeat of one of them is answered with its offset and not written; otherwise sequences follow
without a gap, and a new epoch begins at 0. A producer of whom nothing is known may begin anywhere (KAFKA-14402), unless
its epoch rises with each transaction. A marker ends the producer's transaction and sets its epoch (KIP-98, KIP-890).
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from struct import unpack, unpack_from
from typing import NamedTuple

from kwire.broker.refused import Refused
from kwire.records import read_records
from kwire.records.batch import Header, sequence_after
from kwire.schema import codes

REMEMBERED = 5  # ProducerStateEntry.NUM_BATCHES_TO_RETAIN
COMMIT = 1  # the kind of a control record that ends a transaction so; 0: it is aborted
EPOCH_BUMPS = 2  # the transaction.version from which a marker's epoch must be a new one


class Wrote(NamedTuple):
    """A batch of a producer's: its sequences, the offset of its first record and its greatest timestamp, ms."""

    first: int
    last: int
    base: int
    time: int


class Aborted(NamedTuple):
    """An aborted transaction: its first record's offset and its marker's."""

    producer: int
    first: int
    last: int


@dataclass(slots=True)
class Producer:
    """One producer id: its newest epoch, its last batches, when it wrote last, the epoch of the coordinator that ended
    its last transaction here, and the first offset of the open one (-1: none is)."""

    epoch: int
    batches: list[Wrote] = field(default_factory=list)  # a deque takes ten times as much
    time_ms: int = -1
    coordinator_epoch: int = -1
    opened: int = -1

    def rise(self, epoch: int) -> None:
        """Sequences begin anew with a new epoch."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()


class Producers:
    """By producer id, at most so many; the one that has been silent longest is forgotten first, if it has no
    transaction open."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.known: OrderedDict[int, Producer] = OrderedDict()
        self.open: dict[int, int] = {}  # producer id to the first offset of its transaction, in the order of offsets
        self.aborted: list[Aborted] = []  # in the order of their markers
        self._refused: OrderedDict[int, tuple[int, int]] = OrderedDict()  # epoch, lowest sequence not yet written

    # ------------------------------------------------------------ data

    def check(self, header: Header, bumps: bool = False) -> Wrote | None:
        """An earlier copy of the batch, or None: it is to be written. bumps: the producer's epoch rises
        with each transaction. Raises Refused."""
        if header.producer_id < 0:
            return None
        known = self.known.get(header.producer_id)
        first, epoch = header.base_sequence, header.producer_epoch
        if known is not None and epoch == known.epoch:
            last = sequence_after(first, header.last_offset_delta)
            for batch in known.batches:
                if (batch.first, batch.last) == (first, last):
                    return batch
        self._check_order(header, known, bumps)
        if known is not None and known.opened >= 0 and not header.is_transactional:
            why = f"producer {header.producer_id} has a transaction open here, and this batch is outside of it"
            raise Refused(codes.INVALID_TXN_STATE, why)
        return None

    def _check_order(self, header: Header, known: Producer | None, bumps: bool) -> None:
        first, epoch = header.base_sequence, header.producer_epoch
        if known is not None and epoch < known.epoch:
            raise Refused(codes.INVALID_PRODUCER_EPOCH, f"epoch {epoch}, the newest is {known.epoch}")
        if bumps and first != 0 and (known is None or not known.batches):
            why = f"sequence {first} at the start of a transaction, must be 0"
            raise Refused(codes.OUT_OF_ORDER_SEQUENCE_NUMBER, why)
        refused = self._refused.get(header.producer_id)
        if refused is not None and refused[0] >= epoch and first > refused[1]:  # not what a fenced one tried
            why = f"sequence {first}, but {refused[1]} has been refused and must come first"
            raise Refused(codes.OUT_OF_ORDER_SEQUENCE_NUMBER, why)
        if known is None:
            return
        if epoch > known.epoch:
            if first != 0:
                why = f"sequence {first} at the start of epoch {epoch}, must be 0"
                raise Refused(codes.OUT_OF_ORDER_SEQUENCE_NUMBER, why)
            return
        before = known.batches[-1].last if known.batches else -1
        if first != (0 if before < 0 else sequence_after(before, 1)):
            raise Refused(codes.OUT_OF_ORDER_SEQUENCE_NUMBER, f"sequence {first}, the last one was {before}")

    def wrote(self, header: Header, base: int, now_ms: int) -> None:
        """The batch is in the log."""
        if header.producer_id < 0:
            return
        known = self._of(header.producer_id, header.producer_epoch)
        known.rise(header.producer_epoch)
        known.time_ms = now_ms
        last = sequence_after(header.base_sequence, header.last_offset_delta)
        known.batches = [
            *known.batches[-REMEMBERED + 1 :],
            Wrote(header.base_sequence, last, base, header.max_timestamp),
        ]
        self._refused.pop(header.producer_id, None)
        if header.is_transactional and known.opened < 0:
            known.opened = self.open[header.producer_id] = base

    def has_open(self, header: Header, any_epoch: bool = False) -> bool:
        """Whether the batch goes on with a transaction that the producer has open here, with the same epoch."""
        known = self.known.get(header.producer_id)
        return known is not None and known.opened >= 0 and (any_epoch or known.epoch == header.producer_epoch)

    def refused(self, header: Header) -> None:
        """The coordinator did not let the batch pass: later ones must not overtake it when it is sent again."""
        epoch, lowest = self._refused.pop(header.producer_id, (-1, 0))
        if epoch < header.producer_epoch or (epoch == header.producer_epoch and header.base_sequence < lowest):
            epoch, lowest = header.producer_epoch, header.base_sequence
        self._refused[header.producer_id] = (epoch, lowest)
        if len(self._refused) > self.limit:
            self._refused.popitem(last=False)

    def read(self, header: Header, data: bytes) -> None:
        """A batch that stands in the log already, read again in its turn."""
        if not header.is_control:
            self.wrote(header, header.base_offset, header.max_timestamp)
        elif header.producer_id >= 0:
            (record,) = read_records(data)[0].records
            kind, coordinator_epoch = unpack(">hh", record.key or b"")[1], unpack_from(">hi", record.value or b"")[1]
            last = header.base_offset
            producer, epoch = header.producer_id, header.producer_epoch
            self.marked(producer, epoch, kind == COMMIT, coordinator_epoch, last, header.max_timestamp)

    # ------------------------------------------------------------ markers

    def check_marker(self, producer: int, epoch: int, coordinator_epoch: int, level: int) -> None:
        """Whether a marker may be written; level: the transaction.version of its transaction. Raises Refused."""
        known = self.known.get(producer)
        if known is None:
            return
        again = level >= EPOCH_BUMPS and epoch == known.epoch and known.opened >= 0
        if epoch < known.epoch or again:
            raise Refused(codes.INVALID_PRODUCER_EPOCH, f"epoch {epoch}, the newest is {known.epoch}")
        if coordinator_epoch < known.coordinator_epoch:
            why = f"coordinator epoch {coordinator_epoch}, the newest is {known.coordinator_epoch}"
            raise Refused(codes.TRANSACTION_COORDINATOR_FENCED, why)

    def marked(self, producer: int, epoch: int, commit: bool, coordinator_epoch: int, offset: int, now_ms: int) -> None:
        """The marker stands at offset: the producer's transaction is over."""
        known = self._of(producer, epoch)
        known.rise(epoch)
        known.time_ms, known.coordinator_epoch = now_ms, coordinator_epoch
        self._refused.pop(producer, None)
        if known.opened >= 0:
            if not commit:
                self.aborted.append(Aborted(producer, known.opened, offset))
            del self.open[producer]
            known.opened = -1

    @property
    def first_open(self) -> int | None:
        """The offset where the oldest open transaction begins."""
        return next(iter(self.open.values()), None)

    def aborted_between(self, start: int, end: int) -> list[Aborted]:
        """The aborted transactions that have records or their marker from start on, and begin before end."""
        return [each for each in self.aborted if each.last >= start and each.first < end]

    def forget_before(self, offset: int) -> None:
        """The log begins there now: aborted transactions that ended before are of no use."""
        kept = next((at for at, each in enumerate(self.aborted) if each.last >= offset), len(self.aborted))
        del self.aborted[:kept]

    def _of(self, producer: int, epoch: int) -> Producer:
        """The producer's entry, made when it is not there, and now the last to be forgotten."""
        known = self.known.get(producer)
        if known is None:
            known = self.known[producer] = Producer(epoch)
            if len(self.known) > self.limit:
                oldest = next((each for each, entry in self.known.items() if entry.opened < 0), producer)
                if oldest != producer:
                    del self.known[oldest]
        self.known.move_to_end(producer)
        return known
