"""kwire read -w: the packets of exchanges to a capture that reads as the whole did."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kwire.counted import counted

if TYPE_CHECKING:
    from kwire.outputs import Output
    from kwire.render.comments import Comments
    from kwire.session.exchange import Exchange
    from kwire.session.reading import Reading
    from kwire.session.slicing import Slice


def save(
    reading: Reading, exchanges: Iterator[Exchange], kept: Slice, output: str, target: Output, secrets: bool,
    comments: Comments | None = None,
) -> None:  # fmt: skip
    """Writes the packets of the exchanges and what goes with them. kept: what gets those that are not wanted; secrets:
    pcapng gets what decrypts them too. comments: what is to be said of their packets."""
    from kwire.capture.files import open_capture
    from kwire.capture.save import PcapngWriter, writer_of

    for exchange in exchanges:
        kept.add(exchange)
        if comments is not None:
            comments.add(exchange)
    kept.finish()
    total = said = 0
    with target as file:
        writer = writer_of(file, output)
        lines = kept.secrets if secrets else []
        if lines and isinstance(writer, PcapngWriter):
            writer.secrets(lines)
        for chain, reader in zip(reading.chains, reading.readers, strict=True):
            before = 0
            numbers, cuts = kept.packets(reader.places)
            for path in chain:
                capture = open_capture(path)
                for packets in capture.blocks():
                    for at, number in enumerate((packets.number + before).tolist()):
                        if number in numbers:
                            start = int(packets.start[at])
                            data = bytes(packets.buffer[start : start + int(packets.captured[at])])
                            row = int(packets.time[at]), data, int(packets.length[at]), int(packets.link[at])
                            if isinstance(writer, PcapngWriter):
                                left_out = str(cuts.get(number) or packets.cuts.get(at) or "")
                                said_of = comments.of(reader.places, number) if comments is not None else ""
                                writer.write(*row, comment=left_out, note=said_of)
                            else:
                                writer.write(*row)
                                said += number in cuts
                            total += 1
                before += capture.packets
        writer.close()
    along = f", {counted(kept.context, 'exchange')} for context (--bare leaves them out)" if kept.context else ""
    print(f"kwire: {counted(total, 'packet')} to {target}{along}", file=sys.stderr)
    if kept.logins:
        bare = kept.logins == kept.context_logins
        print(
            f"kwire: logins are in it ({counted(kept.logins, 'exchange')}), with passwords or what proves them"
            + (": --bare leaves them out" if bare else ""),
            file=sys.stderr,
        )
    if lines:
        print(f"kwire: with {counted(len(lines), 'TLS secret')}: who has {target} can read it all", file=sys.stderr)
    if said:
        print("kwire: pcap cannot say what was left out, which reads as lost; pcapng can", file=sys.stderr)
