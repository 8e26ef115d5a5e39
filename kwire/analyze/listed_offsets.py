"""What ListOffsets told clients of a log's start and end: the last answers for each client and partition."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from kwire.analyze.callers import topic_name
from kwire.analyze.findings import Reference

if TYPE_CHECKING:
    from kwire.session.exchange import Exchange, Message

LATEST, EARLIEST = -1, -2  # timestamps that ask for the log's end and start (ListOffsetsRequest)
MOST = 10_000  # clients and partitions
KEPT = 16  # answers for each of them
SOON = 60_000_000_000  # ns after a moment in which an answer is still about it


class ListedOffsets:
    """take() keeps an answer; after() gives what was told first after a moment."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, str, str, int, int], deque[tuple[int, Reference]]] = {}

    def take(self, exchange: Exchange, who: tuple[str, str], request: Message, response: Message) -> None:
        """who: the client's id and host."""
        wanted: dict[tuple[str, int], int] = {}
        for topic in (request.body() or {}).get("Topics") or ():
            for part in topic["Partitions"]:
                wanted[topic_name(exchange, topic), part["PartitionIndex"]] = part["Timestamp"]
        for topic in (response.body() or {}).get("Topics") or ():
            for part in topic["Partitions"]:
                place = topic_name(exchange, topic), part["PartitionIndex"]
                timestamp = wanted.get(place)
                if timestamp not in (LATEST, EARLIEST) or part["ErrorCode"] or part.get("Offset", -1) < 0:
                    continue
                key = *who, *place, timestamp
                if key in self._told or len(self._told) < MOST:
                    self._told.setdefault(key, deque(maxlen=KEPT)).append((part["Offset"], Reference.of(response)))

    def after(
        self, client_id: str, host: str, topic: str, partition: int, time: int
    ) -> dict[int, tuple[int, Reference]]:
        """Offset and answer, by timestamp, of what was told first from that time on, ns."""
        found = {}
        for timestamp in (EARLIEST, LATEST):
            told = self._told.get((client_id, host, topic, partition, timestamp), ())
            first = next((one for one in told if 0 <= one[1].time - time < SOON), None)
            if first is not None:
                found[timestamp] = first
        return found
