"""What can go wrong between a client and a broker, each in one line: what was done, where, what came instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.errors import Exit, KwireError
from kwire.schema.errorcodes import errors

if TYPE_CHECKING:
    from kwire.client.exchange import ClientExchange


class Refusal(KwireError):
    """A broker's answer that carries an error code."""

    status = Exit.MALFORMED

    def __init__(self, exchange: ClientExchange, code: int, message: str | None = None) -> None:
        self.exchange, self.code = exchange, code
        known = errors.get(code)
        said = f" ({message})" if message else ""
        super().__init__(f"{exchange.name}: {errors.label(code)}{said}{f': {known.short}' if known else ''}")
