"""What partition leaders do: batches of producers, verification, implicit adding, markers, and what readers see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transaction_lab import Producer

if TYPE_CHECKING:
    from transaction_lab import TxnLab


async def produce_old(lab: TxnLab) -> None:
    """Produce up to v11 needs AddPartitionsToTxn first; sequences; readers before and after the marker."""
    a = lab.producer()
    await lab.init(a)
    for version in (9, 10, 11):
        await lab.produce(a, version=version)
    await lab.add(a, 0)
    await lab.produce(a, count=3)
    await lab.produce(a, 1)
    await lab.produce(a, sequence=0, count=3)
    await lab.produce(a, sequence=7)
    await lab.produce(a, sequence=1)
    await lab.produce(a)
    await lab.produce(a, transactional=False)
    await lab.fetch()
    await lab.look(0, 1)
    await lab.end(a)
    await lab.fetch()
    await lab.look(0, 1)
    await lab.produce(a)
    await lab.add(a, 0)
    await lab.produce(a)
    await lab.end(a, commit=False)
    await lab.fetch()
    await lab.fetch(5)
    await lab.produce(a, transactional=False)
    await lab.look()


async def produce_wrong(lab: TxnLab) -> None:
    """Transactional batches of producers that the coordinator does not know so, and without a transactional id."""
    a = lab.producer()
    newest = lab.newest("Produce")
    for version in sorted({9, 11, newest}):
        await lab.produce(a, version=version, producer_id=77, epoch=0)
    await lab.init(a)
    for version in sorted({9, 11, newest}):
        await lab.produce(a, version=version, epoch=a.epoch + 1)
        await lab.produce(a, version=version, producer_id=a.producer + 1)
        await lab.produce(a, version=version, TransactionalId=None)
        await lab.produce(a, version=version, TransactionalId="")
    await lab.add(a, 0)
    await lab.produce(a, epoch=a.epoch + 1)
    await lab.produce(a, sequence=5)
    await lab.produce(a, sequence=0)
    await lab.produce(a, sequence=6)
    await lab.end(a)
    await lab.look()


async def produce_new(lab: TxnLab) -> None:
    """Produce v12 adds the partition by itself; EndTxn v5 raises the epoch, and the old one writes no more."""
    a = lab.producer()
    await lab.init(a)
    await lab.produce(a, 0, version=12, sequence=3)
    await lab.produce(a, 0, version=12, count=2)
    await lab.produce(a, 1, version=12)
    await lab.produce(a, 0, version=12)
    await lab.look(0, 1)
    await lab.fetch()
    old = a.epoch
    await lab.end(a, version=5)
    await lab.look(0, 1)
    await lab.produce(a, 0, version=12, epoch=old, sequence=3)
    await lab.produce(a, 2, version=12, epoch=old, sequence=0)
    await lab.produce(a, 0, version=12, sequence=3)
    await lab.produce(a, 0, version=12)
    await lab.describe()
    await lab.end(a, version=5, commit=False)
    await lab.produce(a, 0, version=11)
    await lab.produce(a, 2, version=12)
    await lab.end(a, version=5)
    await lab.fetch()
    await lab.fetch(0, 2)
    await lab.look(0, 1, 2)


async def aborted_lists(lab: TxnLab) -> None:
    """Two producers interleaved, one aborts: the last stable offset, and which aborted ones a reader is told."""
    a, b = lab.producer("a"), lab.producer("b", "-2")
    await lab.init(a)
    await lab.init(b)
    free = Producer("c", None)
    await lab.init(free)
    for round_ in range(3):
        await lab.add(a, 0)
        await lab.add(b, 0)
        await lab.produce(b)
        await lab.produce(a, count=2)
        await lab.produce(free, transactional=False)
        await lab.produce(b)
        await lab.fetch()
        await lab.end(a, commit=round_ == 1)
        await lab.look()
        await lab.fetch()
        await lab.end(b, commit=round_ != 1)
        await lab.look()
    for offset in (0, 1, 3, 5, 6, 8, 15, 20, 21, 22):
        await lab.fetch(offset)


async def list_offsets(lab: TxnLab) -> None:
    """ListOffsets under read_committed: by time and at the end, with an open transaction."""
    a, free = lab.producer(), Producer("c", None)
    await lab.init(a)
    await lab.init(free)

    async def look() -> None:
        for isolation in (0, 1):
            for timestamp in (-1, -2, -3, 1, 1 << 60):
                rows = [{"PartitionIndex": 0, "Timestamp": timestamp}]
                topics = [{"Name": lab.topic, "Partitions": rows}]
                body = {"ReplicaId": -1, "IsolationLevel": isolation, "Topics": topics}
                await lab.ask("reader", "ListOffsets", 7, body)

    await look()
    await lab.add(a, 0)
    await lab.produce(a)
    await look()
    await lab.produce(free, transactional=False)
    await look()
    await lab.end(a)
    await look()


async def idempotent(lab: TxnLab) -> None:
    """A producer without transactions: sequences, repeats, gaps, epochs, one of whom nothing is known."""
    a = Producer("a", None)
    await lab.init(a)

    async def put(**how: int) -> None:
        await lab.produce(a, transactional=False, **how)  # type: ignore[arg-type]

    await put(sequence=0, count=2)
    await put(sequence=0, count=2)
    await put(sequence=0, count=1)
    await put(sequence=3)
    for sequence in range(2, 8):
        await put(sequence=sequence)
    await put(sequence=0, count=2)
    await put(sequence=3)
    await put(sequence=2)
    await put(sequence=5, epoch=1)
    await put(sequence=0, epoch=1)
    await put(sequence=8, epoch=0)
    await put(sequence=1, epoch=1)
    await put(sequence=9, producer_id=a.producer + 500_000)
    await put(sequence=9, producer_id=a.producer + 500_000)
    await put(sequence=12, producer_id=a.producer + 500_000)
    await lab.fetch()
    await lab.look()


async def group_offsets(lab: TxnLab) -> None:
    """Offsets in transactions: pending, committed, dropped; not announced; wrong producers; a commit beside them."""
    a = lab.producer()
    await lab.init(a)
    await lab.fetch_offsets()
    for version in (0, 2, 3, 4):
        await lab.commit_offsets(a, 5, version)
    await lab.add_offsets(a)
    await lab.describe()
    await lab.commit_offsets(a, 10)
    await lab.fetch_offsets()
    await lab.end(a)
    await lab.fetch_offsets()
    await lab.commit_offsets(a, 11)
    await lab.add_offsets(a)
    await lab.commit_offsets(a, 20)
    rows = [{"PartitionIndex": 0, "CommittedOffset": 15, "CommittedMetadata": "plain"}]
    topics = [{"Name": lab.topic, "Partitions": rows}]
    await lab.ask("a", "OffsetCommit", 8, {"GroupId": lab.name, "Topics": topics})
    await lab.fetch_offsets()
    await lab.end(a, commit=False)
    await lab.fetch_offsets()
    await lab.add_offsets(a, ProducerEpoch=a.epoch + 1)
    await lab.add_offsets(a, 1, ProducerEpoch=a.epoch + 1)
    await lab.add_offsets(a, ProducerId=a.producer + 1)
    await lab.add_offsets(a, TransactionalId="")
    await lab.commit_offsets(a, 5, ProducerEpoch=a.epoch + 1)
    await lab.commit_offsets(a, 5, ProducerId=a.producer + 1)
    await lab.commit_offsets(a, 5, TransactionalId=f"{lab.name}-none")
    await lab.describe()


async def group_offsets_new(lab: TxnLab) -> None:
    """TxnOffsetCommit v5 adds the group by itself; an old epoch, an unknown member, an unknown partition."""
    a = lab.producer()
    await lab.init(a)
    await lab.commit_offsets(a, 10, 5)
    await lab.describe()
    await lab.fetch_offsets()
    old = a.epoch
    await lab.end(a, version=5)
    await lab.fetch_offsets()
    await lab.commit_offsets(a, 11, 5, ProducerEpoch=old)
    await lab.commit_offsets(a, 11, 5, MemberId="ghost", GenerationIdOrMemberEpoch=3)
    await lab.describe()
    await lab.commit_offsets(a, 12, 5)
    await lab.end(a, version=5, commit=False)
    await lab.fetch_offsets()
    await lab.commit_offsets(a, 12, 5, ProducerId=a.producer + 7)
    await lab.commit_offsets(a, 12, 5, TransactionalId="")
    await lab.commit_offsets(a, 12, 5, GroupId="")
    rows = [{"PartitionIndex": index, "CommittedOffset": 1, "CommittedMetadata": None} for index in (0, 99)]
    await lab.commit_offsets(a, 0, 5, Topics=[{"Name": lab.topic, "Partitions": rows}])
    rows = [{"PartitionIndex": 0, "CommittedOffset": 1, "CommittedMetadata": None}]
    await lab.commit_offsets(a, 0, 5, Topics=[{"Name": f"{lab.name}-none", "Partitions": rows}])
    await lab.end(a, version=5)
    await lab.fetch_offsets()


async def write_markers(lab: TxnLab) -> None:
    """WriteTxnMarkers by hand: of nobody, of an open transaction, old epochs of producer and coordinator."""
    a = lab.producer()
    await lab.init(a)
    await lab.init(a)

    async def mark(
        producer: int, epoch: int, *, commit: bool = False, coordinator: int = 0, partition: int = 0
    ) -> None:
        topics = [{"Name": lab.topic, "PartitionIndexes": [partition]}]
        row = {"ProducerId": producer, "ProducerEpoch": epoch, "TransactionResult": commit, "Topics": topics}
        version = min(1, lab.versions["WriteTxnMarkers"][1])
        body = {"Markers": [row | {"CoordinatorEpoch": coordinator}]}
        await lab.ask("admin", "WriteTxnMarkers", version, body)

    await mark(a.producer + 700_000, 3)
    await mark(a.producer + 700_000, 2)
    await mark(a.producer + 700_000, 3, coordinator=5)
    await mark(a.producer + 700_000, 3, coordinator=4)
    await mark(a.producer + 700_000, 3, partition=99)
    await lab.add(a, 0)
    await lab.produce(a)
    await mark(a.producer, a.epoch - 1)
    await lab.look()
    await mark(a.producer, a.epoch, coordinator=9)
    await lab.look()
    await lab.fetch()
    await lab.produce(a)
    await lab.look()


async def zombie_between(lab: TxnLab) -> None:
    """A fenced producer's batch comes between two of the one that has fenced it, in the partition that is open."""
    a, zombie = lab.producer("a"), lab.producer("z")
    await lab.init(zombie)
    await lab.init(a)
    await lab.init(a)
    await lab.add(a, 0)
    await lab.produce(a)
    await lab.produce(zombie)
    await lab.produce(a)
    await lab.produce(zombie, version=lab.newest("Produce"))
    await lab.produce(a)
    await lab.end(a)
    await lab.add(a, 0)
    await lab.produce(zombie)
    await lab.produce(a)
    await lab.end(a)
    await lab.fetch()
