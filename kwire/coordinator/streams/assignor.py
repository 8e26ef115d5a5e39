"""The sticky assignor of streams groups: active tasks to who had them, as long as that is not more than its share, then
to the process with the least load; standbys to other processes. Rules: StickyTaskAssignor and ProcessState.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from kwire.coordinator.hashorder import java_hash, table_order
from kwire.coordinator.streams.tasks import Task, Tasks

NAME: Final = "sticky"


class Worker(NamedTuple):
    """A member as the assignor sees it. had: its last target."""

    id: str
    process: str
    had: Tasks


class _Process:
    """A process and how many tasks each of its members has."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.tasks: set[Task] = set()
        self.total = 0
        self._queue: _Queue | None = None

    @property
    def load(self) -> float:
        return self.total / len(self.counts)

    def add(self, member: str, task: Task, keep: bool = False) -> int:
        self.total += 1
        self.tasks.add(task)
        self.counts[member] += 1
        if not keep:
            self._queue = None
        return self.counts[member]

    def least(self) -> str:
        """The member with the fewest tasks, in the order of Java's PriorityQueue."""
        if len(self.counts) == 1:
            return next(iter(self.counts))
        if self._queue is None:
            self._queue = _Queue()
            for member in table_order(self.counts, java_hash):
                self._queue.add(self.counts[member], member)
        _, member = self._queue.poll()
        self._queue.add(self.counts[member] + 1, member)
        return member


