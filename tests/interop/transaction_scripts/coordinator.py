"""InitProducerId, AddPartitionsToTxn, EndTxn, and what admin tools ask: the transaction coordinator's own rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transaction_lab import TxnLab

LAST_EPOCH = 32766


async def init(lab: TxnLab) -> None:
    """InitProducerId: first and again, with the present epoch, the one before, wrong ones; refused as a whole."""
    a = lab.producer()
    await lab.init(a, 0)
    await lab.init(a, 2)
    await lab.describe()
    await lab.init(a, 4, again=True)
    before = a.epoch
    await lab.init(a, 4, again=True, ProducerEpoch=before - 1)
    await lab.init(a, 4, again=True)
    await lab.init(a, 3, again=True, ProducerEpoch=before - 1)
    await lab.init(a, 4, again=True, ProducerEpoch=before - 1)
    await lab.init(a, 4, again=True, ProducerEpoch=before + 9)
    await lab.init(a, 3, again=True, ProducerId=a.producer + 100_000)
    await lab.init(a, 4, again=True, ProducerId=a.producer + 100_000)
    await lab.init(a, 4, ProducerId=a.producer)
    await lab.init(a, 4, ProducerEpoch=0)
    await lab.init(a, None)
    for timeout in (0, -1, 900_000, 900_001):
        await lab.init(a, None, TransactionTimeoutMs=timeout)
    await lab.describe()
    await lab.init(a, None, TransactionalId="")


async def init_idempotent(lab: TxnLab) -> None:
    """InitProducerId without a transactional id, with and without the id that it had."""
    from transaction_lab import Producer

    a = Producer("a", None)
    await lab.init(a, 0)
    await lab.init(a, None)
    await lab.init(a, None, again=True)
    await lab.init(a, None, ProducerId=a.producer)


async def init_with_unknown_id(lab: TxnLab) -> None:
    """A transactional id that nobody knows, named with a producer id: as after its expiration."""
    a = lab.producer()
    await lab.init(a, None, ProducerId=77, ProducerEpoch=5)
    await lab.init(a, None, again=True)


async def add_partitions(lab: TxnLab) -> None:
    """AddPartitionsToTxn up to v3: unknown and wrong producers, partitions that are not there, twice, all versions."""
    a = lab.producer()
    await lab.add(a, V3AndBelowProducerId=5, V3AndBelowProducerEpoch=0)
    await lab.init(a)
    await lab.add(a, 0, V3AndBelowProducerId=a.producer + 1)
    for version in (0, 1, 2, 3):
        await lab.add(a, 0, version=version, V3AndBelowProducerEpoch=a.epoch + 1)
    await lab.add(a, 0, V3AndBelowProducerEpoch=a.epoch - 1)
    await lab.add(a, 0, V3AndBelowTransactionalId="")
    await lab.add(a, 0, topic=f"{lab.name}-none")
    await lab.add(a, 0, 1, 99)
    await lab.add(a, 0, topic="__consumer_offsets")
    await lab.describe()
    await lab.add(a, 0, 1)
    await lab.describe()
    await lab.add(a, 0)
    await lab.add(a, 2, version=0)
    await lab.describe()
    await lab.end(a)
    await lab.describe()
    await lab.add(a, 1)
    await lab.describe()
    await lab.end(a, commit=False)
    await lab.describe()


async def verify_partitions(lab: TxnLab) -> None:
    """AddPartitionsToTxn from v4 on, as brokers send it: verification in every state, adding, wrong producers."""
    a = lab.producer()
    newest = min(5, lab.versions["AddPartitionsToTxn"][1])
    await lab.verify(a, 0, ProducerId=5, ProducerEpoch=0)
    await lab.init(a)
    for version in (4, newest):
        await lab.verify(a, 0, version=version)
    await lab.verify(a, 0, 1, version=newest, only=False)
    await lab.describe()
    await lab.verify(a, 0, 1, 2, version=newest)
    await lab.verify(a, 0, version=newest, ProducerEpoch=a.epoch + 1)
    await lab.verify(a, 0, version=newest, ProducerId=a.producer + 1)
    await lab.verify(a, 99, version=newest)
    await lab.verify(a, 0, version=newest, TransactionalId="")
    b = lab.producer("b", "-2")
    await lab.init(b)
    topics = [{"Name": lab.topic, "Partitions": [0, 2]}]
    rows = [one.who | {"VerifyOnly": only, "Topics": topics} for one, only in ((a, True), (b, False), (b, True))]
    await lab.ask("a", "AddPartitionsToTxn", newest, {"Transactions": rows})
    await lab.end(a)
    await lab.verify(a, 0, version=newest)


async def end_old(lab: TxnLab) -> None:
    """EndTxn up to v4: in every state, of wrong producers, twice, the other way round."""
    a = lab.producer()
    await lab.end(a, ProducerId=5, ProducerEpoch=0)
    await lab.init(a)
    await lab.end(a)
    await lab.end(a, commit=False)
    for version in (0, 1, 2, 3, 4):
        await lab.add(a, 0)
        await lab.end(a, version=version, ProducerEpoch=a.epoch + 1)
        await lab.end(a, version=version, ProducerId=a.producer + 1)
        await lab.end(a, version=version, commit=version % 2 == 0)
        await lab.describe()
        await lab.end(a, version=version, commit=True)
        await lab.end(a, version=version, commit=False)
    await lab.end(a, TransactionalId="")
    await lab.add(a, 0)
    await lab.end(a, ProducerEpoch=a.epoch - 1)
    await lab.end(a, commit=False)


async def end_new(lab: TxnLab) -> None:
    """EndTxn v5: each end raises the epoch; sent again, of nothing, the other way round, with wrong epochs."""
    a = lab.producer()
    await lab.init(a)
    await lab.end(a, version=5)
    await lab.end(a, version=5, commit=False)
    await lab.describe()
    await lab.end(a, version=5, commit=False)
    for commit in (True, False):
        await lab.add(a, 0)
        await lab.describe()
        old = a.epoch
        await lab.end(a, version=5, commit=commit)
        await lab.describe()
        await lab.end(a, version=5, commit=commit, ProducerEpoch=old)
        await lab.end(a, version=5, commit=not commit, ProducerEpoch=old)
        await lab.end(a, version=5, commit=commit, ProducerEpoch=old - 1)
        await lab.end(a, version=5, commit=commit, ProducerEpoch=a.epoch + 1)
        await lab.end(a, version=5, commit=commit, ProducerId=a.producer + 1)
        await lab.end(a, version=5, commit=True)
        await lab.end(a, version=5, commit=False)
        await lab.describe()
    await lab.end(a, version=5, TransactionalId="")
    await lab.end(a, version=5, TransactionalId=f"{lab.name}-none")


async def mixed_versions(lab: TxnLab) -> None:
    """EndTxn v4 and v5 in turns on one transactional id."""
    a = lab.producer()
    await lab.init(a)
    for version, commit in ((5, True), (4, True), (4, False), (5, False), (4, True), (5, True)):
        await lab.add(a, 0)
        await lab.end(a, version=version, commit=commit)
        await lab.describe()
    await lab.init(a, None, again=True)
    await lab.describe()


async def fenced_init(lab: TxnLab) -> None:
    """InitProducerId while a transaction is open: it is aborted, and the old producer is fenced everywhere."""
    a, b = lab.producer("a"), lab.producer("b")
    await lab.init(a)
    await lab.add(a, 0)
    await lab.produce(a)
    await lab.init(b)
    await lab.describe()
    await lab.look()
    await lab.produce(a)
    await lab.end(a)
    await lab.add(a, 1)
    await lab.init(a, None, again=True)
    await lab.init(b)
    await lab.describe()
    await lab.produce(a)
    await lab.end(a, version=1)
    await lab.end(a)
    await lab.add(a, 1, version=1)
    await lab.add(a, 1)
    await lab.init(a, 3, again=True)
    await lab.init(a, 4, again=True)
    await lab.add(b, 0)
    await lab.produce(b)
    await lab.end(b)
    await lab.fetch()


async def reinit_while_open(lab: TxnLab) -> None:
    """A producer with an open transaction asks for its next epoch, naming the one that it has (KIP-360)."""
    a = lab.producer()
    await lab.init(a)
    await lab.add(a, 0)
    await lab.init(a, None, again=True)
    await lab.describe()
    await lab.init(a, None, again=True)
    await lab.init(a, None, again=True)
    await lab.describe()
    await lab.add(a, 0)
    await lab.init(a, None, again=True, ProducerEpoch=a.epoch - 1)
    await lab.describe()


async def timeout(lab: TxnLab) -> None:
    """A transaction that stays open too long is aborted, and its producer fenced."""
    import asyncio

    a = lab.producer()
    await lab.init(a, TransactionTimeoutMs=1_000)
    await lab.add(a, 0)
    await lab.produce(a)
    await lab.look()
    await asyncio.sleep(2.5)
    await lab.look()
    await lab.produce(a)
    await lab.end(a)
    await lab.add(a, 0)
    await lab.fetch()
    await lab.init(a, None, again=True, TransactionTimeoutMs=1_000)
    await lab.init(a, None)
    await lab.describe()


async def epochs_run_out(lab: TxnLab) -> None:
    """The last epoch of a producer id: InitProducerId goes on with a new id."""
    a = lab.producer()
    await lab.init(a)
    await _raise(lab, a)
    old = a.producer
    await lab.init(a, None, again=True)
    await lab.describe()
    await lab.init(a, None, ProducerId=old, ProducerEpoch=LAST_EPOCH)
    await lab.init(a, None, ProducerId=old, ProducerEpoch=LAST_EPOCH - 1)
    await lab.init(a, None)


async def epochs_run_out_open(lab: TxnLab) -> None:
    """The same while a transaction is open."""
    a = lab.producer()
    await lab.init(a)
    await _raise(lab, a)
    await lab.add(a, 0)
    await lab.produce(a)
    await lab.init(a, None)
    await lab.describe()
    await lab.look()
    await lab.init(a, None)
    await lab.describe()


async def epochs_run_out_at_the_end(lab: TxnLab) -> None:
    """The same at EndTxn v5, whose answer names the new id; sent again it is known by the old one."""
    a = lab.producer()
    await lab.init(a)
    await _raise(lab, a)
    old = a.producer
    await lab.add(a, 0)
    await lab.produce(a)
    await lab.end(a, version=5)
    await lab.look()
    await lab.end(a, version=5, ProducerId=old, ProducerEpoch=LAST_EPOCH)
    await lab.end(a, version=5, commit=False, ProducerId=old, ProducerEpoch=LAST_EPOCH)
    await lab.end(a, version=5, ProducerId=old, ProducerEpoch=LAST_EPOCH - 1)
    await lab.add(a, 0)
    await lab.produce(a)
    await lab.end(a, version=5, ProducerId=old, ProducerEpoch=LAST_EPOCH)
    await lab.end(a, version=5, commit=False)
    await lab.fetch()


async def _raise(lab: TxnLab, producer: object) -> None:
    """Brings the producer to its last epoch, by requests that the transcript does not keep."""
    import asyncio

    asked = {"TransactionalId": producer.id, "TransactionTimeoutMs": 60_000}  # type: ignore[attr-defined]
    while True:
        got = await lab.admin.ask("InitProducerId", 4, asked)
        if got["ErrorCode"]:
            await asyncio.sleep(0.005)
        elif got["ProducerEpoch"] >= LAST_EPOCH:
            lab.preset(producer, got["ProducerEpoch"])  # type: ignore[arg-type]
            return


async def list_transactions(lab: TxnLab) -> None:
    """ListTransactions with every filter, DescribeTransactions of what is not there."""
    a, b = lab.producer("a"), lab.producer("b", "-2")
    await lab.init(a)
    await lab.init(b)
    await lab.add(b, 0)
    for states in ([], ["Ongoing"], ["Empty", "Nonsense"], ["ongoing"], ["Dead"], ["PrepareEpochFence"]):
        await lab.ask("a", "ListTransactions", 0, {"StateFilters": states, "ProducerIdFilters": []})
    for producers in ([a.producer], [b.producer, 99_999_999], [99_999_999]):
        await lab.ask("a", "ListTransactions", 0, {"StateFilters": [], "ProducerIdFilters": producers})
    newest = lab.newest("ListTransactions")
    rest: dict[str, Any] = {"StateFilters": [], "ProducerIdFilters": []}
    for duration in (-1, 0, 3_600_000):
        await lab.ask("a", "ListTransactions", 1, rest | {"DurationFilter": duration})
    if newest >= 2:
        for pattern in ("", f"{lab.name}-.", "nothing.*", lab.name, "("):
            await lab.ask("a", "ListTransactions", 2, rest | {"TransactionalIdPattern": pattern})
    for names in ([lab.name, f"{lab.name}-none", ""], []):
        await lab.ask("a", "DescribeTransactions", 0, {"TransactionalIds": names})
