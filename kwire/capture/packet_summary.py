"""Describes a packet that holds no frame: which TCP segment it is, and between whom."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kwire.capture.files import open_capture
from kwire.capture.ip import Network, address_text, endpoint
from kwire.capture.packets import Columns
from kwire.capture.tcp import ACK, FIN, HEAD, HEADER, RST, SYN
from kwire.counted import counted

NAMES = (
    (SYN | ACK, "an answer to a SYN"),
    (SYN, "a SYN"),
    (RST, "a reset"),
    (FIN, "a FIN"),
    (ACK, "a bare acknowledgement"),
)


def packet_summary(path: str | Path, number: int) -> str | None:
    """As "a SYN from 10.0.0.7:51522 to 10.0.0.2:9092"; None if there is no such packet, or it is a fragment or not TCP.
    number: counted from 1 in the file. Raises OSError, CaptureError."""
    for packets in open_capture(path).blocks():
        here = np.flatnonzero(packets.number == number)
        if len(here):
            one = packets.at(here)
            data = Columns(one.buffer)
            found = Network().read(one, data)
            if not len(found.index) or int(found.start[0]) + HEADER > int(found.have[0]):
                return None
            head = data.records(HEAD, found.start[:1])
            bits, source, target = (int(head[name][0]) for name in ("bits", "source", "target"))
            size = int(found.end[0] - found.start[0]) - (bits >> 12) * 4
            flags = bits & (FIN | SYN | RST | ACK)
            what = next((name for mask, name in NAMES if flags & mask == mask), "a segment without flags")
            if size > 0 and not flags & (SYN | RST):
                what = counted(size, "byte")
            sender = endpoint(address_text(int(found.source_high[0]), int(found.source[0])), source)
            other = endpoint(address_text(int(found.target_high[0]), int(found.target[0])), target)
            return f"{what} from {sender} to {other}"
    return None
