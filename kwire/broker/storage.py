"""What a broker keeps in a folder, so that it is there after a restart (--data).

The folder is a Kafka log directory: a folder for each partition (segments.py), log-start-offset-checkpoint,
meta.properties; what coordinators hold is in records of their topics (stored_tables.py). What Kafka has in its
metadata log, topics, configurations, leaders and rights (stored_rights.py), is in kwire.json. Records are written at
once, all else within a second. After a restart groups have their members, who have a session to be heard of, and open
transactions are aborted.
"""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from kwire.broker.context import MS, Timer
from kwire.broker.core import BrokerCore
from kwire.broker.log import Log
from kwire.broker.partition import Partition
from kwire.broker.segments import DELETED_LOG, SegmentFiles, SegmentRules
from kwire.broker.stored_rights import dump_rights, restore_rights
from kwire.broker.stored_tables import (
    StoredTable,
    group_tables,
    offsets_table,
    restore,
    share_table,
    transactions_table,
)
from kwire.coordinator.coordinator import Coordinator
from kwire.coordinator.stored import KINDS
from kwire.coordinator.transactions.coordinator import TransactionCoordinator
from kwire.errors import KwireError
from kwire.wire.uuids import from_text, to_text

STATE, STARTS, META, LOCK = "kwire.json", "log-start-offset-checkpoint", "meta.properties", ".lock"
OFTEN = 1_000 * MS
AHEAD = 1_000  # producer ids that may have been given out since the state was written


class TopicFolder:
    """What the files of a topic's partitions need to know."""

    def __init__(self, state: BrokerCore, topic: str) -> None:
        self._state, self._topic = state, topic
        self._found: tuple[int, SegmentRules] | None = None  # with the number of changes that it is of

    def rules(self) -> SegmentRules:
        configs = self._state.cluster.configs
        if self._found is None or self._found[0] != configs.changes:
            rules = SegmentRules.of(partial(configs.topic, self._topic), configs.roll_ms(self._topic))
            self._found = configs.changes, rules
        return self._found[1]

    def now_ms(self) -> int:
        return self._state.clock.now() // MS

    def later(self, delay_ms: int, act: Callable[[], None]) -> None:
        if delay_ms:
            self._state.clock.after(delay_ms * MS, act)
        else:
            act()


