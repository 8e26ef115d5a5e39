"""A step of a consumer's life as walk tells it: what was done, how long it took, what came of it, what comes next."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kwire.client.exchange import ClientExchange
from kwire.schema.errorcodes import errors

OK, NOTE, ERROR = "ok", "note", "error"
PHASES = ("bootstrap", "coordinator", "join", "sync", "heartbeat", "offsets", "fetch", "leave")


class Detail(NamedTuple):
    """A line beneath the step. verdict colors it: ok, note, error."""

    text: str
    verdict: str = OK


@dataclass(frozen=True, slots=True)
class Step:
    """number: 1 to 7, of PHASES; the leaving is 8. time: ns since the epoch; took: ns. error: the code that decided.
    advice: what to do next. facts: the same for programs."""

    number: int
    time: int
    took: int
    verdict: str
    text: str
    details: tuple[Detail, ...] = ()
    error: int | None = None
    advice: str | None = None
    exchanges: tuple[ClientExchange, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return PHASES[self.number - 1]

    def row(self) -> dict[str, Any]:
        """As plain data, without the exchanges."""
        known = None if self.error is None else errors.get(self.error)
        return {
            "step": self.number,
            "name": self.name,
            "time": self.time,
            "took_ns": self.took,
            "verdict": self.verdict,
            "text": self.text,
            "details": [{"text": detail.text, "verdict": detail.verdict} for detail in self.details],
            "error_code": self.error,
            "error": known.name if known else None,
            "advice": self.advice,
            "facts": self.facts,
        }
