"""Waiting behind others on a connection, and work."""

from __future__ import annotations

from scenes import Scene
from session.conftest import block

from kwire.analyze.work import work_of
from kwire.session.reader import Reader

BEAT = {"GroupId": "billing", "MemberId": "m", "GenerationId": 1}


def test_a_request_waits_for_the_answer_before_it() -> None:
    scene = Scene()
    line = scene.connect(0)
    line.ask(1, "Fetch", 4, {"Topics": []})
    line.ask(1.5, "Heartbeat", 3, BEAT)
    from session.conftest import response

    scene.at(4)
    line.tcp.answer(response("Fetch", 4, {"Responses": []}, 1))
    scene.at(4.25)
    line.tcp.answer(response("Heartbeat", 3, {"ErrorCode": 0}, 2))
    reader = Reader("made.pcap")
    (batch,) = [*reader.feed(block(scene.packets, 1)), *reader.finish()]
    found = work_of(batch)
    by_api = {batch.kinds[int(batch.kind[row])].api: at for at, row in enumerate(found.rows.tolist())}  # type: ignore[union-attr]
    fetch, beat = by_api["Fetch"], by_api["Heartbeat"]
    assert (found.behind[fetch], found.work[fetch], found.held[fetch]) == (0, 3_000_000_000, True)
    assert (found.behind[beat], found.work[beat], found.held[beat]) == (2_500_000_000, 250_000_000, False)
    assert found.before[beat] == found.rows[fetch]


def test_an_answer_before_its_request_took_no_time_that_is_known() -> None:
    scene = Scene()
    scene.connect(0).ask(1, "Heartbeat", 3, BEAT, {"ErrorCode": 0}, took=-0.2).ask(
        2, "Heartbeat", 3, BEAT, {"ErrorCode": 0}, took=0.004
    )
    reader = Reader("made.pcap")
    (batch,) = [*reader.feed(block(scene.packets, 1)), *reader.finish()]
    assert work_of(batch).work.tolist() == [4_000_000]
