"""What the proxy's tap hands on: packets of both families, blanked bytes, and a feed that forgets what is too much."""

from __future__ import annotations

from struct import pack

from kwire.proxy import tap
from kwire.proxy.tap import Blanked, Feed, Held, Tap, TapWriter
from kwire.session.reader import Reader

ASKED = pack(">ihhih", 14, 3, 1, 7, -1) + pack(">i", -1)


def conversations(client: tuple[str, int], broker: tuple[str, int]) -> list[tuple[str, str]]:
    feed = Feed(lambda: 1)
    near, _ = Tap(None, feed, False, 1_000).begin(client, None, None, broker)
    near.came(ASKED)
    near.went(pack(">iiii", 12, 7, 0, 0))
    near.end()
    feed.close()
    reader = Reader("proxy")
    found = [batch for packets in feed.blocks() for batch in reader.feed(packets)] + list(reader.finish())
    return [exchange.connection.ends for batch in found for exchange in batch]


def test_what_is_shown_is_of_the_client_and_the_broker() -> None:
    assert conversations(("10.0.0.7", 5), ("10.0.0.2", 9092)) == [("10.0.0.7:5", "10.0.0.2:9092")]


def test_client_and_broker_may_be_of_two_families() -> None:
    assert conversations(("127.0.0.1", 5), ("::1", 9092)) == [("127.0.0.1:5", "[::1]:9092")]


def test_what_is_no_kafka_is_blanked_from_there_on() -> None:
    written: list[bytes] = []
    blanked = Blanked(TapWriter(written.append, written.append, lambda: None), 1_000, Held(1_000))
    blanked.request(ASKED)
    blanked.request(b"GET / HTTP/1.1 hunter2")
    blanked.request(b"hunter2")
    assert b"".join(written) == ASKED + bytes(22) + bytes(7)


def test_frames_that_never_end_are_not_kept_without_end() -> None:
    """SaslAuthenticate may hold a password, so it waits to be whole: on many connections, to a limit."""
    held, written = Held(10_000), [[b""] for _ in range(20)]
    begun = pack(">ihhi", 5_000, 36, 1, 7) + b"hunter2" * 300
    for own in written:
        blanked = Blanked(TapWriter(own.append, own.append, lambda: None), 100_000, held)
        blanked.request(begun)
        blanked.request(b"x")
    assert held.size <= held.most
    kept = [b"".join(own) for own in written]
    assert set(kept) == {b"", bytes(len(begun)) + b"\0"}
    blanked._end()
    assert held.size <= held.most


def test_what_nobody_takes_is_counted_and_left_out() -> None:
    feed = Feed(lambda: 1)
    for _ in range(70):
        feed.write(bytes(1 << 20))
    assert feed.dropped == 70 - tap.MOST // (1 << 20) - 1


def test_packets_are_not_made_where_there_is_no_place_for_them() -> None:
    feed = Feed(lambda: 1)
    near, _ = Tap(None, feed, True, 1 << 20).begin(("10.0.0.7", 5), None, None, ("10.0.0.2", 9092))
    for _ in range(80):
        near.came(bytes(1 << 20))
    held = sum(len(packet) for packet, _, _ in feed._rows)
    assert tap.MOST < held < tap.MOST + (2 << 20)
    assert len(feed._rows) - 3 + feed.dropped == 80 * 17
