"""Captures of real groups: the verdicts in exact words, with the times and frames of fixtures/README.md."""

from __future__ import annotations

import gzip
from pathlib import Path
from struct import pack, unpack_from

import pytest

from kwire.analyze.findings import Finding, TimeFormat
from kwire.analyze.groups import GroupHistories
from kwire.analyze.history import History
from kwire.analyze.verdicts import judge
from kwire.session.reading import Reading
from kwire.session.select import Selection

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"
FILES = sorted(CAPTURES.glob("*.pcap*"))


def judged(name: str, start: float = 0.0, end: float | None = None, client: str = "") -> dict[str, list[Finding]]:
    """The findings by group. start, end: seconds of the capture that are looked at; client: this client id alone."""
    return {history.name: found for history, found in read(name, start, end, client)}


def read(
    name: str, start: float = 0.0, end: float | None = None, client: str = ""
) -> list[tuple[History, list[Finding]]]:
    reading = Reading([next(CAPTURES.glob(f"{name}.pcap*"))], tracking=True)
    groups = GroupHistories()
    batches = list(reading.batches())
    first = min(reader.first_time or 0 for reader in reading.readers)
    chosen = Selection.of(
        start=first + round(start * 1e9), end=None if end is None else first + round(end * 1e9), client_id=client or ()
    )
    for batch in batches:
        for exchange in chosen.wanted(batch):
            groups.add(exchange)
    groups.finish()
    return [(history, found) for history, _, found in judge(groups, TimeFormat(first)).groups]


@pytest.mark.parametrize(
    ("capture", "group", "said", "frames"),
    [
        (
            "classic",
            "classic-billing",
            "error: classic-c2: UNKNOWN_MEMBER_ID at 15.245 (Heartbeat, check 7: member): evicted at "
            "11.405, 6.0 s after "
            "its last heartbeat (frame 272); session timeout 6,000 ms (JoinGroup, frame 149)",
            [376, 272, 149],
        ),
        (
            "evict-stopped",
            "billing",
            "error: paused: UNKNOWN_MEMBER_ID at 17.234 (Heartbeat, check 7: member): evicted at "
            "12.853, 6.0 s after its "
            "last heartbeat (frame 306); session timeout 6,000 ms (JoinGroup, frame 185)",
            [465, 306, 185],
        ),
        (
            "evict-max-poll",
            "billing",
            "error: slow: left by itself at 11.062 (LeaveGroup, frame 394): its application had not polled for "
            "max.poll.interval.ms, 6,000 ms (JoinGroup, frame 165): 7.2 s passed since its last join or commit",
            [394, 165],
        ),
        (
            "evict-max-poll-java",
            "billing",
            "error: slow-java: left by itself at 11.726 (LeaveGroup, frame 346): it said: consumer poll timeout has "
            "expired (max.poll.interval.ms 5,000 ms, JoinGroup, frame 178)",
            [346, 178],
        ),
        (
            "evict-fenced",
            "billing",
            "error: billing-1: FENCED_INSTANCE_ID at 6.811 (Heartbeat, check 7: instance): client "
            "usurper from 127.0.0.1 "
            "took over its instance id billing-1 at 6.737 (JoinGroup, frame 347)",
            [360, 347],
        ),
        (
            "evict-consumer-protocol",
            "billing",
            "error: paused: UNKNOWN_MEMBER_ID at 17.214 (ConsumerGroupHeartbeat, check 5: member): "
            "evicted at 13.828 or "
            "before, 6.3 s after its last heartbeat (frame 341), when an epoch came without it (frame 410)",
            [447, 341, 410],
        ),
        (
            "evict-slow-joiner",
            "billing",
            "warning: generation 3 took 3.0 s to form from 6.479: late joined 3.0 s after it began, though told to at "
            "6.503 (frame 362)",
            [356, 362, 380],
        ),
        (
            "evict-refused-commits",
            "billing",
            "error: wrong: ILLEGAL_GENERATION at 4.997 (OffsetCommit, check 8: generation): it says generation 0; the "
            "group is at 1 since 1.115 (JoinGroup answer, frame 161); offsets of 1 partition of orders were not stored",
            [420, 161],
        ),
        (
            "evict-refused-commits",
            "ledger",
            "error: transactional: ILLEGAL_GENERATION at 7.315 (TxnOffsetCommit, check 8: generation): it says "
            "generation 1; the group is at 2 since 2.143 (JoinGroup answer, frame 282); offsets of 1 "
            "partition of orders "
            "were not stored",
            [570, 282],
        ),
        (
            "evict-refused-commits",
            "shipping",
            "error: paused: UNKNOWN_MEMBER_ID at 22.183 (OffsetCommit, check 7: member): evicted at "
            "19.013, 6.0 s after "
            "its last heartbeat (frame 785); session timeout 6,000 ms (JoinGroup, frame 736); offsets "
            "of 1 partition of "
            "orders were not stored",
            [795, 785, 736],
        ),
    ],
)
def test_what_happened_when_and_why(capture: str, group: str, said: str, frames: list[int]) -> None:
    (found,) = [one for one in judged(capture)[group] if one.severity != "note"]
    assert f"{found.severity}: {found.what}" == said
    assert [ref.packet for ref in found.evidence] == frames


