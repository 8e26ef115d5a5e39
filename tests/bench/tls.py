"""How fast records are opened, beside what the package cryptography takes for the same records alone.

python tests/bench/tls.py. A row is a record size: a TLS 1.3 stream in packets of 1,448 bytes, as whole pieces of 4 MiB;
the peer calls AESGCM.decrypt on records that lie ready, keeping what comes out. Rounds take turns; the best ones count.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from kwire.capture.streams import Piece
from kwire.capture.tls.direction import FLOWING, Direction
from kwire.capture.tls.handshake import TLS_1_3, ClientHello, ServerHello
from kwire.capture.tls.keylog import KeyLog
from kwire.capture.tls.negotiation import Resumable
from kwire.capture.tls.schedule import keys_13
from kwire.capture.tls.session import TlsSession
from kwire.capture.tls.suites import suite_of

SIZES = (64, 256, 1024, 4096, 16384)
TOTAL, PIECE, MTU, ROUNDS = 8 << 20, 4 << 20, 1448, 30
SUITE, SECRET = 0x1301, bytes(range(32))


def records(size: int) -> tuple[list[Piece], list[tuple[bytes, bytes, bytes]], int]:
    """A stream as pieces, the same as nonce, ciphertext and header, and how many bytes are inside."""
    keys = keys_13(suite_of(SUITE), SECRET)
    cipher, iv = AESGCM(keys.key), int.from_bytes(keys.iv, "big")
    count, text, stream = min(TOTAL // size, 150_000), os.urandom(size) + b"\x17", bytearray()
    ready = []
    for number in range(count):
        header = struct.pack(">BHH", 23, 0x0303, size + 17)
        nonce = (iv ^ number).to_bytes(12, "big")
        coded = cipher.encrypt(nonce, text, header)
        ready.append((nonce, coded, header))
        stream += header + coded
    pieces = []
    for low in range(0, len(stream), PIECE):
        data = bytes(stream[low : low + PIECE])
        starts = list(range(low, low + len(data), MTU))
        numbers = list(range(len(starts)))
        pieces.append(Piece(low, data, starts, numbers, numbers))
    return pieces, ready, count * size


def ours(pieces: list[Piece]) -> int:
    """Bytes that kwire opens, from pieces of a stream to pieces of what is inside."""
    session = TlsSession(KeyLog(), Resumable(), 0)
    agreed = session._negotiations[0]
    agreed.client = ClientHello(bytes(32), b"", (SUITE,), None, (), (), b"", False, False)
    agreed.server = ServerHello(bytes(32), b"", SUITE, TLS_1_3, None, False, False, False)
    direction: Direction = session.directions[0]
    direction.hellos = 1
    direction.use(FLOWING, SECRET, agreed)
    found = 0
    for piece in pieces:
        direction.feed([piece])
        direction.advance()
        found += sum(len(made.data) for made in direction.take())
    return found


def theirs(ready: list[tuple[bytes, bytes, bytes]]) -> int:
    decrypt = AESGCM(keys_13(suite_of(SUITE), SECRET).key).decrypt
    found = 0
    for low in range(0, len(ready), 256):  # as much as is kept at a time elsewhere
        found += sum(map(len, [decrypt(*one) for one in ready[low : low + 256]]))
    return found - len(ready)


def best(runs: list[Callable[[], int]]) -> list[float]:
    """CPU seconds of each, the best of rounds in which all take turns."""
    found = [float("inf")] * len(runs)
    for _ in range(ROUNDS):
        for at, run in enumerate(runs):
            begun = time.process_time()
            run()
            found[at] = min(found[at], time.process_time() - begun)
    return found


def main() -> None:
    print("| record | kwire | AESGCM.decrypt alone | of it |\n|---|---|---|---|")
    for size in SIZES:
        pieces, ready, inside = records(size)
        assert ours(pieces) == theirs(ready) == inside
        mine, other = best([lambda pieces=pieces: ours(pieces), lambda ready=ready: theirs(ready)])  # type: ignore[misc]
        speeds = inside / mine / 1e6, inside / other / 1e6
        print(f"| {size:,} bytes | {speeds[0]:,.0f} MB/s | {speeds[1]:,.0f} MB/s | {other / mine:.0%} |")


if __name__ == "__main__":
    main()
