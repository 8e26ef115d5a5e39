"""Comments on the packets of a slice: which bytes of their streams were left out on purpose.

kwire read -w writes them into pcapng files, where Wireshark shows them too. When kwire reads such a file, what was left
out does not count as lost, and the next frame is found at once, with its number and position in the whole stream.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from kwire.wire.columns import Ints

WRAP = 1 << 32
LONGEST = 400  # bytes of a comment that may be one
BEFORE = re.compile(
    r"kwire: (\d{1,15}) bytes before sequence number (\d{1,10}) were left out"
    r"(?:; frame (\d{1,15}) of the stream begins there, at byte (\d{1,15}))?"
)
BEHIND = re.compile(r"kwire: what follows sequence number (\d{1,10}) was left out")


class Cut(NamedTuple):
    """begin, end: TCP sequence numbers between which a packet's bytes are kept; None where no bound is. before: how
    many bytes of the stream were left out before begin; frame, position: number and place in the stream of the frame
    that begins there; None of none."""

    begin: int | None = None
    before: int = 0
    frame: int | None = None
    position: int | None = None
    end: int | None = None

    def __str__(self) -> str:
        """The comment that says so."""
        said = []
        if self.begin is not None:
            said.append(f"kwire: {self.before} bytes before sequence number {self.begin} were left out")
            if self.frame is not None:
                said[0] += f"; frame {self.frame} of the stream begins there, at byte {self.position}"
        if self.end is not None:
            said.append(f"kwire: what follows sequence number {self.end} was left out")
        return "\n".join(said)


def cut_of(comment: bytes) -> Cut | None:
    """The cut that a packet's comment describes; None for other comments."""
    if not comment.startswith(b"kwire: ") or len(comment) > LONGEST:
        return None
    text = comment.decode("ascii", "replace")
    before, behind = BEFORE.search(text), BEHIND.search(text)
    if before is None and behind is None:
        return None
    cut = Cut(end=int(behind[1]) % WRAP if behind else None)
    if before is None:
        return cut
    frame, position = (int(before[3]), int(before[4])) if before[3] else (None, None)
    return cut._replace(begin=int(before[2]) % WRAP, before=int(before[1]), frame=frame, position=position)


def trim(cut: Cut, at: int, seq: Ints, start: Ints, have: Ints, length: Ints) -> None:
    """Shortens the segment in row at to the bytes that belong to the slice."""
    if cut.begin is not None:
        off = (cut.begin - int(seq[at])) % WRAP
        if 0 < off <= length[at]:
            seq[at] = cut.begin
            start[at] += off
            have[at] = max(have[at] - off, 0)
            length[at] -= off
    if cut.end is not None:
        left = (cut.end - int(seq[at])) % WRAP
        if left < length[at]:
            length[at], have[at] = left, min(have[at], left)
