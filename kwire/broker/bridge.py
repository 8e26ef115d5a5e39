"""What the bridges to both coordinators share: one alarm for what is due next, and faults that befall one name, a group
or a transactional id."""

from __future__ import annotations

from collections.abc import Callable

from kwire.broker.context import MS, Clock, Timer
from kwire.broker.core import BrokerCore


class Alarm:
    """Calls act at the moment that was set last."""

    def __init__(self, clock: Clock, act: Callable[[], None]) -> None:
        self._clock, self._act = clock, act
        self._timer: Timer | None = None
        self._due: int | None = None

    def set(self, due: int | None) -> None:
        """ns; None: not at all."""
        if due == self._due:
            return
        self.cancel()
        self._due = due
        if due is not None:
            self._timer = self._clock.after(max(due - self._clock.now(), 0) + MS // 10, self._ring)

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._due = None

    def _ring(self) -> None:
        self._timer = self._due = None
        self._act()


def move(state: BrokerCore, name: str, node: int | None = None) -> None:
    """The name's coordinator is this node from now on; None: all coordinators move to the next node."""
    if node is None:
        state.cluster.moved += 1
    else:
        state.cluster.coordinators[name] = node
    state.tell("moved", name, f"node {state.cluster.coordinator(name)} coordinates now")


def load(state: BrokerCore, loading: set[str], name: str, ns: int) -> None:
    """The name is being loaded for so long."""
    loading.add(name)
    state.clock.after(ns, lambda: loading.discard(name))
    state.tell("loading", name, f"is being loaded for {ns / 1e9:g} s")
