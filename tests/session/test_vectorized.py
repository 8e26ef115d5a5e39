"""What is read as columns, over real captures, whole and damaged ones, in blocks of any size, says what is read frame
by frame."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from struct import pack, unpack_from
from typing import Any, cast

import pytest

from kwire.capture import source
from kwire.codec.thresholds import TOGETHER
from kwire.render.bodies import BodyRenderer
from kwire.render.message_json import MessageLines
from kwire.session.batch import ExchangeBatch
from kwire.session.reader import Settings
from kwire.session.reading import Reading
from kwire.session.vectorized import Vectorized

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"
FILES = sorted(CAPTURES.glob("*.pcap*"))
KAFKA = [path for path in FILES if path.name not in ("notkafka.pcap", "tls.pcap")]
REGULAR = [path for path in KAFKA if path.name != "sasl-v0.pcap"]  # there, bare tokens lie between all others
HEADER, RECORD = 24, 16  # bytes of a pcap's header, and of a packet's
names = pytest.mark.parametrize("path", FILES, ids=[path.name.split(".")[0] for path in FILES])
with_bodies = pytest.mark.parametrize("bodies", [False, True], ids=["rows", "bodies"])


class Taken:
    """How many exchanges were read as columns."""

    def __init__(self) -> None:
        self.pairs = self.batches = 0


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Taken:
    """Columns are made of all that they can be made of, however little there is."""
    counted = Taken()

    def counting(read: Callable[..., ExchangeBatch | None]) -> Callable[..., ExchangeBatch | None]:
        def counts(*given: Any) -> ExchangeBatch | None:
            batch = read(*given)
            if batch is not None:
                counted.pairs += len(batch)
                counted.batches += 1
            return batch

        return counts

    monkeypatch.setattr(Vectorized, "run", counting(Vectorized.run))
    monkeypatch.setattr(Vectorized, "named", counting(Vectorized.named))  # of connections that open
    return counted


def lines_of(paths: list[Path], bodies: bool = False, **settings: Any) -> tuple[list[str], int]:
    """The lines of JSON, and how many exchanges are malformed."""
    lines, out, malformed = MessageLines(BodyRenderer() if bodies else None), [], 0
    for batch in Reading(paths, Settings(thresholds=TOGETHER, **settings)).batches():
        malformed += batch.count_of("malformed")
        out += "".join(lines.of(batch)).splitlines()
    return out, malformed


def fast(path: Path, bodies: bool = False) -> tuple[list[str], int]:
    return lines_of([path], bodies)


def slow(path: Path, bodies: bool = False) -> tuple[list[str], int]:
    return lines_of([path], bodies, careful=True)


def _packets(path: Path) -> tuple[bytes, list[bytes]]:
    """A capture's header, and its packets with theirs."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    out, at = [], HEADER
    while at < len(data):
        end = at + RECORD + unpack_from("<I", data, at + 8)[0]
        out.append(data[at:end])
        at = end
    return data[:HEADER], out


def _flipped(packet: bytes, rng: random.Random) -> bytes:
    """Bytes behind the TCP header changed: here that is 14 + 20 + 32 bytes, or 20 more of IPv6."""
    if len(packet) <= RECORD + 86:
        return packet
    changed = bytearray(packet)
    for _ in range(rng.choice((1, 2, 5))):
        changed[rng.randrange(RECORD + 66, len(packet))] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
    return bytes(changed)


def _cut(packet: bytes, rng: random.Random) -> bytes:
    """As a snaplen would cut it."""
    kept = rng.randrange(60, max(len(packet) - RECORD, 61))
    return packet if len(packet) - RECORD <= kept else packet[:8] + pack("<I", kept) + packet[12 : RECORD + kept]


