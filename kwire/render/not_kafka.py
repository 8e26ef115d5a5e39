"""Connections of other protocols: what they are, and what the broker will have logged of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kwire.analyze.tls import facts_of, findings_of, hung_up, session_of
from kwire.analyze.tls import row_of as tls_row
from kwire.counted import counted
from kwire.render.exchanges import ExchangeLines
from kwire.render.lines import Line, clean, flowing, paragraph

if TYPE_CHECKING:
    from kwire.session.connection_info import ConnectionInfo


def lines_of(connection: ConnectionInfo, width: int, start: int | None) -> list[Line]:
    """A line with the endpoints and the verdict, and what follows from it beneath."""
    found = connection.verdict
    assert found is not None
    verdict, (client, broker) = found.verdict, connection.ends
    time = f"{ExchangeLines(width, start).time(connection.tcp.first_time):>11}"
    sizes = f"{counted(found.sizes[found.client], 'byte')} sent, {found.sizes[1 - found.client]:,} got"
    ends = [f"{client} → {broker}"] if len(client + broker) + 16 <= width else [client, f"→ {broker}"]
    parts = [(time, "offset"), *((end, "") for end in ends), (verdict.what, "error"), (sizes, "dim")]
    lines = flowing(parts, width, " " * 13)
    said = [(verdict.detail, "dim"), *_tls(connection)]
    if len(said) == 1:
        said += [(found.answer or "", "dim"), (found.advice or "", "dim")]
    if found.logged and (hung_up(connection) or not found.is_refused):
        said.append((f"The broker logs: {found.logged}", "dim"))
    for text, style in said:
        if text:
            lines += paragraph(clean(text), width, " " * 13, style, breaks=True)
    return lines


def _tls(connection: ConnectionInfo) -> list[tuple[str, str]]:
    """What a TLS handshake tells, what is wrong with it, and why nothing more is shown."""
    session = session_of(connection)
    facts = facts_of(connection)
    if session is None or not facts:
        return []
    wrong = [
        (f"{one.what}. {one.advice}".rstrip(), "error" if one.severity == "error" else "note")
        for one in findings_of(connection)
    ]
    keyless = session.facts.client_random.hex()
    advice = f"Encrypted: --keylog FILE shows what is inside, where it holds the keys of client random {keyless}"
    why = advice if session.why in (None, session.no_key) else f"Not decrypted: {session.why}."
    why = "Decrypted: nothing was said inside." if session.silent else why
    failed = session.facts.failures and not session.facts.done  # then nothing was said inside
    return [(line, "dim") for line in facts] + wrong + ([] if failed else [(why, "dim")])


def row_of(connection: ConnectionInfo) -> dict[str, Any]:
    """The same as a row."""
    found = connection.verdict
    assert found is not None
    verdict, (client, broker) = found.verdict, connection.ends
    return {
        "capture": connection.capture,
        "connection": f"{client}>{broker}#{connection.tcp.epoch}",
        "time": connection.tcp.first_time,
        "what": verdict.what,
        "detail": verdict.detail or None,
        "answer": found.answer,
        "sent": found.sizes[found.client],
        "got": found.sizes[1 - found.client],
        "first_bytes_as_size": verdict.size,
        "logged": found.logged,
        "advice": found.advice,
        "tls": tls_row(connection),
    }
