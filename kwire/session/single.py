"""An exchange that the fast path read as columns, as objects once more: for what only looks at single ones."""

from __future__ import annotations

from kwire.session.bulk import Batch, Side
from kwire.session.exchange import Exchange, Message


def exchange_at(batch: Batch, row: int) -> Exchange:
    """The exchange of a row. Of its errors only the first is there, the others are not known by their codes."""
    conversation, kind = batch.conversations[batch.conversation[row]], batch.kinds[batch.kind[row]]
    length, begin = int(batch.client_length[row]), int(batch.client_start[row])
    client = None if length < 0 else batch.buffer[begin : begin + length].decode("utf-8", "surrogateescape")

    def message(name: str, side: Side, body: int, errors: tuple[int, ...]) -> Message:
        start, size = int(side.start[row]), int(side.size[row])
        return Message(
            conversation, name, int(side.index[row]), int(side.position[row]), batch.buffer[start : start + 4 + size],
            size, int(side.time[row]), int(side.last_time[row]), int(side.packet[row]), int(side.last_packet[row]),
            "ok", None, (), kind, int(batch.correlation_id[row]), client, body - start, errors,
        )  # fmt: skip

    errors = (int(batch.first_error[row]),) if batch.errors[row] else ()
    return Exchange(
        conversation,
        message("request", batch.request, int(batch.asked[row]), ()),
        message("response", batch.response, int(batch.answered[row]), errors),
    )
