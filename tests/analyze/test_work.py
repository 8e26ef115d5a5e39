"""Waiting behind others on a connection, and work."""

from __future__ import annotations

from typing import Any

import pytest
from scenes import Scene
from session.conftest import block, response

from kwire.analyze.work import Works
from kwire.session.reader import Reader

BEAT = {"GroupId": "billing", "MemberId": "m", "GenerationId": 1}


def test_a_request_waits_for_the_answer_before_it() -> None:
    scene = Scene()
    line = scene.connect(0)
    line.ask(1, "Fetch", 4, {"Topics": []})
    line.ask(1.5, "Heartbeat", 3, BEAT)
    scene.at(4)
    line.tcp.answer(response("Fetch", 4, {"Responses": []}, 1))
    scene.at(4.25)
    line.tcp.answer(response("Heartbeat", 3, {"ErrorCode": 0}, 2))
    reader = Reader("made.pcap")
    (batch,) = [*reader.feed(block(scene.packets, 1)), *reader.finish()]
    found = Works().of(batch)
    by_api = {batch.kinds[int(batch.kind[row])].api: at for at, row in enumerate(found.rows.tolist())}  # type: ignore[union-attr]
    fetch, beat = by_api["Fetch"], by_api["Heartbeat"]
    assert (found.behind[fetch], found.work[fetch], found.held[fetch]) == (0, 3_000_000_000, True)
    assert (found.behind[beat], found.work[beat], found.held[beat]) == (2_500_000_000, 250_000_000, False)
    assert (found.blocker(beat).api, found.blocker(beat).name) == ("Fetch", "FetchResponse v4")
    assert found.count.tolist() == [0, 1]
    assert (found.overlaps[fetch], found.overlaps[beat]) == (False, True)


def test_an_answer_before_its_request_took_no_time_that_is_known() -> None:
    scene = Scene()
    scene.connect(0).ask(1, "Heartbeat", 3, BEAT, {"ErrorCode": 0}, took=-0.2).ask(
        2, "Heartbeat", 3, BEAT, {"ErrorCode": 0}, took=0.004
    )
    reader = Reader("made.pcap")
    (batch,) = [*reader.feed(block(scene.packets, 1)), *reader.finish()]
    assert Works().of(batch).work.tolist() == [4_000_000]


def read_in(scene: Scene, size: int) -> list[tuple[str, int, int, int, bool, str]]:
    """What is said of each exchange when a capture is read in blocks of so many packets."""
    reader, works, out = Reader("made.pcap"), Works(), []
    blocks = [scene.packets[at : at + size] for at in range(0, len(scene.packets), size)]
    read = [batch for at, packets in enumerate(blocks) for batch in reader.feed(block(packets, at * size + 1))]
    for batch in [*read, *reader.finish()]:
        found = works.of(batch)
        assert works.of(batch) is found
        for at, row in enumerate(found.rows.tolist()):
            waits = found.behind[at] > 0
            blocker = found.blocker(at) if waits else None
            place = str(blocker.answer(batch, row)) + blocker.name if blocker is not None else ""
            out.append((batch[row].api, int(found.behind[at]), int(found.work[at]), int(found.count[at]),
                        bool(found.overlaps[at]), place))  # fmt: skip
    return sorted(out)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_it_does_not_matter_where_a_capture_is_cut_into_blocks(size: int) -> None:
    """A long poll, three requests that wait behind it and each other, a throttle and what waits for that."""
    scene = Scene()
    line, other = scene.connect(0), scene.connect(0, "c2")
    for at, api, version, asked in ((1, "Fetch", 4, {"Topics": []}), (1.1, "ListOffsets", 4, {"Topics": []}),
                                    (1.2, "Heartbeat", 3, BEAT), (1.3, "Heartbeat", 3, BEAT)):  # fmt: skip
        line.ask(at, api, version, asked)
        other.ask(at, "Heartbeat", 3, BEAT, {"ErrorCode": 0})
    answers: list[tuple[float, str, int, dict[str, Any]]] = [
        (4, "Fetch", 4, {"Responses": []}), (4.01, "ListOffsets", 4, {"Topics": []}),
        (4.02, "Heartbeat", 3, {"ErrorCode": 0}), (4.5, "Heartbeat", 3, {"ErrorCode": 0, "ThrottleTimeMs": 2000}),
    ]  # fmt: skip
    for number, (at, api, version, answer) in enumerate(answers):
        scene.at(at)
        line.tcp.answer(response(api, version, answer, number + 1))
    line.ask(5, "Heartbeat", 3, BEAT, {"ErrorCode": 0}, took=2)
    whole = read_in(scene, 1000)
    assert read_in(scene, size) == whole
    waited = [one for one in whole if one[1]]
    assert [one[5].removeprefix("made.pcap:").lstrip("0123456789") for one in waited] == [
        "HeartbeatResponse v3" if one[1] < 1_000_000_000 else "FetchResponse v4" for one in waited
    ]
    assert max(one[2] for one in whole if one[0] == "Heartbeat" and one[3] == 4) == 500_000_000
