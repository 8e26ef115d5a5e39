"""Topic names by id, and what fetch sessions hold: what one message leaves to others to say.

From Fetch v13 on requests name topics by their ids (KIP-516); any response in which a struct has both tells the name.
An incremental fetch lists only what changed; the rest was said earlier in its session, which a broker keeps under an id
of its own (KIP-227).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from kwire.wire import uuids

MOST_SESSIONS = 10_000
MOST_ASKED = 100_000  # ids that are looked for elsewhere
NONE, FINAL = 0, -1  # session id of no session; epoch of a fetch outside of any
Partitions = dict[str, list[int]]


@dataclass(slots=True)
class _Session:
    """The partitions of a fetch session by topic; shown: the same sorted, when it was asked for."""

    partitions: dict[str, set[int]]
    shown: Partitions | None = None

    def show(self) -> Partitions:
        if self.shown is None:
            self.shown = {name: sorted(parts) for name, parts in self.partitions.items()}
        return self.shown


Elsewhere = Callable[["Topics", UUID], None] | None


class Topics:
    """name(id) gives a topic's name. elsewhere: asked once for each id that is not known, to learn what lies ahead."""

    def __init__(self, elsewhere: Elsewhere = None) -> None:
        self.names: dict[UUID, str] = {}
        self.elsewhere = elsewhere
        self._asked: set[UUID] = set()  # of elsewhere
        self._sessions: dict[tuple[object, int], _Session] = {}

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"elsewhere": None}

    def name(self, ident: UUID) -> str:
        """The topic's name, or the id as Kafka prints it."""
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
        """Keeps the fetch session of a Fetch request; all the partitions that it asks for, None outside of a session.

        answer: gives the response's body; listed: the partitions that the request itself names, by topic."""
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
        """What a fetch session holds, the same object until it changes; None of one that is not known."""
        known = self._sessions.get((broker, session))
        return None if known is None else known.show()


def pairs(value: object) -> Iterator[tuple[str, UUID]]:
    """The names and ids of topics that stand side by side in a body."""
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
