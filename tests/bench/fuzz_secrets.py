"""A password planted in captures that are damaged at random, looked for in what every command prints of them.

    python tests/bench/fuzz_secrets.py [--seconds 60] [--seed 1] [--keep FOLDER]

Damage: bits flipped, bytes written over, left out, put in or taken from other frames, most of it in size, key, version,
correlation id and length of the client id; frames left out or sent twice; packets cut by a snaplen, joined and split;
connections without their beginning. Printed is every output that shows a piece of the password. --keep writes the
captures there.
"""

from __future__ import annotations

import argparse
import gc
import io
import sys
import tempfile
import time
from contextlib import redirect_stderr, redirect_stdout
from itertools import count
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[1]))

from planted import HEADERS, PASSWORD, TABLES, TALKS, VIEWS, Packet, arguments, leaks, packet, pcap

HEAD = 18  # bytes of a frame in which most of the damage is


def damaged(random: Random, data: bytes, others: list[bytes]) -> bytes:
    """A frame with one thing wrong."""
    at = random.randrange(min(len(data), HEAD) if random.random() < 0.6 else len(data))
    length = random.choice((1, 1, 2, 4, 8, 30))
    match random.randrange(6):
        case 0 | 1:
            return data[:at] + bytes((data[at] ^ 1 << random.randrange(8),)) + data[at + 1 :]
        case 2:
            new = random.choice((random.randbytes(length), bytes(length), b"\xff" * length, b"\x7f" + b"\xff" * 3))
            return data[:at] + new + data[at + len(new) :]
        case 3:
            return data[:at] + data[at + length :]
        case 4:
            return data[:at] + random.randbytes(length) + data[at:]
        case _:
            other = random.choice(others)
            begin = random.randrange(len(other)) if random.random() < 0.5 else at
            piece = other[begin : begin + random.choice((length, 200))]
            return data[:at] + piece + data[random.choice((at, at + len(piece))) :]


def build(random: Random) -> bytes:
    """A damaged capture."""
    frames = [(side, data) for pair in TALKS[random.choice(list(TALKS))] for side, data in enumerate(pair)]
    # what is put into sound fields is no secret's bytes: nobody could tell them from a name
    others = [data.replace(PASSWORD, b"x" * len(PASSWORD)) for _, data in frames if data]
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        at = random.randrange(len(frames))
        side, data = frames[at]
        match random.randrange(12):
            case 0:
                del frames[at]
            case 1:
                frames.insert(at, frames[at])
            case 2:
                frames[at] = 1 - side, data
            case _ if data:
                frames[at] = side, damaged(random, data, others)
    segments = [(side, data) for side, data in frames if data]
    match random.randrange(4):
        case 0:
            segments = split(segments, random.choice((7, 20, 60)))
        case 1:
            segments = joined(segments)
    return pcap(cut(random, sent(segments)))


def split(segments: list[tuple[int, bytes]], size: int) -> list[tuple[int, bytes]]:
    return [(side, data[at : at + size]) for side, data in segments for at in range(0, len(data), size)]


def joined(segments: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """All of one side, then all of the other."""
    return [(wanted, b"".join(data for side, data in segments if side == wanted)) for wanted in (0, 1)]


def sent(segments: list[tuple[int, bytes]]) -> list[Packet]:
    seq = [100, 200]
    opening = [packet(0, side, seq, b"", 2 | 16 * side) for side in (0, 1)]
    return opening + [packet(0, side, seq, data) for side, data in segments]


def cut(random: Random, found: list[Packet]) -> list[Packet]:
    """Some packets cut short, left out, or out of order; some captures without their beginning."""
    match random.randrange(8):
        case 0:
            at = random.randrange(len(found))
            data, length = found[at]
            found[at] = data[: random.randrange(HEADERS, length + 1)], length
        case 1:
            most = random.randrange(HEADERS, 200)
            found = [(data[:most], length) for data, length in found]
        case 2:
            del found[random.randrange(len(found))]
        case 3:
            found = found[random.randrange(len(found)) :]
        case 4:
            at = random.randrange(len(found))
            found.insert(at, found.pop(random.randrange(len(found))))
    return found


def said(command: list[str]) -> str:
    """What a command prints."""
    from kwire.cli.main import main

    out, err, sys.argv = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO(), ["kwire", *command]
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as left:
            if left.code not in (0, 1, 3) and "no frame" not in err.getvalue():
                print(f"status {left.code}: {command} {err.getvalue()[-300:]}", file=sys.__stderr__)
    out.flush()
    return out.buffer.getvalue().decode() + err.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--seeds", type=int, nargs="*", help="only these, and all views of them")
    given = parser.parse_args()
    captures, outputs, seen, until = 0, 0, 0, time.monotonic() + given.seconds
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "damaged.pcap"
        seeds = given.seeds or count(given.seed)
        for seed in seeds:
            if time.monotonic() > until:
                break
            random = Random(seed)
            path.write_bytes(build(random))
            views = random.sample(VIEWS, 4) + ([random.choice(TABLES)] if random.random() < 0.1 else [])
            views = VIEWS if given.seeds else views
            captures += 1
            for view in views:
                outputs += 1
                found = leaks(said(arguments(view, path)))
                if found:
                    seen += 1
                    print(f"{seed}: {' '.join(view)}: {found[0]}", flush=True)
                    if given.keep:
                        given.keep.mkdir(exist_ok=True)
                        (given.keep / f"{seed}.pcap").write_bytes(path.read_bytes())
    gc.unfreeze()  # commands freeze what there is; DuckDB complains at exit of what was not collected
    gc.collect()
    print(f"{captures} captures, {outputs} outputs, {seen} show a piece of the password")
    sys.exit(seen > 0)


if __name__ == "__main__":
    main()