def test_a_stopped_process_is_told_from_one_that_went_on() -> None:
    (found,) = [one for one in judged("evict-stopped")["billing"] if one.severity == "error"]
    assert found.advice == (
        "Nothing at all came from it from 6.922 to 16.227 (9.3 s): the process was stopped or "
        "paused (GC, swap, SIGSTOP, "
        "a frozen container), or cut off."
    )


@pytest.mark.parametrize("path", FILES, ids=[path.name.split(".")[0] for path in FILES])
def test_no_capture_contradicts_the_model(path: Path) -> None:
    assert [history.contradictions for history, _ in read(path.name.split(".")[0])] == [
        [] for _ in judged(path.name.split(".")[0])
    ]


@pytest.mark.parametrize(
    ("capture", "answers"),
    [("classic", 51), ("evict-stopped", 67), ("evict-fenced", 56), ("evict-refused-commits", 74), ("oldjava", 20)],
)
def test_the_model_foretells_every_answer_of_classic_groups(capture: str, answers: int) -> None:
    assert sum(history.agreed for history, _ in read(capture)) == answers


@pytest.mark.parametrize("capture", ["consumer848", "share", "old39", "oldjava", "pyclients", "txn"])
def test_healthy_groups_have_no_findings(capture: str) -> None:
    assert [one.what for found in judged(capture).values() for one in found] == []


@pytest.mark.parametrize("capture", ["franz", "ipv6", "kafkajs", "mtu1500", "sasl", "streams"])
def test_what_every_start_shows_is_a_note(capture: str) -> None:
    assert {one.severity for found in judged(capture).values() for one in found} == {"note"}


def test_one_members_traffic_alone() -> None:
    found = judged("classic", client="classic-c2")["classic-billing"]
    assert [f"{one.severity}: {one.what}" for one in found] == [
        "error: classic-c2: UNKNOWN_MEMBER_ID at 15.245 (Heartbeat, check 7: member): evicted at "
        "11.405, 6.0 s after its "
        "last heartbeat (frame 272); session timeout 6,000 ms (JoinGroup, frame 149)",
        "note: the capture does not hold all of the group: nothing of what classic-c1 sent is in it",
    ]


def test_a_capture_that_begins_after_the_joins() -> None:
    found = judged("classic", start=4.0)["classic-billing"]
    assert [f"{one.severity}: {one.what}" for one in found] == [
        "error: classic-c2: UNKNOWN_MEMBER_ID at 15.245 (Heartbeat, check 7: member): its last "
        "heartbeat was 9.8 s before "
        "(frame 272); its session timeout is not known, for its JoinGroup is not in the capture; when it came back it "
        "asked for a session timeout of 6,000 ms (JoinGroup, frame 380)",
        "note: the capture does not hold all of the group: the group was at work before (from 4.404 on it is seen)",
    ]


def test_a_capture_that_begins_after_the_eviction() -> None:
    found = judged("classic", start=12.0)["classic-billing"]
    assert found[0].what == (
        "classic-c2: UNKNOWN_MEMBER_ID at 15.245 (Heartbeat): the capture does not show this "
        "member before; it knows the "
        "group from 12.419 on"
    )


