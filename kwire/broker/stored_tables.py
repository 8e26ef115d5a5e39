"""What coordinators hold, as records of their internal topics: committed offsets and groups of all kinds in
__consumer_offsets, transactional ids in __transaction_state, the state of share partitions in __share_group_state.
Kafka's keys, values and partitions, so that its tools read them.

A table compares what is held now with what it has written; what is new or changed becomes a record, what is gone a
tombstone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from uuid import UUID

from kwire.broker.context import MS
from kwire.broker.core import BrokerCore
from kwire.codec.library import builtin_library
from kwire.coordinator.committed_offsets import CommittedOffset
from kwire.coordinator.coordinator import Coordinator
from kwire.coordinator.hashorder import hash_code
from kwire.coordinator.share.inflight import RecordState
from kwire.coordinator.share.states import SharePartitionKey, StateBatch, Stored
from kwire.coordinator.stored import StoredKind
from kwire.coordinator.stored_records import RecordKey
from kwire.coordinator.transactions import stored as transaction_stored
from kwire.coordinator.transactions.coordinator import TransactionCoordinator
from kwire.errors import KwireError
from kwire.records import Record, build, read_records
from kwire.wire.uuids import to_text

KIND = 2  # bytes: the number that a key begins with, and the version that a value begins with
K = TypeVar("K")
V = TypeVar("V")
Fields = dict[str, Any]


def coordinated(name: str, partitions: int) -> int:
    """The partition in which Kafka keeps what is called so (Utils.abs of the hash)."""
    found = hash_code(name)
    found -= (found & 0x80000000) << 1
    return abs(found) % (1 << 31) % partitions


@dataclass
class StoredTable(Generic[K, V]):
    """held: what there is now, None for what stays as it was written. kind: the type that keys begin with, and key and
    value: their messages, value in this version. place: what of a key chooses the partition. put: takes back what was
    read, None for a tombstone."""

    topic: str
    kind: int
    key: str
    value: str
    version: int
    held: Callable[[], Mapping[K, V | None]]
    place: Callable[[K], str]
    key_fields: Callable[[K], Fields]
    value_fields: Callable[[V, int], Fields]
    key_of: Callable[[Fields], K]
    value_of: Callable[[Fields], V]
    put: Callable[[K, V | None, int], None]
    done: Callable[[], None] = lambda: None
    _written: dict[K, V] = field(default_factory=dict)

    def write(self, state: BrokerCore) -> None:
        written = self._written
        now = {
            key: value
            for key, held in self.held().items()
            if (value := written.get(key) if held is None else held) is not None
        }
        changed = [key for key, value in now.items() if self._written.get(key) != value]
        changed += [key for key in self._written if key not in now]
        if not changed:
            return
        state.internal(self.topic)
        topic = state.cluster.topics.get(self.topic)
        if topic is None:
            return
        moment = state.clock.now() // MS
        library = builtin_library()
        for key in changed:
            partition = topic.partitions[coordinated(self.place(key), len(topic.partitions))]
            named = self.kind.to_bytes(2) + library.codec(self.key, 0).encode(self.key_fields(key))
            value = now.get(key)
            data = None
            if value is not None:
                codec = library.codec(self.value, self.version)
                data = self.version.to_bytes(2) + codec.encode(self.value_fields(value, moment))
            partition.log.append(build([(named, data)], timestamp=moment), partition.epoch, moment)
        self._written = now

    def take(self, record: Record) -> None:
        """A record that was written. Raises KwireError."""
        library, named = builtin_library(), record.key or b""
        key = self.key_of(library.codec(self.key, 0).decode_at(named, KIND)[0])
        if record.value is None:
            self._written.pop(key, None)
            self.put(key, None, 0)
            return
        codec = library.codec(self.value, int.from_bytes(record.value[:KIND]))
        value = self._written[key] = self.value_of(codec.decode_at(record.value, KIND)[0])
        self.put(key, value, (record.timestamp or 0) * MS)


def restore(state: BrokerCore, tables: Sequence[StoredTable[Any, Any]]) -> None:
    """Reads what was written, each topic once; then tables are done in their order. Raises KwireError with the place of
    what cannot be read."""
    for name in dict.fromkeys(table.topic for table in tables):
        topic = state.cluster.topics.get(name)
        kinds = {table.kind: table for table in tables if table.topic == name}
        for partition in topic.partitions if topic is not None else ():
            for entry in partition.log.entries:
                for record in read_records(entry.data)[0].records:
                    table = kinds.get(int.from_bytes((record.key or b"")[:KIND]))
                    try:
                        if table is not None:
                            table.take(record)
                    except KwireError as error:
                        raise KwireError(f"{name}-{partition.index}, offset {record.offset}: {error}") from None
    for table in tables:
        table.done()


OffsetKey = tuple[str, str, int]  # group, topic, partition
OffsetValue = tuple[int, int, str]  # offset, leader epoch, metadata


def offsets_table(groups: Coordinator, now: Callable[[], int]) -> StoredTable[OffsetKey, OffsetValue]:
    committed = groups.offsets.committed

    def put(key: OffsetKey, value: OffsetValue | None, time: int) -> None:
        group, place = key[0], key[1:]
        if value is None:
            committed.get(group, {}).pop(place, None)
            if not committed.get(group):
                committed.pop(group, None)  # a group that was deleted is not there again
        else:
            committed.setdefault(group, {})[place] = CommittedOffset(*value, time, "", UUID(int=0))

    def done() -> None:
        for group in committed:
            groups.revive(group, now())

    return StoredTable(
        "__consumer_offsets", 1, "OffsetCommitKey", "OffsetCommitValue", 3,
        held=lambda: {
            (group, topic, part): (each.offset, each.leader_epoch, each.metadata)
            for group, places in committed.items()
            for (topic, part), each in places.items()
        },
        place=lambda key: key[0],
        key_fields=lambda key: {"Group": key[0], "Topic": key[1], "Partition": key[2]},
        value_fields=lambda value, moment: {
            "Offset": value[0], "LeaderEpoch": value[1], "Metadata": value[2], "CommitTimestamp": moment,
        },
        key_of=lambda body: (body["Group"], body["Topic"], body["Partition"]),
        value_of=lambda body: (body["Offset"], body.get("LeaderEpoch", -1), body["Metadata"]),
        put=put, done=done,
    )  # fmt: skip


def transactions_table(coordinator: TransactionCoordinator, now: Callable[[], int]) -> StoredTable[str, Fields]:
    found: dict[str, Fields] = {}

    def put(key: str, value: Fields | None, _: int) -> None:
        if value is None:
            found.pop(key, None)
        else:
            found[key] = value

    def done() -> None:
        for name, fields in found.items():
            coordinator.revive(name, fields, now())
        found.clear()

    return StoredTable(
        "__transaction_state", 0, "TransactionLogKey", "TransactionLogValue", 1,
        held=lambda: {name: transaction_stored.stored(txn) for name, txn in coordinator.transactions.items()},
        place=str,
        key_fields=lambda key: {"TransactionalId": key},
        value_fields=lambda value, _: value,
        key_of=lambda body: body["TransactionalId"],
        value_of=lambda body: body,
        put=put, done=done,
    )  # fmt: skip


def group_tables(
    groups: Coordinator, kind: StoredKind, now: Callable[[], int]
) -> tuple[StoredTable[RecordKey, Fields], ...]:
    """One for each of its records; the groups come back with the last."""
    found: dict[str, dict[str, dict[RecordKey, Fields]]] = {}  # by group and record
    numbers = kind.numbers

    def done() -> None:
        for group, rows in found.items():
            if rows["Metadata"]:
                groups.revive_stored(kind, group, rows, now())
        found.clear()

    def table(record: str) -> StoredTable[RecordKey, Fields]:
        message = f"{kind.prefix}{record}"
        names = [field.name for field in builtin_library().message(f"{message}Key").fields]

        def put(key: RecordKey, value: Fields | None, _: int) -> None:
            rows = found.setdefault(key[0], {each: {} for each in numbers})[record]
            if value is None:
                rows.pop(key, None)
            else:
                rows[key] = value

        def held() -> dict[RecordKey, Fields | None]:
            known = (each for each in groups.groups.values() if type(each) is kind.group)
            return {key: fields for group in known for key, fields in kind.stored(group, record).items()}

        return StoredTable(
            "__consumer_offsets", numbers[record], f"{message}Key", f"{message}Value", kind.version,
            held=held,
            place=lambda key: key[0],
            key_fields=lambda key: dict(zip(names, key, strict=True)),
            value_fields=lambda value, _: value,
            key_of=lambda body: tuple(body.values()),
            value_of=lambda body: body,
            put=put, done=done if record == list(numbers)[-1] else lambda: None,
        )  # fmt: skip

    return tuple(map(table, numbers))


ShareValue = tuple[int, int, int, int, tuple[StateBatch, ...]]  # epoch, leader epoch, start, complete, batches


def share_table(groups: Coordinator) -> StoredTable[SharePartitionKey, ShareValue]:
    def put(key: SharePartitionKey, value: ShareValue | None, _: int) -> None:
        if value is None:
            groups.share_states.known.pop(key, None)
            return
        epoch, leader_epoch, start, complete, batches = value
        groups.share_states.known[key] = Stored(epoch, start, leader_epoch, complete, list(batches))

    def fields(value: ShareValue, moment: int) -> Fields:
        epoch, leader_epoch, start, complete, batches = value
        rows = [
            {"FirstOffset": each.first, "LastOffset": each.last, "DeliveryState": each.state.value,
             "DeliveryCount": each.deliveries} for each in batches
        ]  # fmt: skip
        times = {"CreateTimestamp": moment, "WriteTimestamp": moment}
        tagged = {"DeliveryCompleteCount": complete} if complete >= 0 else {}
        counts = {"SnapshotEpoch": 0, "StateEpoch": epoch, "LeaderEpoch": leader_epoch, "StartOffset": start}
        return {**counts, **tagged, **times, "StateBatches": rows}

    def value_of(body: Fields) -> ShareValue:
        batches = tuple(
            StateBatch(row["FirstOffset"], row["LastOffset"], RecordState(row["DeliveryState"]), row["DeliveryCount"])
            for row in body["StateBatches"]
        )
        complete = body.get("DeliveryCompleteCount", -1)
        return body["StateEpoch"], body["LeaderEpoch"], body["StartOffset"], complete, batches

    return StoredTable(
        "__share_group_state", 0, "ShareSnapshotKey", "ShareSnapshotValue", 0,
        held=lambda: {
            place: (each.epoch, each.leader_epoch, each.start, each.complete, tuple(each.batches))
            for place, each in groups.share_states.known.items()
        },
        place=lambda key: f"{key.group}:{to_text(key.topic)}:{key.partition}",
        key_fields=lambda key: {"GroupId": key.group, "TopicId": key.topic, "Partition": key.partition},
        value_fields=fields,
        key_of=lambda body: SharePartitionKey(body["GroupId"], body["TopicId"], body["Partition"]),
        value_of=value_of, put=put,
    )  # fmt: skip
