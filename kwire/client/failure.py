"""What can go wrong between a client and a broker, each in one line: what was done, where, what came instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.errors import Exit, KwireError
from kwire.schema.errorcodes import errors

if TYPE_CHECKING:
    from kwire.client.exchange import Exchange


class Failure(KwireError):
    """No answer, or none that can be used.

    kind: name (no such host), refused, unreachable, timeout, closed, tls, sasl, not kafka, malformed, unsupported.
    where is the broker's address; hint, one clause, is what to do about it.
    """

    def __init__(self, kind: str, where: object, reason: str, hint: str = "") -> None:
        self.kind, self.where, self.reason, self.hint = kind, str(where), reason, hint
        self.status = Exit.NOT_KAFKA if kind == "not kafka" else Exit.MALFORMED
        super().__init__(f"{where}: {reason}{'; ' if hint else ''}{hint}")


class Refusal(KwireError):
    """A broker's answer that carries an error code."""

    status = Exit.MALFORMED

    def __init__(self, exchange: Exchange, code: int, message: str | None = None) -> None:
        self.exchange, self.code = exchange, code
        known = errors.get(code)
        said = f" ({message})" if message else ""
        super().__init__(f"{exchange.name}: {errors.label(code)}{said}{f': {known.short}' if known else ''}")