class _Queue:
    """java.util.PriorityQueue: of equals it gives whichever its heap has on top."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, str]] = []

    def __bool__(self) -> bool:
        return bool(self._heap)

    def add(self, rank: float, name: str) -> None:
        heap, at = self._heap, len(self._heap)
        heap.append((rank, name))
        while at and heap[(at - 1) >> 1][0] > rank:
            heap[at] = heap[(at - 1) >> 1]
            at = (at - 1) >> 1
        heap[at] = (rank, name)

    def poll(self) -> tuple[float, str]:
        heap = self._heap
        first, last = heap[0], heap.pop()
        if heap:
            at, half = 0, len(heap) >> 1
            while at < half:
                child = 2 * at + 1
                if child + 1 < len(heap) and heap[child][0] > heap[child + 1][0]:
                    child += 1
                if last[0] <= heap[child][0]:
                    break
                heap[at], at = heap[child], child
            heap[at] = last
        return first


def assign(workers: Sequence[Worker], tasks: Mapping[str, int], stateful: set[str], standbys: int) -> dict[str, Tasks]:
    """The target of every member. tasks: how many each subtopology has; stateful: those with changelogs."""
    return _Assignment(workers, tasks, stateful, standbys).made() if workers else {}


class _Share:
    """How many tasks a member may have; it falls when members are full (computeTasksPerMember)."""

    def __init__(self, total: int, members: int) -> None:
        self.total, self.members = total, members
        self.each = -(-total // members)

    def took(self, count: int) -> None:
        if count == self.each:
            self.members -= 1
            self.total -= count
            self.each = -(-self.total // self.members) if self.members else 0


class _Assignment:
    def __init__(self, workers: Sequence[Worker], tasks: Mapping[str, int], stateful: set[str], standbys: int) -> None:
        by_id = {worker.id: worker for worker in workers}
        self.workers = [by_id[name] for name in table_order(by_id, java_hash)]
        self.processes: dict[str, _Process] = {}
        self.active: dict[str, set[Task]] = {}
        self.standby: dict[str, set[Task]] = {}
        self.had_active: dict[Task, Worker] = {}
        self.had_standby: dict[Task, list[Worker]] = {}
        self.every = [(name, index) for name in sorted(tasks) for index in range(tasks[name])]
        self.kept = [task for task in self.every if task[0] in stateful] if standbys else []
        self.standbys = standbys
        self.quota = _Share(len(self.every), len(workers))
        self.quota_all = _Share(len(self.every) + len(self.kept) * standbys, len(workers))
        for worker in self.workers:
            self.processes.setdefault(worker.process, _Process()).counts[worker.id] = 0
            self.had_active |= dict.fromkeys(worker.had.active, worker)
            for task in worker.had.standby:
                self.had_standby.setdefault(task, []).append(worker)

    def made(self) -> dict[str, Tasks]:
        self._actives()
        self._standbys()
        return {
            worker.id: Tasks(frozenset(self.active.get(worker.id, ())), frozenset(self.standby.get(worker.id, ())))
            for worker in self.workers
        }

    def _give_active(self, process: _Process, member: str, task: Task, keep: bool = False) -> None:
        count = process.add(member, task, keep)
        self.active.setdefault(member, set()).add(task)
        self.quota.took(count)
        self.quota_all.took(count)

    def _actives(self) -> None:
        left = []
        for task in sorted(self.every, key=lambda each: (each[1], each[0])):
            worker = self.had_active.get(task)
            if worker is None or not self._gives(worker, task):
                left.append(task)
        again = [
            task for task in left if (worker := self._idlest(task, False)) is None or not self._gives(worker, task)
        ]
        queue = self._by_load()
        for task in sorted(again):
            _, name = queue.poll()
            process = self.processes[name]
            self._give_active(process, process.least(), task, keep=True)
            queue.add(process.load, name)

    def _gives(self, worker: Worker, task: Task) -> bool:
        process = self.processes[worker.process]
        if process.counts[worker.id] >= self.quota.each:
            return False
        self._give_active(process, worker.id, task)
        return True

    def _by_load(self) -> _Queue:
        queue = _Queue()
        for name in table_order(self.processes, java_hash, None):
            queue.add(self.processes[name].load, name)
        return queue

    def _idlest(self, task: Task, other: bool) -> Worker | None:
        """Who had the task as a standby, and has least to do. other: not in a process that has the task already."""
        found = self.had_standby.get(task)
        if not found:
            return None
        first = best = found[0]
        process = self.processes[best.process]
        load, own = process.load, process.counts[best.id]
        for worker in found[1:]:
            there = self.processes[worker.process]
            free = not other or task not in there.tasks
            if there.load < load and free and there.counts[worker.id] < own:
                load, own, best = there.load, there.counts[worker.id], worker
        return None if other and task in self.processes[first.process].tasks else best

    def _give_standby(self, process: _Process, member: str, task: Task, keep: bool = False) -> None:
        self.standby.setdefault(member, set()).add(task)
        self.quota_all.took(process.add(member, task, keep))

    def _standbys(self) -> None:
        rest: list[tuple[Task, int]] = []
        for task in sorted(self.kept, key=lambda each: (each[1], each[0]), reverse=True):
            for number in range(self.standbys):
                if not self._sticks(task):
                    rest.append((task, self.standbys - number))
                    break
        queue = self._by_load()
        for task, copies in sorted(rest, key=lambda each: each[0], reverse=True):
            for _ in range(copies):
                if not self._to_least(queue, task):
                    break

    def _sticks(self, task: Task) -> bool:
        """The standby goes to who had the task before, if it can."""
        for worker in (self.had_active.get(task), self._idlest(task, True)):
            if worker is None:
                continue
            process = self.processes[worker.process]
            full = process.counts[worker.id] >= self.quota_all.each
            if task not in process.tasks and not full:
                self._give_standby(process, worker.id, task)
                return True
        return False

    def _to_least(self, queue: _Queue, task: Task) -> bool:
        taken, found = [], False
        while queue and not found:
            _, name = queue.poll()
            taken.append(name)
            process = self.processes[name]
            if task not in process.tasks:
                self._give_standby(process, process.least(), task, keep=True)
                found = True
        for name in reversed(taken):
            queue.add(self.processes[name].load, name)
        return found
