"""A broker's nodes and partitions as tests take hold of them: every call is plain, and done in the broker's thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from kwire.broker.compaction import compact
from kwire.broker.context import MS
from kwire.broker.nodes import Node
from kwire.broker.partition import Partition
from kwire.broker.producers import Aborted
from kwire.errors import KwireError
from kwire.records import Record, read_records

if TYPE_CHECKING:
    from kwire.broker.server import BrokerServer
    from kwire.broker.thread import LoopThread

T = TypeVar("T")


class NodeHandle:
    """A node. Its port and the logs stay what they are while it is down."""

    def __init__(self, number: int, server: BrokerServer, thread: LoopThread) -> None:
        self.id, self._server, self._thread = number, server, thread

    def __repr__(self) -> str:
        return f"node {self.id} at {self.address}"

    @property
    def _node(self) -> Node:
        return self._server.state.topology.node(self.id)

    @property
    def address(self) -> str:
        """host:port of its first listener."""
        return str(self._node.at())

    def address_of(self, listener: str) -> str:
        """host:port of a listener. Raises KwireError."""
        found = self._node.endpoints.get(listener)
        if found is None:
            raise KwireError(f"no listener {listener}; there are {', '.join(self._node.endpoints)}")
        return str(found)

    @property
    def rack(self) -> str | None:
        return self._node.rack

    @property
    def alive(self) -> bool:
        return self._node.alive

    def stop(self) -> NodeHandle:
        """As after a controlled shutdown: its connections end, others lead in its place at once."""
        self._thread.call(lambda: self._server.stop_node(self.id))
        return self

    def kill(self, notice: float = 0.0) -> NodeHandle:
        """As after SIGKILL: its connections are reset. notice: seconds until the others lead in its place, as
        broker.session.timeout.ms."""
        self._thread.call(lambda: self._server.stop_node(self.id, abort=True, notice=notice))
        return self

    def start(self) -> NodeHandle:
        """It listens again, where it did before."""
        self._thread.run(lambda: self._server.start_node(self.id))
        return self


class PartitionHandle:
    """A partition: who leads it, who is in sync, and what stands in it."""

    def __init__(self, name: str, partition: Partition, server: BrokerServer, thread: LoopThread) -> None:
        self.name, self._partition = name, partition
        self._state, self._topology, self._thread = server.state, server.state.topology, thread

    def __repr__(self) -> str:
        how = "offline" if self.leader < 0 else f"led by node {self.leader}"
        return f"{self.name}, {how} since epoch {self.epoch}"

    @property
    def leader(self) -> int:
        """A node's id; -1: it is offline."""
        return self._partition.leader

    @property
    def epoch(self) -> int:
        return self._partition.epoch

    @property
    def replicas(self) -> list[int]:
        return list(self._partition.replicas)

    @property
    def in_sync(self) -> list[int]:
        """The replicas in sync. What is assigned stays so until other replicas are named, or nodes stop."""
        return list(self._partition.in_sync)

    @in_sync.setter
    def in_sync(self, nodes: list[int]) -> None:
        self._call(lambda: self._topology.set_in_sync(self._partition, list(nodes)))

    @property
    def start(self) -> int:
        """The first offset that is there."""
        return self._call(lambda: self._partition.log.start)

    @property
    def end(self) -> int:
        """The next offset to be given out."""
        return self._call(lambda: self._partition.log.end)

    def lead(self, node: int) -> None:
        """This node leads from now on. One that was not in sync cuts the log to what it had. Raises KwireError."""
        self._call(lambda: self._topology.lead(self._partition, node))

    def take_offline(self) -> None:
        """Nobody leads it until lead() or a node's start."""
        self._call(lambda: self._topology.take_offline(self._partition))

    def delete_before(self, offset: int) -> None:
        """Records below offset are gone."""
        self._call(lambda: self._partition.log.delete_before(offset))

    def compact(self) -> int:
        """Cleans all that may be, the active segment too; gives how many records went. Tombstones and markers go when
        the topic's delete.retention.ms is over."""
        state, topic = self._state, self.name.rpartition("-")[0]
        return self._call(
            lambda: compact(self._partition.log, state.compaction(topic), state.clock.now() // MS, force=True)
        )

    def records(self, *, committed: bool = False) -> list[Record]:
        """What stands in it, decoded, without markers; committed: only what read_committed shows."""

        def read() -> tuple[list[bytes], list[Aborted]]:
            log = self._partition.log
            until = log.stable if committed else log.end
            aborted = log.producers.aborted_between(log.start, until) if committed else []
            return log.read(log.start, 1 << 62, whole_first=True, until=until), aborted

        data, aborted = self._call(read)
        return [
            record
            for batch in read_records(b"".join(data))
            if not batch.is_control
            and not any(
                each.producer == batch.producer_id and each.first <= batch.base_offset <= each.last for each in aborted
            )
            for record in batch.records
        ]

    def _call(self, act: Callable[[], T]) -> T:
        return self._thread.call(act)
