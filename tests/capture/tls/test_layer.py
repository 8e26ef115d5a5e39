"""The layer behind connections: what is TLS, keys that come late, what waits for them, what is said at the end."""

from __future__ import annotations

import pickle
import random
from pathlib import Path

import pytest
from tlsmade import CLIENT, SERVER, Packet, Said, frame, packets_of, talk

from kwire.capture.connections import Connections
from kwire.capture.packets import Columns, Packets
from kwire.capture.tls.keylog import KeyLog
from kwire.capture.tls.layer import PATIENCE, PLAIN, TlsLayer
from kwire.capture.tls.session import TlsSession

SECOND = 1_000_000_000


def feed(connections: Connections, packets: list[Packet], time: int = SECOND, first: int = 1) -> bytes:
    """Feeds a block; what the server's side sent, as it comes out."""
    import numpy as np

    from kwire.capture.ip import Network
    from kwire.capture.tcp import ConnectionFilter, read_segments

    frames = [frame(packet) for packet in packets]
    sizes = np.array([len(data) for data in frames], np.int64)
    number = np.arange(first, first + len(frames), dtype=np.int64)
    block = Packets(
        memoryview(b"".join(frames)), number, np.full(len(frames), time, np.int64), np.cumsum(sizes) - sizes, sizes,
        sizes, np.full(len(frames), 101, np.int64),
    )  # fmt: skip
    columns = Columns(block.buffer)
    segments = read_segments(block, Network().read(block, columns), columns, ConnectionFilter())
    return taken(connections.feed(segments))


def taken(touched) -> bytes:  # type: ignore[no-untyped-def]
    out = b""
    for connection in touched:
        out += b"".join(piece.data for piece in connection.streams[1].pieces)
        for stream in connection.streams:
            stream.pieces = []
    return out


@pytest.fixture(scope="module")
def said() -> Said:
    return talk((CLIENT, b"hello"), (SERVER, b"you" * 2000))


def test_keys_that_come_seconds_later_are_waited_for(said: Said, tmp_path: Path) -> None:
    path = tmp_path / "keys.log"
    connections = Connections(tls=TlsLayer(KeyLog.of([path], growing=True)))
    assert feed(connections, packets_of(said.chunks)) == b""
    assert taken(connections.tick(3 * SECOND)) == b""
    path.write_bytes(said.log)
    assert taken(connections.tick(4 * SECOND)) == b"you" * 2000


def test_keys_that_never_come_are_not_waited_for_for_ever(said: Said, tmp_path: Path) -> None:
    layer = TlsLayer(KeyLog.of([tmp_path / "keys.log"], growing=True))
    connections = Connections(tls=layer)
    assert feed(connections, packets_of(said.chunks)[:-2]) == b""
    came = taken(connections.tick(SECOND + PATIENCE + 1))
    assert came == b"".join(data for side, data in said.chunks if side == SERVER)


def test_what_is_not_tls_costs_a_look() -> None:
    connections = Connections(tls=TlsLayer(KeyLog()))
    plain = [(CLIENT, b"\0\0\0\x10" + bytes(16)), (SERVER, b"\0\0\0\4abcd")]
    packets = packets_of(plain)
    assert feed(connections, packets[:3]) == b""
    assert next(iter(connections._open.values())).tls is PLAIN
    assert feed(connections, packets[3:], first=4) == plain[1][1]


def test_what_was_not_decrypted_is_counted_and_said(said: Said) -> None:
    other = talk((CLIENT, b"x"))
    layer = TlsLayer(KeyLog())
    layer.log.add(other.log)
    connections = Connections(tls=layer)
    feed(connections, packets_of(said.chunks))
    taken(connections.finish())
    assert layer.sealed == 1
    (note,) = layer.notes
    assert note.startswith("1 TLS connection not decrypted: no key for client random ")


def test_without_any_keys_nothing_is_said(said: Said) -> None:
    layer = TlsLayer(KeyLog())
    connections = Connections(tls=layer)
    feed(connections, packets_of(said.chunks))
    taken(connections.finish())
    assert (layer.sealed, layer.notes) == (1, [])


def test_a_session_travels_to_another_process_in_its_midst(said: Said) -> None:
    log = KeyLog()
    log.add(said.log)
    connections = Connections(tls=TlsLayer(log))
    packets = packets_of(said.chunks)
    first = feed(connections, packets[:-4])
    other: Connections = pickle.loads(pickle.dumps(connections))
    assert first + feed(other, packets[-4:], first=len(packets) - 3) == b"you" * 2000


@pytest.mark.parametrize("suite", ["", "ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-SHA384"])
@pytest.mark.parametrize("seed", range(25))
def test_damaged_streams_never_fail_and_give_nothing_false(suite: str, seed: int) -> None:
    rng = random.Random(seed)
    made = talk(*[(SERVER, b"%05d|" % at * 30) for at in range(60)], version="1.2" if suite else "1.3", suite=suite)
    log = bytearray(made.log)
    if rng.random() < 0.3:
        log[rng.randrange(len(log))] = rng.choice(b"0123456789abcdefg \n")
    keys = KeyLog()
    keys.add(bytes(log))
    packets = []
    for packet in packets_of(made.chunks, mtu=rng.choice([60, 400, 1400])):
        data = bytearray(packet.data)
        if data and rng.random() < 0.03:
            data[rng.randrange(len(data))] = rng.randrange(256)
        if rng.random() > 0.02:
            packets.append(packet._replace(data=bytes(data)))
    connections = Connections(tls=TlsLayer(keys))
    came = feed(connections, packets)
    for connection in connections.finish():
        came += b"".join(piece.data for piece in connection.streams[1].pieces)
        if isinstance(connection.tls, TlsSession) and connection.tls.decrypted:
            lines = {b"%05d|" % at * 30 for at in range(60)}
            assert all(came[low : low + 180] in lines for low in range(0, len(came), 180))
