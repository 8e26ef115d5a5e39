"""What clients make the broker remember beside records: groups, offsets, configurations. It has a limit.

Adding up what every request leaves behind would need a hand in every handler. Instead each request that may leave
something is charged with its own size, and only when the charges reach the limit is counted what there really is.
"""

from __future__ import annotations

from collections.abc import Callable
from sys import getsizeof
from typing import Any

from kwire.broker.context import MS

ENTRY = 100  # bytes of a dict's or a list's entry, numbers and keys that others share included
PARTS = 16  # one request may leave so small a part of all behind
PAUSE = 5_000 * MS  # between two countings
LEAVES = frozenset(  # requests after which more may be there than before
    {
        "JoinGroup", "SyncGroup", "OffsetCommit", "TxnOffsetCommit", "ConsumerGroupHeartbeat", "ShareGroupHeartbeat",
        "StreamsGroupHeartbeat", "AlterConfigs", "IncrementalAlterConfigs", "CreateTopics", "InitProducerId",
        "AddPartitionsToTxn", "AddOffsetsToTxn", "CreateAcls", "AlterClientQuotas", "AlterUserScramCredentials",
        "CreateDelegationToken", "AlterShareGroupOffsets",
    }
)  # fmt: skip


def weigh(value: Any, most: int = 1 << 62) -> int:
    """Bytes of memory that a value and all within it take, roughly; no further than most."""
    total, waiting, seen = 0, [value], set()
    while waiting and total < most:
        one = waiting.pop()
        kind = type(one)
        if kind in (int, bool, float, type(None)):
            continue
        if kind in (str, bytes):
            total += getsizeof(one)
            continue
        if id(one) in seen or callable(one):
            continue
        seen.add(id(one))
        if isinstance(one, dict):
            total += ENTRY + ENTRY * len(one)
            waiting.extend(one.keys())
            waiting.extend(one.values())
        elif isinstance(one, list | tuple | set | frozenset):
            total += ENTRY + ENTRY // 2 * len(one)
            waiting.extend(one)
        else:
            total += ENTRY
            for name in getattr(kind, "__slots__", ()):
                waiting.append(getattr(one, name, None))
            waiting.extend(getattr(one, "__dict__", {}).values())
    return total


class Memory:
    """limit: bytes. all: what is remembered, to be weighed. now: ns."""

    def __init__(self, limit: int, there: Callable[[], Any], now: Callable[[], int]) -> None:
        self.limit, self.charged = limit, 0
        self._there, self._now = there, now
        self._weighed = 0  # when
        self.counts = 0  # how often

    def allows(self, api: str, client_id: str | None, body: Any) -> bool:
        """Whether there is room for what a request leaves behind."""
        if api not in LEAVES:
            return True
        most = self.limit // PARTS
        size = weigh(body, most + 1) + len(client_id or "")
        if size > most:
            return False
        if self.charged + size > self.limit:
            now = self._now()
            if now - self._weighed < PAUSE:
                return False
            self._weighed = now
            self.counts += 1
            self.charged = weigh(self._there())
        if self.charged + size > self.limit:
            return False
        self.charged += size
        return True
