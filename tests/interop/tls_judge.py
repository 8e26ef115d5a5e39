"""What kwire decrypts of a capture against what tshark decrypts of it, byte for byte.

python tests/interop/tls_judge.py CAPTURE KEYLOG [TRUTH.jsonl.gz] prints a line for each connection, writes what tshark
says, and ends with 1 where they differ.
"""

# mypy: disable-error-code="attr-defined"

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kwire.capture.connections import Connections
from kwire.capture.files import open_capture
from kwire.capture.segmenter import Segmenter
from kwire.capture.tcp import ConnectionFilter
from kwire.capture.tls.keylog import KeyLog
from kwire.capture.tls.layer import TlsLayer
from kwire.capture.tls.session import TlsSession

Ends = frozenset[tuple[str, int]]


class Inside(NamedTuple):
    """What travelled inside a connection, by who sent it, and what the session says of itself."""

    sent: dict[tuple[str, int], bytes]
    session: TlsSession | None


def ours(capture: Path, keylog: Path) -> dict[Ends, Inside]:
    """By the connections' ends; what is not TLS is left out."""
    log = KeyLog.of([keylog])
    connections, segmenter = Connections(tls=TlsLayer(log)), Segmenter(ConnectionFilter())
    found: dict[Ends, Inside] = {}

    def take(touched: Iterator[object]) -> None:
        for connection in touched:
            ends = frozenset(connection.ends)
            session = connection.tls if isinstance(connection.tls, TlsSession) else None
            inside = found.setdefault(ends, Inside(dict.fromkeys(connection.ends, b""), session))
            for end, stream in zip(connection.ends, connection.streams, strict=True):
                if session is not None and session.decrypted:
                    inside.sent[end] += b"".join(piece.data for piece in stream.pieces)
                stream.pieces = []

    for packets in open_capture(capture).blocks():
        for segments in segmenter.read(packets).segments:
            take(connections.feed(segments))
    take(connections.finish())
    return found


def theirs(capture: Path, keylog: Path) -> Iterator[Inside]:
    """The streams that tshark follows through TLS."""
    fields = ("tcp.stream", "ip.src", "tcp.srcport", "ip.dst", "tcp.dstport")
    listed = ["tshark", "-r", str(capture), "-T", "fields", *(part for name in fields for part in ("-e", name))]
    rows = [line.split() for line in subprocess.run(listed, capture_output=True, text=True).stdout.splitlines()]
    ends = {int(row[0]): ((row[1], int(row[2])), (row[3], int(row[4]))) for row in rows if len(row) == 5}
    numbers = sorted(ends)
    options = ["-o", f"tls.keylog_file:{keylog}"]
    asked = [part for number in numbers for part in ("-z", f"follow,tls,raw,{number}")]
    text = subprocess.run(
        ["tshark", "-r", str(capture), *options, "-q", *asked], capture_output=True, text=True, check=True
    ).stdout
    for part in text.split("=" * 67)[1:]:
        nodes = re.findall(r"Node \d: (.*):(\d+)$", part, re.MULTILINE)
        if not nodes or nodes[0][1] == "0":
            continue
        number = int(re.findall(r"tcp.stream eq (\d+)", part)[0])
        first = nodes[0][0].strip("[]"), int(nodes[0][1])
        (second,) = (end for end in ends[number] if end != first)
        sent = {first: b"", second: b""}
        for tab, data in re.findall(
            r"^(\t?)([0-9a-f]+)$", part.partition("Node 1")[2].partition("\n")[2], re.MULTILINE
        ):
            sent[second if tab else first] += bytes.fromhex(data)
        yield Inside(sent, None)


def main(capture: Path, keylog: Path, truth: Path | None = None) -> int:
    mine, wrong = ours(capture, keylog), 0
    found = list(theirs(capture, keylog))
    if truth is not None:
        rows = [{f"{host}:{port}": data.hex() for (host, port), data in other.sent.items()} for other in found]
        truth.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode(), 9, mtime=0))
    for other in found:
        own = mine.pop(frozenset(other.sent))
        same = own.sent == other.sent
        wrong += not same
        session = own.session
        facts = session.facts if session else None
        name = facts.suite.name if facts and facts.suite else "-"
        extra = " ".join(
            word for word, said in (
                ("resumed", facts.resumed), ("retried", facts.retried), (f"early:{facts.early_data}", facts.early_data),
                (f"updates:{facts.key_updates}", facts.key_updates),
                (f"again:{facts.renegotiated}", facts.renegotiated),
                ("mutual", facts.client_certificate), (f"why:{session.why}", session.why),
                (f"alerts:{[a.number for a in facts.failures]}", facts.failures),
            ) if said
        ) if facts and session else "no TLS"  # fmt: skip
        sizes = "/".join(str(len(data)) for data in own.sent.values())
        theirs_sizes = "" if same else " tshark " + "/".join(str(len(data)) for data in other.sent.values())
        print(
            f"{'same' if same else 'DIFFERS'} {sizes:>12}{theirs_sizes} {facts.version if facts else ''} {name} {extra}"
        )
    unseen = [inside for inside in mine.values() if any(inside.sent.values())]
    print(f"{len(unseen)} connections that kwire decrypted are not among those of tshark")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:4])))
