"""How fast records are opened, beside what the package cryptography takes for the same records alone.

python tests/bench/tls.py. A row is a record size, or sizes as requests and answers of Kafka have them: a TLS 1.3 stream
in packets of 1,448 bytes, as whole pieces of 4 MiB. The peer calls AESGCM.decrypt on records that lie ready, keeping
what comes out, and makes each one's nonce from its number, as everybody must who calls it. Rounds take turns, in
seconds of CPU; medians count, and the row's worst is said last.
"""

from __future__ import annotations

import os
import random
import statistics
import struct
import time
from collections.abc import Callable
from itertools import cycle, islice

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from kwire.capture.streams import Piece
from kwire.capture.tls.direction import Direction
from kwire.capture.tls.direction_state import FLOWING
from kwire.capture.tls.handshake import TLS_1_3, ClientHello, ServerHello
from kwire.capture.tls.keylog import KeyLog
from kwire.capture.tls.negotiation import Resumable
from kwire.capture.tls.schedule import keys_13
from kwire.capture.tls.session import TlsSession
from kwire.capture.tls.suites import suite_of

LARGEST = 16384
TOTAL, PIECE, MTU, ROUNDS = 8 << 20, 4 << 20, 1448, 15
SUITE, SECRET = 0x1301, bytes(range(32))


def frames(*sizes: int) -> list[int]:
    """The sizes of the records that frames of these sizes are cut into."""
    return [min(LARGEST, size - at) for size in sizes for at in range(0, size, LARGEST)]


def shapes() -> dict[str, list[int]]:
    """Sizes of records, which come again and again."""
    chance = random.Random(1)
    small = [int(40 * 2 ** (chance.random() * 5)) for _ in range(1000)]
    batches = [int(1000 * 2 ** (chance.random() * 6)) for _ in range(1000)]
    return {
        **{f"{size:,} bytes": [size] for size in (64, 256, 1024, 4096, LARGEST)},
        "requests, 40 to 1,280 bytes": small,
        "batches, 1,000 to 64,000 bytes": frames(*batches),
        "answers of 100,000 bytes": frames(100_000),
        "answers of 1 MiB": frames(1 << 20),
        "both, one of each": [size for pair in zip(small, batches, strict=True) for size in frames(*pair)],
    }


def records(sizes: list[int]) -> tuple[list[Piece], list[tuple[bytes, bytes]], int]:
    """A stream as pieces, the same as ciphertext and header, and how many bytes are inside."""
    keys = keys_13(suite_of(SUITE), SECRET)
    cipher, iv = AESGCM(keys.key), int.from_bytes(keys.iv, "big")
    count = min(TOTAL * len(sizes) // sum(sizes), 150_000)
    text, stream, inside = os.urandom(LARGEST), bytearray(), 0
    ready = []
    for number, size in enumerate(islice(cycle(sizes), count)):
        header = struct.pack(">BHH", 23, 0x0303, size + 17)
        nonce = (iv ^ number).to_bytes(12, "big")
        coded = cipher.encrypt(nonce, text[:size] + b"\x17", header)
        inside += size
        ready.append((coded, header))
        stream += header + coded
    pieces = []
    for low in range(0, len(stream), PIECE):
        data = bytes(stream[low : low + PIECE])
        starts = list(range(low, low + len(data), MTU))
        numbers = list(range(len(starts)))
        pieces.append(Piece(low, data, starts, numbers, numbers))
    return pieces, ready, inside


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


def theirs(ready: list[tuple[bytes, bytes]]) -> int:
    keys = keys_13(suite_of(SUITE), SECRET)
    decrypt, iv = AESGCM(keys.key).decrypt, int.from_bytes(keys.iv, "big")
    found = 0
    for low in range(0, len(ready), 256):  # as much as is kept at a time elsewhere
        some = enumerate(ready[low : low + 256], low)
        found += sum(map(len, [decrypt((iv ^ number).to_bytes(12, "big"), *one) for number, one in some]))
    return found - len(ready)


def medians(runs: list[Callable[[], int]]) -> list[float]:
    """CPU seconds of each, of rounds in which all take turns."""
    found: list[list[float]] = [[] for _ in runs]
    for _ in range(ROUNDS):
        for run, times in zip(runs, found, strict=True):
            begun = time.process_time()
            run()
            times.append(time.process_time() - begun)
    return [statistics.median(times) for times in found]


def main() -> None:
    print("| records | kwire | AESGCM.decrypt alone | of it |\n|---|---|---|---|")
    worst = 1.0
    for name, sizes in shapes().items():
        pieces, ready, inside = records(sizes)
        assert ours(pieces) == theirs(ready) == inside
        mine, other = medians([lambda pieces=pieces: ours(pieces), lambda ready=ready: theirs(ready)])  # type: ignore[misc]
        speeds, worst = (inside / mine / 1e6, inside / other / 1e6), min(worst, other / mine)
        print(f"| {name} | {speeds[0]:,.0f} MB/s | {speeds[1]:,.0f} MB/s | {other / mine:.0%} |")
    print(f"worst: {worst:.0%}")


if __name__ == "__main__":
    main()