class Storage:
    """Brings the state back as it was when the folder was last written. Raises KwireError for a folder that another
    broker uses, or whose state cannot be read."""

    def __init__(self, folder: Path, state: BrokerCore) -> None:
        self.folder, self._state = folder, state
        self._tables: tuple[StoredTable[Any, Any], ...] = ()
        self._text = ""
        self._timer: Timer | None = None
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = (folder / LOCK).open("a")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise KwireError(f"{folder} is in use by another broker") from None
        for gone in folder.glob(f"*.*{DELETED_LOG}"):
            shutil.rmtree(gone, ignore_errors=True)
        state.cluster.attach = self.attach
        path = folder / STATE
        if path.exists():
            try:
                self._restore(json.loads(path.read_text("utf-8")))
            except (ValueError, KeyError, TypeError) as error:
                raise KwireError(f"{path}: cannot be read: {error}") from None
        self._meta()

    # ------------------------------------------------------------ logs

    def attach(self, topic: str, index: int, log: Log) -> Log:
        """The partition's files from now on, and what is in them."""
        files = SegmentFiles(self.folder / f"{topic}-{index}", TopicFolder(self._state, topic))
        for entry in files.read():
            log.restore(entry)
        log.files = files
        return log

    # ------------------------------------------------------------ beginning and end

    def restore_coordinators(self, groups: Coordinator, transactions: TransactionCoordinator) -> None:
        """What the coordinators held comes back, and is kept from now on."""
        now = self._state.clock.now
        known = (table for kind in KINDS for table in group_tables(groups, kind, now))
        # share groups look at their state; what has offsets and no group is taken for a classic one
        ids = transactions_table(transactions, now)
        self._tables = (share_table(groups), *known, offsets_table(groups, now), ids)
        restore(self._state, self._tables)
        self._tick()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if not self._lock.closed:
            self._write()
            for files in self._files():
                files.close()
            self._lock.close()

    def _files(self) -> Iterator[SegmentFiles]:
        for topic in self._state.cluster.topics.values():
            for partition in topic.partitions:
                if partition.used is not None and partition.used.files is not None:
                    yield partition.used.files

    def _tick(self) -> None:
        self._write()
        now = self._state.clock.now() // MS
        for files in self._files():
            files.flush_late(now)
        self._timer = self._state.clock.after(OFTEN, self._tick)

    def _write(self) -> None:
        for table in self._tables:
            table.write(self._state)
        text = json.dumps(self._dump(), indent=1)
        if text != self._text:
            self._text = text
            _replace(self.folder / STATE, text + "\n")
            rows = [
                f"{topic.name} {partition.index} {partition.used.start}\n"
                for topic in self._state.cluster.topics.values()
                for partition in topic.partitions
                if partition.used is not None and partition.used.start
            ]
            _replace(self.folder / STARTS, f"0\n{len(rows)}\n{''.join(rows)}")

    def _meta(self) -> None:
        node = next(iter(self._state.cluster.nodes))
        text = f"version=1\ncluster.id={self._state.cluster.id}\nnode.id={node}\n"
        (self.folder / META).write_text(text, "utf-8")

    # ------------------------------------------------------------ what Kafka has in its metadata

    def _dump(self) -> dict[str, Any]:
        cluster = self._state.cluster
        return {
            "cluster": cluster.id,
            "producers": cluster.producers_given,
            "features": cluster.levels,
            "configs": [[kind, name, values] for (kind, name), values in cluster.configs.given.items()],
            "topics": [
                {
                    "name": topic.name,
                    "id": to_text(topic.id),
                    "partitions": [
                        [
                            self._state.reassignments.settled(p),
                            p.leader,
                            p.epoch,
                            p.used.start if p.used is not None else 0,
                        ]
                        for p in topic.partitions
                    ],
                }
                for topic in cluster.topics.values()
            ],
            **dump_rights(self._state),
        }

    def _restore(self, found: dict[str, Any]) -> None:
        cluster = self._state.cluster
        cluster.id = found["cluster"]
        cluster.producers_given = found["producers"] + AHEAD
        cluster.levels |= found["features"]
        for topic in found["topics"]:
            assignments = [self._there(row[0]) for row in topic["partitions"]]
            made = cluster.create(topic["name"], -1, -1, assignments, topic_id=from_text(topic["id"]))
            for partition, (_, leader, epoch, start) in zip(made.partitions, topic["partitions"], strict=True):
                partition.epoch = epoch + 1  # as after an election
                if leader in partition.replicas:
                    partition.leader = leader
                if (self.folder / f"{made.name}-{partition.index}").exists():
                    self._reopen(partition, start)
        for kind, name, values in found["configs"]:
            cluster.configs.given[kind, name] = values
        cluster.configs.settle(cluster.configs.static)
        restore_rights(self._state, found)

    def _reopen(self, partition: Partition, start: int) -> None:
        log = partition.log
        log.delete_before(start)
        now = self._state.clock.now() // MS
        for producer in list(log.producers.open):
            log.mark(producer, log.producers.known[producer].epoch, False, 0, 0, partition.epoch, now)

    def _there(self, replicas: list[int]) -> list[int]:
        """The nodes that there are, in place of those that there were."""
        nodes = self._state.cluster.nodes
        return [node for node in replicas if node in nodes] or [next(iter(nodes))]


def _replace(path: Path, text: str) -> None:
    part = path.with_name(f".{path.name}.part")
    part.touch(0o600)
    part.write_text(text, "utf-8")
    part.replace(path)
