"""Steps in the making: the clock runs from begin(), and what was asked meanwhile goes with the step."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from kwire.client.cluster import ClusterClient
from kwire.client.failure import Refusal
from kwire.client.walk.step import ERROR, Detail, Step
from kwire.errors import Failure, KwireError
from kwire.schema.errorcodes import errors

HANGS = {
    1: "A real client tries the addresses again and again (reconnect.backoff.ms, up to reconnect.backoff.max.ms) and "
    "poll() gives nothing until one answers.",
    2: "A real client looks for the coordinator for ever: poll() gives nothing, and nothing is thrown.",
    3: "A real client asks for the coordinator again and joins anew, for ever.",
    4: "A real client joins anew.",
    5: "A real client takes the coordinator for dead after session.timeout.ms, looks for it again and rejoins.",
    6: "A real client repeats this until default.api.timeout.ms (60 s) is over; poll() gives nothing meanwhile.",
    7: "A real client repeats this for ever, with fresh metadata; poll() gives nothing meanwhile.",
}
UNRESOLVED = (
    "A Java client ends here, in its constructor: ConfigException, No resolvable bootstrap urls given in "
    "bootstrap.servers. librdkafka and others try the names again and again, and give nothing meanwhile."
)
LEFT_OUT = "a Java client leaves it out, and never tries it again"


class Ended(Exception):
    """The walk ends with this step."""

    def __init__(self, step: Step) -> None:
        self.step = step


class Teller:
    """failed: whether a step was an error."""

    def __init__(self, cluster: ClusterClient) -> None:
        self._cluster, self.failed = cluster, False
        self.begin()

    def begin(self) -> None:
        self._start, self._clock = time.time_ns(), time.monotonic_ns()

    def tell(
        self, number: int, verdict: str, text: str, details: Sequence[Detail] = (), *, error: int | None = None,
        advice: str | None = None, **facts: Any,
    ) -> Step:  # fmt: skip
        """A step that ends now."""
        self.failed |= verdict == ERROR
        took = time.monotonic_ns() - self._clock
        return Step(
            number, self._start, took, verdict, text, tuple(details), error or None, advice,
            tuple(self._cluster.take()), facts,
        )  # fmt: skip

    def fail(self, number: int, reason: KwireError, before: Sequence[Detail] = (), **facts: Any) -> Step:
        """The step that an exception ends: an error code with its words, or what came instead of an answer. before:
        what was seen until then."""
        if isinstance(reason, Refusal):
            text = f"{reason.exchange.name} answers {errors.label(reason.code)}"
            details, advice = words(reason.code)
            return self.tell(number, ERROR, text, [*before, *details], error=reason.code, advice=advice, **facts)
        kind = reason.kind if isinstance(reason, Failure) else None
        advice = None if kind in (None, "sasl", "unsupported") else HANGS.get(number)
        if (number, kind) == (1, "name"):
            advice = UNRESOLVED
        return self.tell(number, ERROR, str(reason), before, advice=advice, failure=kind, **facts)


def words(code: int) -> tuple[list[Detail], str | None]:
    """What an error code means, and what to do next."""
    known = errors.get(code)
    return ([Detail(known.short, ERROR)], known.cure) if known else ([], None)
