"""Records of share groups: acquired, acknowledged, delivered again, given up."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from share_lab import ACCEPT, REJECT, RELEASE, RENEW, Reader

if TYPE_CHECKING:
    from share_lab import ShareLab


async def _begun(lab: ShareLab, *names: str) -> list[Reader]:
    """Members that have their partitions, of a group that begins with what is there."""
    readers = [lab.reader(name) for name in names]
    await lab.earliest()
    for one in readers:
        await lab.join(one)
    return readers


async def share_accept(lab: ShareLab) -> None:
    """Everything is accepted, with the next fetch and on its own; where the group stands at each step."""
    (a,) = await _begun(lab, "a")
    await lab.offsets()
    await lab.fetch(a, 0, 1, wait=300)
    await lab.produce(3, 4)
    await lab.offsets(0, 1)
    await lab.fetch(a)
    await lab.offsets(0, 1)
    await lab.fetch(a, acks=[(0, 2, ACCEPT)], wait=200)
    await lab.offsets(0)
    await lab.acknowledge(a, [(3, 6, ACCEPT)])
    await lab.offsets(0)
    await lab.produce(2)
    await lab.fetch(a)
    await lab.acknowledge(a, [(7, 7, ACCEPT), (8, 8, ACCEPT)])
    await lab.offsets(0)
    await lab.fetch(a, epoch=-1)
    await lab.beat(a, -1)


async def share_release(lab: ShareLab) -> None:
    """Records are released until their deliveries are used up."""
    (a,) = await _begun(lab, "a")
    await lab.produce(6)
    await lab.fetch(a, 0)
    await lab.acknowledge(a, [(0, 5, RELEASE)])
    for _ in range(7):
        got = await lab.fetch(a, wait=200)
        for row in got["Responses"]:
            for each in row["Partitions"][0]["AcquiredRecords"]:
                await lab.acknowledge(a, [(each["FirstOffset"], each["LastOffset"], RELEASE)])
        await lab.offsets(0)


async def share_release_one_of_many(lab: ShareLab) -> None:
    """One record is released again and again, its neighbours are accepted."""
    (a,) = await _begun(lab, "a")
    await lab.produce(5, 3)
    await lab.fetch(a, 0)
    await lab.acknowledge(a, [(0, 4, [ACCEPT, ACCEPT, RELEASE, REJECT, 0]), (5, 7, RELEASE)])
    await lab.offsets(0)
    for _ in range(6):
        got = await lab.fetch(a, wait=200)
        for row in got["Responses"]:
            for each in row["Partitions"][0]["AcquiredRecords"]:
                await lab.acknowledge(a, [(each["FirstOffset"], each["LastOffset"], RELEASE)])
    await lab.offsets(0)


async def share_two_readers(lab: ShareLab) -> None:
    """Two members share a partition: nobody gets what the other holds."""
    a, b, c = await _begun(lab, "a", "b", "c")
    await lab.produce(4, 4)
    await lab.fetch(a, 0, most=4)
    await lab.fetch(b, 0)
    await lab.fetch(c, 0, wait=300)
    await lab.acknowledge(b, [(0, 3, ACCEPT)])
    await lab.acknowledge(a, [(0, 3, ACCEPT)])
    await lab.acknowledge(a, [(0, 3, ACCEPT)])
    await lab.acknowledge(b, [(4, 5, RELEASE)])
    await lab.fetch(c)
    await lab.acknowledge(c, [(4, 4, ACCEPT)])
    await lab.offsets(0)
    await lab.fetch(b, epoch=-1)
    await lab.fetch(c)
    await lab.offsets(0)


async def share_locks(lab: ShareLab) -> None:
    """Locks run out after two seconds; renewed ones later."""
    (a, b) = await _begun(lab, "a", "b")
    await lab.produce(4)
    await lab.fetch(a, 0)
    await lab.acknowledge(a, [(0, 0, ACCEPT)])
    await asyncio.sleep(1.2)
    await lab.acknowledge(a, [(1, 1, RENEW)])
    await lab.acknowledge(a, [(1, 1, RENEW)], IsRenewAck=True)
    await lab.fetch(b, 0, wait=0)
    await asyncio.sleep(1.3)
    await lab.fetch(b)
    await lab.acknowledge(a, [(2, 2, ACCEPT)])
    await lab.acknowledge(a, [(1, 1, ACCEPT)])
    await lab.offsets(0)
    await lab.acknowledge(b, [(2, 3, ACCEPT)])
    await lab.offsets(0)
    await lab.fetch(a, acks=[(2, 3, RENEW)], IsRenewAck=True)
    await lab.fetch(a, acks=[(2, 3, RENEW)], IsRenewAck=True, MaxBytes=0, MinBytes=0, MaxRecords=0, wait=0)


async def share_waits_for_a_lock(lab: ShareLab) -> None:
    """A fetch that waits gets the record when the other member's lock runs out."""
    (a, b) = await _begun(lab, "a", "b")
    await lab.produce(1)
    await lab.fetch(a, 0)
    await lab.fetch(b, 0, wait=4000)
    await lab.acknowledge(a, [(0, 0, ACCEPT)])
    await lab.acknowledge(b, [(0, 0, ACCEPT)])


async def share_no_renewal(lab: ShareLab) -> None:
    """share.renew.acknowledge.enable is false."""
    await lab.set_configs({"share.renew.acknowledge.enable": "false"})
    (a,) = await _begun(lab, "a")
    await lab.produce(2)
    await lab.fetch(a, 0)
    await lab.acknowledge(a, [(0, 1, RENEW)], IsRenewAck=True)
    await lab.acknowledge(a, [(0, 1, RENEW)], version=1)
    await lab.acknowledge(a, [(0, 1, ACCEPT)], version=1)