def test_a_capture_that_ends_before_the_member_comes_back() -> None:
    found = judged("classic", start=3.35, end=12.0)["classic-billing"][0]
    assert found.what == (
        "classic-c2: evicted at 11.405, 6.0 s after its last heartbeat (frame 272); session "
        "timeout 6,000 ms (JoinGroup, "
        "frame 149)"
    )


def test_generations_with_their_causes_and_what_moved() -> None:
    ((history, _),) = read("evict-stopped")
    found = [
        (one.number, [(cause.kind, cause.label) for cause in one.causes], one.given, one.moved)
        for one in history.generations
    ]
    assert found == [
        (1, [("joined", "paused")], {"paused": 4}, 0),
        (2, [("joined", "steady")], {"paused": 2, "steady": 2}, 2),
        (3, [("evicted", "paused")], {"steady": 4}, 2),
        (4, [("back", "paused")], {"paused": 2, "steady": 2}, 2),
        (5, [("left", "paused")], {"steady": 4}, 2),
    ]


def test_epochs_with_their_causes_and_what_moved() -> None:
    ((history, _),) = read("consumer848")
    found = [(one.number, [cause.kind for cause in one.causes], one.given) for one in history.generations]
    assert found == [
        (2, ["joined"], {"consumer848-c1": 3}),
        (3, ["joined"], {"consumer848-c1": 2, "consumer848-c2": 1}),
        (4, ["left"], {"consumer848-c2": 3}),
    ]
    assert history.interval == 5000


def test_commits_are_kept_by_partition_and_member() -> None:
    ((history, _),) = read("classic")
    assert {(part, one.by) for (_, part), one in history.committed.items()} == {
        (0, "classic-c1"),
        (1, "classic-c1"),
        (2, "classic-c2"),
        (3, "classic-c2"),
    }


@pytest.mark.parametrize(("capture", "kind"), [("share", "share"), ("streams", "streams"), ("classic", "classic")])
def test_kinds_of_groups(capture: str, kind: str) -> None:
    assert [list(history.kinds) for history, _ in read(capture)] == [[kind]]


def test_what_keeps_a_streams_group_from_running() -> None:
    ((_, found),) = read("streams")
    assert [one.what for one in found] == [
        "ASSIGNMENT_DELAYED from 0.984: Assignment delayed due to the configured initial rebalance "
        "delay; over at 6.074",
        "MISSING_INTERNAL_TOPICS from 0.984: Internal topics are missing: streams-wordcount-counts-changelog, "
        "streams-wordcount-counts-repartition; over at 1.093",
    ]


@pytest.mark.parametrize(("capture", "answers"), [("consumer848", 14), ("evict-consumer-protocol", 42)])
def test_the_checks_of_consumer_groups_agree_with_the_answers(capture: str, answers: int) -> None:
    ((history, _),) = read(capture)
    assert (history.agreed, history.disagreed) == (answers, 0)


def test_frames_that_the_capture_cut_off_still_tell_who_and_how_long(tmp_path: Path) -> None:
    data = gzip.decompress((CAPTURES / "evict-stopped.pcap.gz").read_bytes())
    out, at = data[:24], 24
    while at < len(data):
        seconds, micros, length, original = unpack_from("<IIII", data, at)
        kept = data[at + 16 : at + 16 + min(length, 200)]
        out += pack("<IIII", seconds, micros, len(kept), original) + kept
        at += 16 + length
    (tmp_path / "cut.pcap").write_bytes(out)
    reading = Reading([tmp_path / "cut.pcap"], tracking=True)
    groups = GroupHistories()
    for exchange in reading.exchanges():
        groups.add(exchange)
    groups.finish()
    first = min(reader.first_time or 0 for reader in reading.readers)
    ((history, _, found),) = judge(groups, TimeFormat(first)).groups
    assert found[0].what == (
        "paused: UNKNOWN_MEMBER_ID at 17.234 (Heartbeat): evicted at 12.853, 6.0 s after its last "
        "heartbeat (frame 306); "
        "session timeout 6,000 ms (JoinGroup, frame 185)"
    )
    assert [one.number for one in history.generations] == [1, 2, 3, 4, 5]
    assert history.contradictions == []
