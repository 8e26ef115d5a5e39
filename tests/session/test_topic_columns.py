"""Names of topics out of batches: those that each exchange tells by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kwire.codec.thresholds import Thresholds
from kwire.session.batch import ExchangeBatch
from kwire.session.reader import Settings
from kwire.session.reading import Reading
from kwire.session.topic_columns import learn, names_of
from kwire.session.topics import Topics, pairs

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"
FIRST, SECOND = UUID(int=7 << 64 | 5), UUID(int=8 << 64 | 5)
few = pytest.mark.parametrize("few", [1, 1000], ids=["columns", "one by one"])


class Names:
    """What each batch tells, and beside it what its exchanges tell one by one."""

    def __init__(self) -> None:
        self.names: dict[tuple[str, UUID], str] = {}
        self.expected: dict[tuple[str, UUID], str] = {}
        self.topics = Topics()

    def add(self, batch: ExchangeBatch) -> None:
        learn(self.topics, batch)
        for owner, ident, name in names_of(batch):
            self.names[batch.connections[owner].name, ident] = name
        for exchange in batch:
            response = exchange.response
            if response is not None and response.api is not None and response.api.tells_names:
                for name, ident in pairs(response.body()):
                    self.expected[exchange.connection.name, ident] = name


def collected(path: Path, few: int) -> Names:
    found = Names()
    for batch in Reading([path], Settings(thresholds=Thresholds(bodies=few))).batches(scans=False):
        found.add(batch)
    return found


@few
@pytest.mark.parametrize("name", ["classic.pcap.gz", "streams.pcap", "old39.pcap.gz"])
def test_of_captures(name: str, few: int) -> None:
    found = collected(CAPTURES / name, few)
    assert found.names == found.expected
    assert found.topics.names == {ident: name for (_, ident), name in found.expected.items()}
    assert found.names


TOPICS: dict[str, tuple[list[dict[str, Any]], dict[UUID, str]]] = {
    "a name and an id": ([{"Name": "t", "TopicId": FIRST}], {FIRST: "t"}),
    "no name": ([{"Name": None, "TopicId": FIRST}, {"Name": "t", "TopicId": SECOND}], {SECOND: "t"}),
    "an empty name": ([{"Name": "", "TopicId": FIRST}], {}),
    "no id": ([{"Name": "t", "TopicId": UUID(int=0)}], {}),
    "an id of two names": ([{"Name": "t", "TopicId": FIRST}, {"Name": "u", "TopicId": FIRST}], {FIRST: "u"}),
    "two ids of a name": ([{"Name": "t", "TopicId": each} for each in (FIRST, SECOND)], {FIRST: "t", SECOND: "t"}),
    "no UTF-8": ([{"Name": "t\udcff", "TopicId": FIRST}], {FIRST: "t\udcff"}),
    "none": ([], {}),
}


@few
@pytest.mark.parametrize("what", TOPICS)
def test_names_beside_ids(what: str, few: int, traffic: Any, tmp_path: Path) -> None:
    topics, names = TOPICS[what]
    tcp = traffic.connection()
    for ident in range(30):
        tcp.send(traffic.request("Metadata", 12, {"Topics": None}, ident))
        tcp.answer(traffic.response("Metadata", 12, {"Topics": topics}, ident))
    found = collected(traffic.save(tmp_path / "made.pcap"), few)
    assert found.names == found.expected
    assert found.topics.names == names
