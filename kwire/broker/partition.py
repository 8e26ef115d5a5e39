"""A partition: its replicas, which of them are in sync, who leads since which epoch, and its log.

All data lies in one log. A replica that falls behind is an offset: how far it had come. When such a one is made leader,
the log is cut there, as Kafka loses what an unclean leader never had; else it has caught up when it is in sync again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kwire.broker.log import Log

OFFLINE = -1


class Partition:
    """The log is made when it is first asked for. leader: OFFLINE when nobody leads. behind: the replicas that are not
    in sync, and the offset up to which each has the log."""

    __slots__ = ("_log", "_new_log", "behind", "epoch", "index", "leader", "replicas")

    def __init__(self, index: int, replicas: list[int], new_log: Callable[[], Log]) -> None:
        self.index, self.replicas, self._new_log = index, replicas, new_log
        self.leader, self.epoch = replicas[0], 0
        self.behind: dict[int, int] = {}
        self._log: Log | None = None

    @property
    def log(self) -> Log:
        if self._log is None:
            self._log = self._new_log()
        return self._log

    @property
    def used(self) -> Log | None:
        """The log, if it was ever asked for."""
        return self._log

    @property
    def end(self) -> int:
        return self._log.end if self._log is not None else 0

    @property
    def in_sync(self) -> list[int]:
        if not self.behind:
            return self.replicas
        return [node for node in self.replicas if node not in self.behind]

    def until(self, node: int) -> int:
        """The offset up to which a replica can be read."""
        return min(self.behind.get(node, self.end), self.end)

    # ------------------------------------------------------------ replicas

    def place(self, replicas: list[int]) -> None:
        """Other replicas; the new ones have caught up at once."""
        self.replicas = replicas
        self.behind = {node: offset for node, offset in self.behind.items() if node in replicas}

    def join(self, nodes: Iterable[int]) -> None:
        """Replicas that have nothing yet."""
        for node in nodes:
            self.behind[node] = 0

    def fall_behind(self, nodes: Iterable[int]) -> None:
        for node in nodes:
            self.behind.setdefault(node, self.end)

    def catch_up(self, nodes: Iterable[int]) -> None:
        for node in nodes:
            self.behind.pop(node, None)

    def lead(self, node: int) -> None:
        """A node leads from now on, or OFFLINE; a new epoch begins, and fetches that wait are told. What the node never
        had is lost."""
        if node != OFFLINE:
            if node not in self.replicas:
                self.replicas = [*self.replicas, node]
            if node in self.behind:
                if self._log is not None:
                    self._log.truncate(self.behind[node])
                self.behind = {each: self.end for each in self.replicas if each != node}
        self.leader = node
        self.epoch += 1
        if self._log is not None:
            self._log.wake()
