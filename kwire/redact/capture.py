"""A whole capture: read once for its frames, which go replaced into a file without a name, and once for its packets."""

from __future__ import annotations

import tempfile
from collections.abc import Collection
from dataclasses import dataclass
from typing import BinaryIO

from kwire.capture.files import open_capture
from kwire.capture.save import writer_of
from kwire.capture.tcp import Key
from kwire.capture.tls.session import TlsSession
from kwire.redact.frames import Redactor
from kwire.redact.names import Pseudonyms
from kwire.redact.packets import RAW_LINK, Rewriter, SentStretches, Stretch
from kwire.session.exchange import Message
from kwire.session.reader import Settings
from kwire.session.reading import Reading


@dataclass(frozen=True, slots=True)
class RedactionReport:
    """What became of a capture. frames: that were replaced; names: texts that were, each once; blanked: bytes of
    payload that were not read or not to be shown; left_out: packets that are not TCP; sealed: TLS connections."""

    packets: int
    frames: int
    names: int
    blanked: int
    left_out: int
    sealed: int
    notes: tuple[str, ...]


def redact(
    path: str, target: BinaryIO, form: str, salt: bytes, keep: Collection[str] = (), settings: Settings | None = None
) -> RedactionReport:
    """Writes the capture anew, as pcap or pcapng. keep: kinds of names that stay, as frames.KINDS has them. The path is
    read twice. Raises OSError, CaptureError."""
    names = Pseudonyms(salt)
    redactor = Redactor(names, keep)
    with tempfile.TemporaryFile() as spool:
        reading = Reading([path], settings or Settings())
        said: dict[Key, list[SentStretches]] = {}
        frames = 0
        for batch in reading.batches(ordered=False):
            for row in range(len(batch)):
                exchange = batch[row]
                for message in (exchange.request, exchange.response):
                    if message is not None and not isinstance(message.connection.tcp.tls, TlsSession):
                        frames += _keep(said, spool, message, redactor)
        for directions in said.values():
            for one in directions:
                one.stretches.sort()
            directions.sort(key=lambda one: one.packet)
        rewriter = Rewriter(said, spool, names)
        writer = writer_of(target, form)
        total = 0
        for packets in open_capture(path).blocks():
            for made in rewriter.packets(packets):
                writer.write(made.time, made.data, made.length, RAW_LINK)
                total += 1
        writer.close()
    blanked = redactor.blanked + rewriter.blanked
    return RedactionReport(
        total, frames, names.count, blanked, rewriter.left_out, reading.encrypted, tuple(reading.notes)
    )


def _keep(said: dict[Key, list[SentStretches]], spool: BinaryIO, message: Message, redactor: Redactor) -> bool:
    """Writes a frame's new bytes down; whether it is known where they belong."""
    client, connection = message.connection.client, message.connection.tcp
    side = client if message.kind == "request" else 1 - (client or 0)
    base = connection.streams[side or 0].first
    if client is None or base is None:
        return False
    high, source, port, *other = connection.key
    key: Key = connection.key if side == 0 else (other[0], other[1], other[2], high, source, port)
    directions = said.setdefault(key, [])
    one = next((each for each in directions if each.base == base), None)
    if one is None:
        one = SentStretches(message.packet, base)
        directions.append(one)
    one.packet = min(one.packet, message.packet)
    data = redactor.frame(message)
    one.stretches.append(Stretch(message.position, spool.seek(0, 2), len(data)))
    spool.write(data)
    return True
