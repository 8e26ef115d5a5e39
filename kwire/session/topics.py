"""Topic names by id, and the partitions of fetch sessions: what a message refers to but does not hold.

From v13 on Fetch requests name topics by id (KIP-516); responses with both id and name give the name. An incremental
fetch lists only changes to its session, which the broker keeps under an id (KIP-227).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from kwire.wire import uuids

MOST_SESSIONS = 10_000
MOST_ASKED = 100_000  # most ids that are looked up elsewhere
NONE, FINAL = 0, -1  # session id of no session; epoch of a fetch outside of any
Partitions = dict[str, list[int]]


@dataclass(slots=True)
class _Session:
    """The partitions of a fetch session by topic; shown: the same, sorted, cached."""

    partitions: dict[str, set[int]]
    shown: Partitions | None = None

    def show(self) -> Partitions:
        if self.shown is None:
            self.shown = {name: sorted(parts) for name, parts in self.partitions.items()}
        return self.shown


Elsewhere = Callable[["Topics", UUID], None] | None


class Topics:
    """name(id) gives a topic's name. elsewhere: called once for each unknown id; may add to names."""

    def __init__(self, elsewhere: Elsewhere = None) -> None:
        self.names: dict[UUID, str] = {}
        self.elsewhere = elsewhere
        self._asked: set[UUID] = set()  # ids given to elsewhere
        self._sessions: dict[tuple[object, int], _Session] = {}

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"elsewhere": None}

    def name(self, ident: UUID) -> str:
        """The topic's name, or the id in Kafka's base64 form."""
        known = self.names.get(ident)
        if known is None and self.elsewhere is not None and ident.int > 1 and ident not in self._asked:
            if len(self._asked) < MOST_ASKED:
                self._asked.add(ident)
                self.elsewhere(self, ident)
            known = self.names.get(ident)
        if known is None:
            return "__cluster_metadata" if ident.int == 1 else uuids.to_text(ident)
        return known

    def fetched(
        self, broker: str, body: dict[str, Any], listed: Partitions, answer: Callable[[], dict[str, Any] | None]
    ) -> Partitions | None:
        """Updates the session of a Fetch request; returns all partitions it fetches, None outside of a session.

        answer: returns the response's body; listed: the partitions in the request itself, by topic.
        """
        session, epoch = body.get("SessionId"), body.get("SessionEpoch")
        if session is None or epoch is None or epoch == FINAL:
            return None
        if session == NONE:
            opened = (answer() or {}).get("SessionId", NONE)
            if opened:
                if len(self._sessions) >= MOST_SESSIONS:
                    self._sessions.clear()
                self._sessions[broker, opened] = _Session({name: set(parts) for name, parts in listed.items()})
            return None
        known = self._sessions.get((broker, session))
        if known is None:
            return None
        parts_of = known.partitions
        if listed or body.get("ForgottenTopicsData"):
            known.shown = None
        for name, parts in listed.items():
            parts_of.setdefault(name, set()).update(parts)
        for forgotten in body.get("ForgottenTopicsData") or ():
            name = forgotten["Topic"] if "Topic" in forgotten else self.name(forgotten["TopicId"])
            left = parts_of.get(name, set()) - set(forgotten["Partitions"])
            if left:
                parts_of[name] = left
            else:
                parts_of.pop(name, None)
        return known.show()

    def held(self, broker: object, session: int) -> Partitions | None:
        """The partitions of a fetch session, the same object until they change; None if it is unknown."""
        known = self._sessions.get((broker, session))
        return None if known is None else known.show()


def pairs(value: object) -> Iterator[tuple[str, UUID]]:
    """(name, id) of every struct of a body that holds both."""
    if isinstance(value, list):
        for element in value:
            yield from pairs(element)
    elif isinstance(value, dict):
        ident = value.get("TopicId")
        if isinstance(ident, UUID) and ident.int:
            name = value.get("Name") or value.get("TopicName") or value.get("Topic")
            if isinstance(name, str):
                yield name, ident
        for inner in value.values():
            if isinstance(inner, list | dict):
                yield from pairs(inner)
