"""What exchanges are about, from columns and one by one: the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kwire.codec.thresholds import Thresholds
from kwire.session.about import About
from kwire.session.about_columns import LARGE, abouts_of, distinct_bodies
from kwire.session.reader import Settings
from kwire.session.reading import Reading
from kwire.session.select import Selection

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"
NAMES = [
    "classic.pcap.gz", "consumer848.pcap", "franz.pcap.gz", "txn.pcap.gz", "streams.pcap", "share.pcap", "sasl.pcap",
    "sasl-v0.pcap", "admin.pcap.gz", "oldjava.pcap.gz", "evict-max-poll-java.pcap.gz",
]  # fmt: skip
FILES = [path for path in sorted(CAPTURES.glob("*.pcap*")) if path.name in NAMES or path.stem in NAMES]


@pytest.mark.parametrize("few", [0, 24, 1 << 30])
@pytest.mark.parametrize("path", FILES, ids=[path.name.split(".")[0] for path in FILES])
def test_columns_say_what_single_bodies_say(path: Path, few: int) -> None:
    settings = Settings(thresholds=Thresholds(bodies=few))
    single = [exchange.about for batch in Reading([path], tracking=True).batches() for exchange in batch]
    whole: list[About] = []
    for batch in Reading([path], settings, tracking=True).batches():
        found = abouts_of(batch)
        whole += [found.values[place] for place in found.which.tolist()]
        assert [exchange.about for exchange in batch] == whole[-len(batch) :]
    assert whole == single


@pytest.mark.parametrize("few", [0, 1 << 30])
def test_names_that_are_empty_are_no_topics(few: int, traffic: Any, tmp_path: Path) -> None:
    tcp = traffic.connection()
    for number in range(4):
        names = {"TopicNames": ["", f"t{number}", ""], "TimeoutMs": 1}
        tcp.send(traffic.request("DeleteTopics", 1, names, number)).answer(
            traffic.response("DeleteTopics", 1, {}, number)
        )
    settings = Settings(thresholds=Thresholds(bodies=few))
    (batch,) = Reading([traffic.save(tmp_path / "c.pcap")], settings, tracking=True).batches()
    single = [exchange.about.topics for exchange in batch]
    found = abouts_of(batch)
    assert [found.values[place].topics for place in found.which.tolist()] == [{f"t{number}": []} for number in range(4)]
    assert single == [{f"t{number}": []} for number in range(4)]


def test_what_is_alike_is_made_once() -> None:
    heartbeats = 0
    for batch in Reading([CAPTURES / "classic.pcap.gz"], tracking=True).batches():
        kept = Selection.of(api="Heartbeat").wanted(batch, tracking=True)
        heartbeats += len(kept)
        assert len({id(exchange.about) for exchange in kept}) < max(len(kept), 2)
    assert heartbeats > 20


def test_topics_of_exchanges_by_number() -> None:
    for batch in Reading([CAPTURES / "classic.pcap.gz"], tracking=True).batches():
        found = abouts_of(batch)
        names, which, rows = found.topics()
        told = [(row, names[number]) for row, number in zip(rows.tolist(), which.tolist(), strict=True)]
        assert told == [
            (row, name) for row, place in enumerate(found.which.tolist()) for name in found.values[place].topics
        ]


def test_equal_bodies_are_found_unless_one_is_large() -> None:
    bodies = [b"one", b"two", b"one", b"", b"two"]
    ends = np.cumsum([len(body) for body in bodies])
    first, of = distinct_bodies(b"".join(bodies), ends - [len(body) for body in bodies], ends)
    assert (first.tolist(), of.tolist()) == ([0, 1, 3], [0, 1, 0, 2, 1])
    first, of = distinct_bodies(bytes(2 * LARGE + 2), np.array([0, LARGE + 1]), np.array([LARGE + 1, 2 * LARGE + 2]))
    assert (first.tolist(), of.tolist()) == ([0, 1], [0, 1])