def _damaged(packets: list[bytes], how: str, rng: random.Random) -> list[bytes]:
    out = list(packets)
    for _ in range(1 + len(packets) // 25):
        at = rng.randrange(len(out))
        match how:
            case "flipped":
                out[at] = _flipped(out[at], rng)
            case "dropped":
                del out[at]
            case "repeated":
                out.insert(min(at + rng.randrange(20), len(out)), out[at])
            case "reordered":
                out.insert(max(at - rng.randrange(1, 8), 0), out.pop(at))
            case "cut":
                out[at] = _cut(out[at], rng)
    return out[rng.randrange(len(out) // 2) :] if how == "midstream" else out


@names
@with_bodies
def test_its_lines_are_those_of_the_slow_path(path: Path, bodies: bool, taken: Taken) -> None:
    assert fast(path, bodies) == slow(path, bodies)
    assert (taken.pairs > 0) == (path in REGULAR)


def test_it_takes_most_of_what_is_regular(taken: Taken) -> None:
    rows, malformed = fast(CAPTURES / "consumer848.pcap")
    assert (len(rows), malformed) == (204, 0)
    assert taken.pairs > 60


@names
@pytest.mark.parametrize("window", [4 << 10], ids=["4K"])
def test_frames_and_pairs_may_lie_across_blocks(
    path: Path, window: int, taken: Taken, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = sorted(slow(path)[0])
    monkeypatch.setitem(cast(Any, source.Source.__init__).__kwdefaults__, "window", window)
    assert fast(path, True) == slow(path, True)
    assert sorted(fast(path)[0]) == whole
    assert (taken.batches > 1) == (path in REGULAR)


@pytest.mark.parametrize("how", ["flipped", "dropped", "repeated", "reordered", "cut", "midstream"])
@pytest.mark.parametrize("path", KAFKA[1::2], ids=[path.name.split(".")[0] for path in KAFKA[1::2]])
def test_damaged_captures_read_the_same_both_ways(path: Path, how: str, taken: Taken, tmp_path: Path) -> None:
    header, packets = _packets(path)
    rng = random.Random(f"{path.name} {how}")
    made = tmp_path / "made.pcap"
    made.write_bytes(header + b"".join(_damaged(packets, how, rng)))
    for bodies in (False, True):
        assert fast(made, bodies) == slow(made, bodies)
    assert (taken.pairs > 0) == (path in REGULAR)


def test_with_the_usual_thresholds_both_ways_say_the_same() -> None:
    path = CAPTURES / "classic.pcap.gz"
    assert fast(path) == slow(path)


@pytest.mark.parametrize("bodies", [False, True])
def test_several_captures_are_merged_in_the_order_of_time(bodies: bool, tmp_path: Path) -> None:
    paths = [CAPTURES / "pyclients.pcap", CAPTURES / "consumer848.pcap", tmp_path / "again.pcap"]
    paths[2].write_bytes(paths[1].read_bytes())
    merged, _ = lines_of(paths, bodies)
    assert merged == lines_of(paths, bodies, careful=True)[0]
    captures = [json.loads(line)["capture"] for line in merged]
    assert sum(one != other for one, other in pairwise(captures)) > 2, "they are not one behind the other"


def both(asked: list[bytes], answers: list[bytes], traffic: Any, path: Path) -> tuple[list[str], list[str]]:
    """What both ways make of a connection in which all requests come before all answers."""
    tcp = traffic.connection()
    for frame in asked:
        tcp.send(frame)
    for answer in answers:
        tcp.answer(answer)
        traffic.now += 100_000_000
    tcp.close()
    traffic.save(path)
    return fast(path, True)[0], slow(path, True)[0]


def _heartbeats(traffic: Any, count: int, first: int = 0, **body: Any) -> tuple[list[bytes], list[bytes]]:
    asked = {"GroupId": "g", "GenerationId": 3, "MemberId": "m"}
    return (
        [traffic.request("Heartbeat", 4, asked, ident=first + at) for at in range(count)],
        [traffic.response("Heartbeat", 4, body, ident=first + at) for at in range(count)],
    )


Frames = list[bytes]
IRREGULAR: dict[str, Callable[[Any, Frames, Frames], tuple[Frames, Frames]]] = {
    "regular": lambda _, asked, answers: (asked, answers),
    "another id": lambda _, asked, answers: (asked, [answers[0], *answers[2:], answers[1]]),
    "an answer is missing": lambda _, asked, answers: (asked, [*answers[:9], *answers[10:]]),
    "a request is missing": lambda _, asked, answers: ([*asked[:9], *asked[10:]], answers),
    "bytes behind a body": lambda t, asked, answers: (
        asked,
        [*answers[:9], t.response("Heartbeat", 4, bytes(9), ident=9), *answers[10:]],
    ),
    "a body that is cut": lambda t, asked, answers: (
        [*asked[:9], t.request("Heartbeat", 4, b"\x05ab", ident=9), *asked[10:]],
        answers,
    ),
    "header tags": lambda t, asked, answers: (
        asked,
        [*answers[:9], t.response("Heartbeat", 4, {}, ident=9, tags=b"\1\x63\2ab"), *answers[10:]],
    ),
    "acks=0": lambda t, asked, answers: (
        [*asked[:9], t.request("Produce", 9, {"Acks": 0}, ident=99), *asked[9:]],
        answers,
    ),
    "a version nobody knows": lambda t, asked, answers: (
        [*asked[:9], t.request(12, 20, b"\0\0", ident=9), *asked[10:]],
        answers,
    ),
    "an API nobody knows": lambda t, asked, answers: (
        [*asked[:9], t.request(999, 0, b"", ident=9), *asked[10:]],
        answers,
    ),
    "frames too small": lambda t, asked, answers: (asked, [*answers[:9], t.size_prefixed(b"\0"), *answers[9:]]),
    "a client id that is no text": lambda t, asked, answers: (
        [*asked[:9], t.request("Heartbeat", 4, {}, ident=9, client=b"\xff\x1b["), *asked[10:]],
        answers,
    ),
    "no client id": lambda t, asked, answers: (
        [*asked[:9], t.request("Heartbeat", 4, {}, ident=9, client=None), *asked[10:]],
        answers,
    ),
    "a size that cannot be": lambda _, asked, answers: (asked, [*answers[:2], b"\xff" * 14, *answers[3:]]),
    "a request's size that cannot be": lambda _, asked, answers: ([*asked[:2], b"\xff" * 20, *asked[3:]], answers),
    "a size beyond what comes": lambda _, asked, answers: (
        asked,
        [*answers[:2], b"\0\0\x40" + answers[2][3:], *answers[3:]],
    ),
    "errors": lambda t, asked, answers: (
        asked,
        [*answers[:9], t.response("Heartbeat", 4, {"ErrorCode": 25}, ident=9), *answers[10:]],
    ),
    "an error nobody knows": lambda t, asked, answers: (
        asked,
        [*answers[:9], t.response("Heartbeat", 4, {"ErrorCode": -7}, ident=9), *answers[10:]],
    ),
}


@pytest.mark.parametrize("what", IRREGULAR)
def test_what_is_irregular_in_a_connection(what: str, traffic: Any, taken: Taken, tmp_path: Path) -> None:
    asked, answers = IRREGULAR[what](traffic, *_heartbeats(traffic, 20))
    quick, exact = both(asked, answers, traffic, tmp_path / "made.pcap")
    assert quick == exact
    assert len(exact) > 20
    assert taken.pairs or what != "regular"


@pytest.mark.parametrize(("api", "taken_"), [("SaslHandshake", 20), ("ApiVersions", 20), ("SaslAuthenticate", 20)])
def test_what_says_who_the_client_is(api: str, taken_: int, traffic: Any, taken: Taken, tmp_path: Path) -> None:
    asked = [traffic.request(api, 1, {}, ident=at) for at in range(20)]
    answers = [traffic.response(api, 1, {}, ident=at) for at in range(20)]
    quick, exact = both(asked, answers, traffic, tmp_path / "made.pcap")
    assert quick == exact
    assert taken.pairs == taken_


def test_a_size_beyond_the_bound_is_read_frame_by_frame(traffic: Any, taken: Taken, tmp_path: Path) -> None:
    asked, answers = _heartbeats(traffic, 20)
    path = tmp_path / "made.pcap"
    tcp = traffic.connection()
    for pair in zip(asked, answers, strict=True):
        tcp.send(pair[0]).answer(pair[1])
    traffic.save(path)
    assert lines_of([path], max_size=12) == lines_of([path], max_size=12, careful=True)
    assert taken.pairs == 0


def test_a_client_that_says_its_name_late(traffic: Any, taken: Taken) -> None:
    tcp = traffic.connection()
    for ident in range(30):
        tcp.send(traffic.request("Heartbeat", 4, {}, ident, client=None if ident < 10 else f"late-{ident}"))
        tcp.answer(traffic.response("Heartbeat", 4, ident=ident))
    (over,) = traffic.read().over
    assert (over.client_id, over.exchanges) == ("late-10", 30)
    assert taken.pairs == 30


def test_a_login_in_columns_tells_software_and_principal(traffic: Any, taken: Taken) -> None:
    tcp = traffic.connection()
    said = [
        ("ApiVersions", 3, {"ClientSoftwareName": "c", "ClientSoftwareVersion": "7"}),
        ("SaslHandshake", 1, {"Mechanism": "PLAIN"}),
        ("SaslAuthenticate", 2, {"AuthBytes": b"\0alice\0secret"}),
    ]
    for ident, (api, version, body) in enumerate(said):
        tcp.send(traffic.request(api, version, body, ident))
        tcp.answer(traffic.response(api, version, {}, ident))
    (over,) = traffic.read().over
    identity = over.identity
    assert (identity.software, identity.software_version) == ("c", "7")
    assert (identity.mechanism, identity.principal) == ("PLAIN", "alice")
    assert taken.pairs == 3


def test_requests_that_want_no_answer_are_columns_too(traffic: Any, taken: Taken, tmp_path: Path) -> None:
    asked, answers = _heartbeats(traffic, 10)
    silent = [traffic.request("Produce", 9, {"Acks": 0}, ident=100 + at) for at in range(10)]
    mixed = [frame for both_ in zip(asked, silent, strict=True) for frame in both_]
    quick, exact = both(mixed, answers, traffic, tmp_path / "made.pcap")
    assert quick == exact
    assert taken.pairs == 20


def test_behind_a_lost_packet_columns_go_on(traffic: Any, taken: Taken) -> None:
    """A hole costs the exchanges around it, and both ways say the same of them."""
    tcp = traffic.connection()
    for ident in range(200):
        tcp.send(traffic.request("Heartbeat", 4, {"GroupId": "g"}, ident), lost=ident % 40 == 13)
        tcp.answer(traffic.response("Heartbeat", 4, {}, ident), lost=ident % 40 == 27)
    both = [traffic.read(settings=Settings(careful=careful, thresholds=TOGETHER)) for careful in (False, True)]
    assert sorted(map(repr, both[0].rows)) == sorted(map(repr, both[1].rows))
    assert taken.pairs > 150
    whole = [pair for pair in both[0].pairs if pair[2] and pair[3]]
    assert len(whole) == 190


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_losses_at_random_read_the_same_both_ways(seed: int, traffic: Any) -> None:
    dice = random.Random(seed)
    for port in range(3):
        tcp = traffic.connection(f"10.0.0.7:{5000 + port}", syn=bool(seed % 2))
        for ident in range(60):
            size = dice.choice((1, 30, 3000))
            data = traffic.request("OffsetCommit", 8, {"GroupId": "g" * size}, ident)
            for at in range(0, len(data), 1000):
                tcp.send(data[at : at + 1000], lost=dice.random() < 0.06)
            if dice.random() < 0.95:
                tcp.answer(traffic.response("OffsetCommit", 8, {}, ident), lost=dice.random() < 0.06)
    packets = list(traffic.packets)
    for at in range(len(packets) - 4):
        if dice.random() < 0.05:
            packets[at], packets[at + 3] = packets[at + 3], packets[at]
    for feed in (None, 50):
        both = [
            traffic.read(packets, feed, Settings(careful=careful, thresholds=TOGETHER)) for careful in (False, True)
        ]
        assert sorted(map(repr, both[0].rows)) == sorted(map(repr, both[1].rows))
