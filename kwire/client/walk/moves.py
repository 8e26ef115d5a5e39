"""When the coordinator of a group is elsewhere by now, or not ready yet: what a consumer does about it, told.

Kafka's AbstractCoordinator marks the coordinator unknown at NOT_COORDINATOR and COORDINATOR_NOT_AVAILABLE, asks
FindCoordinator again and repeats the request; at COORDINATOR_LOAD_IN_PROGRESS it repeats it after retry.backoff.ms. The
group's state moves along, so that a member stays one; a coordinator that answers UNKNOWN_MEMBER_ID lost it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import TypeVar

from kwire.client.failure import Refusal
from kwire.client.topology import PASSING, GroupPlace
from kwire.client.walk.step import NOTE, OK, Step
from kwire.client.walk.step_recorder import Ended, Teller
from kwire.errors import KwireError
from kwire.schema import codes
from kwire.schema.errorcodes import errors

PAUSES = (0.25, 0.5, 1.0, 2.0)  # seconds before the same broker is asked again
T = TypeVar("T")


def none(_: object) -> int:
    """For what raises its error code."""
    return 0


class Moves:
    """moved: the coordinator was looked for again since the flag was last put out."""

    def __init__(self, place: GroupPlace, teller: Teller, sleep: Callable[[float], None]) -> None:
        self._place, self._teller, self._sleep = place, teller, sleep
        self.moved = False

    def ask(
        self, number: int, what: str, act: Callable[[], T], code_of: Callable[[T], int] = none
    ) -> Generator[Step, None, T]:
        """What act gives, which is called again while the coordinator is elsewhere or not ready. number: the step that
        it is part of; what: it, in words. Raises what act raises, in the end a Refusal of that kind too."""
        for pause in PAUSES:
            self._teller.begin()
            try:
                got = act()
                code = code_of(got)
                if code not in PASSING:
                    return got
            except Refusal as refusal:
                if refusal.code not in PASSING:
                    raise
                code = refusal.code
            yield from self.seek(number, what, code, pause)
        self._teller.begin()
        return act()

    def seek(self, number: int, what: str, code: int, pause: float = PAUSES[0]) -> Iterator[Step]:
        """Tells of the code, and looks for the coordinator again unless it is only loading."""
        loading = code == codes.COORDINATOR_LOAD_IN_PROGRESS
        advice = "So it waits and asks again." if loading else "So it asks for the coordinator again, as clients do."
        yield self._teller.tell(number, NOTE, f"{what}: {errors.label(code)}", error=code, advice=advice)
        before = self._place.coordinator
        if not loading:
            yield self._found()
        if self._place.coordinator == before:
            self._sleep(pause)

    def _found(self) -> Step:
        self._teller.begin()
        before = self._place.coordinator
        try:
            found = self._place.search()
            self._place.cluster.connect(found.address)
        except KwireError as error:
            raise Ended(self._teller.fail(2, error)) from error
        self.moved = True
        text = f"broker {found.node} at {found.address}, {'the same as before' if found.address == before else 'anew'}"
        return self._teller.tell(2, OK, text, node=found.node, address=str(found.address))
