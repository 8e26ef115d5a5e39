"""The index says of every exchange what the exchange itself says, and leads to it again."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, cast

import pytest

from kwire.browse.checkpoints import Checkpoints, Frames
from kwire.browse.index import Index, shown
from kwire.browse.writer import IndexWriter
from kwire.capture.source import Source
from kwire.render.exchanges import about_text, outcome_of
from kwire.session.exchange import Exchange
from kwire.session.reader import Settings
from kwire.session.reading import Reading
from kwire.session.select import Selection

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"
NAMES = ["classic.pcap.gz", "consumer848.pcap", "ipv6.pcap", "kafkajs.pcap", "sasl-v0.pcap", "share.pcap", "tls.pcap"]


class Indexed:
    """A capture's index, made in this process, and what reads its frames again."""

    def __init__(self, path: Path, settings: Settings | None = None) -> None:
        self.reading = Reading([path], settings or Settings(), tracking=True)
        file = tempfile.TemporaryFile()  # noqa: SIM115 (the index maps it)
        self.index, writer = Index(file), IndexWriter(file)
        topics = self.reading.topics()
        reader = self.reading.reader(topics, ordered=False)
        self.checkpoints = Checkpoints([path], self.reading, topics)
        writer.begin(path.name, 0)
        block = 0
        for capture, packets in self.reading.blocks([path]):
            reader.places.begin(path.name, 0)
            for batch in reader.feed(packets):
                writer.add(batch, block)
            block += 1
            self.checkpoints.keep(reader, block, 0, 0, capture)
        for batch in reader.finish():
            writer.add(batch, block)
        writer.release(None)
        self.index.names.extend(writer.take_names())
        self.index.grow(writer.count)
        self.blocks = block


def _exchanges(path: Path) -> list[Exchange]:
    return list(Reading([path], tracking=True).exchanges())


@pytest.mark.parametrize("name", NAMES)
def test_a_row_says_what_its_exchange_says(name: str) -> None:
    known = Indexed(CAPTURES / name)
    exchanges = _exchanges(CAPTURES / name)
    assert len(known.index) == len(exchanges)
    for number, exchange in enumerate(exchanges):
        row = shown(known.index.row(number), known.index.names)
        assert (row.time, row.latency, row.client_id) == (exchange.time, exchange.latency, exchange.client_id or "")
        assert (row.api, row.version, row.ends) == (exchange.api, exchange.api_version, exchange.connection.ends)
        assert (row.correlation_id, row.about) == (exchange.correlation_id, about_text(exchange.about))
        assert outcome_of(cast(Any, row)) == outcome_of(exchange)
        sizes = [message.size if message else None for message in (exchange.request, exchange.response)]
        assert [row.sent, row.got] == sizes


@pytest.mark.parametrize("name", [name for name in NAMES if name != "tls.pcap"])
def test_every_frame_is_found_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the middle of the capture, with nothing kept of the first time."""
    monkeypatch.setitem(cast(Any, Source.__init__).__kwdefaults__, "window", 1 << 13)
    known = Indexed(CAPTURES / name)
    assert known.blocks > 1
    for number, exchange in enumerate(_exchanges(CAPTURES / name)):
        if number % 7:
            continue
        found = Frames().exchange(known.index.row(number), known.checkpoints)
        assert found is not None
        for mine, theirs in ((found.request, exchange.request), (found.response, exchange.response)):
            assert (mine is None) == (theirs is None)
            if mine is not None and theirs is not None:
                assert (mine.data, mine.name, mine.marks) == (theirs.data, theirs.name, theirs.marks)
                assert mine.connection.name == theirs.connection.name
                assert mine.guarded == theirs.guarded


def test_states_take_no_more_room_than_they_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cast(Any, Source.__init__).__kwdefaults__, "window", 1 << 13)
    monkeypatch.setattr("kwire.browse.checkpoints.ROOM", 100_000)
    monkeypatch.setattr("kwire.browse.checkpoints.SHARE", 0)
    known = Indexed(CAPTURES / "classic.pcap.gz")
    points = known.checkpoints._points
    assert sum(len(point.state) for point in points) <= 100_000
    assert len(points) > 1
    last = known.index.row(len(known.index) - 1)
    assert Frames().exchange(last, known.checkpoints) is not None


SELECTIONS = (
    Selection.of(api="Fetch"), Selection.of(api="Heartbeat", errors=True), Selection.of(client_id="*c1"),
    Selection.of(topic="*payments"), Selection.of(group="*"), Selection.of(slower=100_000_000),
    Selection.of(error="*ID*"), Selection.of(id=3), Selection.of(broker=":9092", connection="#1"),
)  # fmt: skip


@pytest.mark.parametrize("selection", SELECTIONS, ids=str)
@pytest.mark.parametrize("name", ["classic.pcap.gz", "consumer848.pcap"])
def test_a_selection_chooses_rows_as_it_chooses_exchanges(name: str, selection: Selection) -> None:
    known = Indexed(CAPTURES / name)
    reading = Reading([CAPTURES / name], tracking=True)
    wanted = [exchange for batch in reading.batches() for exchange in selection.wanted(batch, tracking=True)]
    found = known.index.fitting(selection, 0, len(known.index)).tolist()
    rows = [known.index.row(number) for number in found]
    assert [(int(row["time"]), int(row["correlation"])) for row in rows] == [
        (exchange.time, exchange.correlation_id or 0) for exchange in wanted
    ]


def test_a_packet_leads_to_its_exchange() -> None:
    known = Indexed(CAPTURES / "consumer848.pcap")
    for number, exchange in enumerate(_exchanges(CAPTURES / "consumer848.pcap")):
        for message in (exchange.request, exchange.response):
            if message is not None:
                found = known.index.holding(message.packet)
                assert found is not None
                assert found <= number