async def share_limits(lab: ShareLab) -> None:
    """How many records a fetch gets: whole batches, or not one more than asked for."""
    (a,) = await _begun(lab, "a")
    await lab.produce(3, 5, 4, 2)
    await lab.fetch(a, 0, most=4)
    await lab.fetch(a, most=2, mode=1)
    await lab.fetch(a, most=1, mode=1)
    await lab.fetch(a, most=3)
    await lab.acknowledge(a, [(8, 9, RELEASE)])
    await lab.acknowledge(a, [(0, 7, RELEASE)])
    await lab.fetch(a, most=3, mode=1)
    await lab.fetch(a, most=3)
    await lab.fetch(a, most=100, pieces=2)
    await lab.fetch(a, most=0)
    await lab.fetch(a, MaxBytes=0, MinBytes=0)
    await lab.offsets(0)


async def share_pieces(lab: ShareLab) -> None:
    """Acquired ranges come in pieces of about BatchSize."""
    (a,) = await _begun(lab, "a")
    await lab.produce(1, 1, 3, 2, 2, 4, 1)
    await lab.fetch(a, 0, pieces=2)
    await lab.acknowledge(a, [(0, 1, RELEASE), (5, 8, RELEASE)])
    await lab.fetch(a, pieces=3)


async def share_full_window(lab: ShareLab) -> None:
    """No more than 100 records of a partition are in flight."""
    (a,) = await _begun(lab, "a")
    await lab.produce(40, 40, 40, 40)
    await lab.fetch(a, 0)
    await lab.fetch(a, wait=300)
    await lab.acknowledge(a, [(40, 44, RELEASE)])
    await lab.fetch(a, wait=300)
    await lab.acknowledge(a, [(0, 39, ACCEPT)])
    await lab.fetch(a, wait=300)
    await lab.offsets(0)


async def share_wrong_acks(lab: ShareLab) -> None:
    """Acknowledgements that are refused; none of them counts."""
    (a,) = await _begun(lab, "a")
    await lab.produce(4, 4)
    await lab.acknowledge(a, [(0, 3, ACCEPT)], epoch=1)
    await lab.fetch(a, 0, most=4)
    for batch in ((3, 0, ACCEPT), (0, 3, []), (0, 3, [1, 1]), (0, 3, 5), (0, 3, 4), (0, 3, -1), (0, 9, ACCEPT),
                  (20, 21, ACCEPT), (2, 5, ACCEPT)):  # fmt: skip
        await lab.acknowledge(a, [batch])
    await lab.acknowledge(a, [(0, 1, ACCEPT), (1, 1, ACCEPT), (0, 0, ACCEPT)])
    await lab.acknowledge(a, [(0, 1, ACCEPT), (3, 6, ACCEPT)])
    await lab.acknowledge(a, {0: [(0, 1, ACCEPT)], 1: [(0, 0, ACCEPT)], 5: [(0, 0, ACCEPT)]})
    await lab.acknowledge(a, [(0, 3, ACCEPT)])
    await lab.acknowledge(a, [(2, 3, ACCEPT)])
    await lab.acknowledge(a, [(0, 3, ACCEPT)])
    await lab.acknowledge(a, {0: []})
    await lab.offsets(0)


async def share_hang_up(lab: ShareLab) -> None:
    """The connection goes: what the member holds is delivered again."""
    (a, b) = await _begun(lab, "a", "b")
    await lab.produce(6)
    await lab.fetch(a, 0)
    await lab.acknowledge(a, [(1, 2, ACCEPT)])
    await lab.hang_up("a")
    await lab.fetch(b, 0)
    await lab.offsets(0)
    await lab.fetch(a, epoch=a.session)
    await lab.hang_up("b")
    await lab.hang_up("a")
    await lab.fetch(b, 0, epoch=0)
    await lab.acknowledge(b, [(0, 0, ACCEPT)])
    await lab.offsets(0)


async def share_isolation(lab: ShareLab) -> None:
    """share.isolation.level is read_committed: aborted records are not delivered."""
    await lab.set_configs({"share.isolation.level": "read_committed"})
    (a,) = await _begun(lab, "a")
    await lab.produce(2)
    name = f"{lab.group}-{time.time():.0f}"
    init = {"TransactionalId": name, "TransactionTimeoutMs": 60_000}
    producer = await lab.ask("producer", "InitProducerId", 4, init)
    for number, commit in enumerate((True, False, True)):
        who = {"ProducerId": producer["ProducerId"], "ProducerEpoch": producer["ProducerEpoch"]}
        named = {"V3AndBelowTransactionalId": name} | {f"V3AndBelow{key}": value for key, value in who.items()}
        topics = [{"Name": lab.topic, "Partitions": [0]}]
        await lab.ask("producer", "AddPartitionsToTxn", 3, named | {"V3AndBelowTopics": topics})
        marks = {"producer_id": who["ProducerId"], "producer_epoch": who["ProducerEpoch"], "base_sequence": number * 3}
        await lab.transactional(name, 3, **marks)
        await lab.fetch(a, 0, wait=300)
        await lab.ask("producer", "EndTxn", 4, who | {"TransactionalId": name, "Committed": commit})
        await asyncio.sleep(0.5)
        await lab.fetch(a, wait=300)
    await lab.offsets(0)
