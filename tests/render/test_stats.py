"""The numbers of a capture as tables: every width, the busiest rows first, and the document."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire.analyze.stats import Stats
from kwire.render import stats as module
from kwire.render.lines import plain
from kwire.render.stats import document, stats_lines
from kwire.session.reading import Reading

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"


def collected(*names: str) -> Stats:
    stats = Stats()
    for batch in Reading([CAPTURES / name for name in names], tracking=True, ended=stats.close).batches():
        stats.add(batch)
    return stats


CLASSIC = collected("classic.pcap.gz")


def text(stats: Stats, width: int = 100, everything: bool = False) -> list[str]:
    return [plain(line) for line in stats_lines(stats, width, everything)]


@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize("width", [60, 77, 78, 80, 100, 120, 200])
def test_no_line_is_wider_than_the_terminal(width: int, everything: bool) -> None:
    for stats in (CLASSIC, collected("notkafka.pcap"), collected("oldjava.pcap.gz")):
        assert [line for line in text(stats, width, everything) if len(line) > width] == []


def test_narrow_tables_leave_out_bytes_and_the_longest_time() -> None:
    head = next(line for line in text(CLASSIC, 60) if line.startswith("API"))
    assert head.split() == ["API", "count", "errors", "p50", "p99"]
    head = next(line for line in text(CLASSIC, 80) if line.startswith("API"))
    assert head.split() == ["API", "count", "bytes", "errors", "p50", "p99", "max"]


def test_the_busiest_rows_stand_first_and_long_polls_are_marked() -> None:
    lines = text(CLASSIC)
    at = next(number for number, line in enumerate(lines) if line.startswith("API"))
    rows = lines[at + 1 : lines.index("", at)]
    assert rows[0].startswith("Fetch v16 * ")
    assert sorted(CLASSIC.apis, key=lambda name: (-CLASSIC.apis[name].count, name)) == [
        " ".join(line.replace("*", " ").split()[:2]) for line in rows
    ]


def test_only_so_many_rows_unless_all_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROWS", 3)
    assert "… 10 more (--all)" in text(CLASSIC)
    assert not [line for line in text(CLASSIC, everything=True) if "more" in line]


def test_a_curve_over_time_on_wide_terminals() -> None:
    row = next(line for line in text(CLASSIC, 120) if line.startswith("Fetch v16"))
    assert set(row) & set(module.SPARKS)
    assert not set("".join(text(CLASSIC, 80))) & set(module.SPARKS)


def test_the_speed_of_clients_leaves_out_what_the_broker_holds() -> None:
    row = next(line for line in text(CLASSIC, 80) if line.startswith("classic-c1"))
    assert row.split() == ["classic-c1", "89", "6", "1.9", "ms", "27", "ms", "27", "ms", "19.48", "s"]
    held = CLASSIC.clients["classic-c1"]
    assert held.latencies.highest > 500_000_000
    assert held.work.highest < 30_000_000


def test_connections_that_were_refused_are_told_by_their_target() -> None:
    stats = collected("../doctor/broker-gone.pcap.gz")
    assert "  127.0.0.1:19030  refused 6 connections from 127.0.0.1 within 8.6 s" in text(stats)
    assert sum("  refused" in line for line in text(stats)) == 1
    assert sum("  refused" in line for line in text(stats, everything=True)) == 6
    (found,) = document(stats)["refused"]
    assert (found["broker"], found["count"], found["hosts"]) == ("127.0.0.1:19030", 6, ["127.0.0.1"])


def test_who_is_throttled() -> None:
    stats = collected("../doctor/throttled.pcap.gz")
    lines = text(stats, 80)
    at = lines.index("throttled: told to wait by a quota (held has what of it is latency)")
    assert lines[at + 1].split() == ["answers", "longest", "in", "all", "API", "client", "id"]
    assert lines[at + 2].split() == ["17", "3.6", "s", "26.1", "s", "Produce", "limited"]
    (row,) = document(stats)["throttled"]
    assert (row["client"], row["api"], row["count"], row["client_waits"]) == ("limited", "Produce", 17, 17)


def test_which_error_for_whom_on_what() -> None:
    lines = text(CLASSIC, 100)
    at = lines.index("which error, for whom, on what")
    assert lines[at + 1].split("  ")[0] == "count"
    assert lines[at + 2].split() == ["2", "MEMBER_ID_REQUIRED", "JoinGroup", "classic-c2", "classic-billing"]
    narrow = text(CLASSIC, 60)
    assert "       2  MEMBER_ID_REQUIRED  JoinGroup  classic-c2" in narrow


def test_errors_beyond_a_bound_are_only_counted() -> None:
    stats = Stats(failed=3)
    for batch in Reading([CAPTURES / "classic.pcap.gz"], tracking=True, ended=stats.close).batches():
        stats.add(batch)
    assert "… and 8 exchanges with errors that are not told one by one (--errors)" in text(stats)


def test_a_request_that_is_open_when_the_capture_ends_is_no_error() -> None:
    stats = collected("../doctor/libraries-healthy.pcap.gz")
    assert (stats.total.unanswered, stats.total.pending > 0 or stats.total.unseen > 0) == (0, True)


def test_nothing() -> None:
    assert text(Stats()) == ["no exchanges"]


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (14_200, "14.2 kB"), (99_949, "99.9 kB"), (99_951, "100 kB"),
     (999_499, "999 kB"), (999_500, "1.0 MB"), (3_100_000_000, "3.1 GB"), (5 * 10**15, "5000 TB")],
)  # fmt: skip
def test_bytes_in_three_digits(count: int, shown: str) -> None:
    assert module.bytes_text(count) == shown


@pytest.mark.parametrize(("counts", "shown"), [([], ""), ([0, 0], ""), ([0, 1, 8], " ▁█"), ([1, 1], "██")])
def test_curves(counts: list[int], shown: str) -> None:
    assert module._sparkline(counts) == shown


def test_the_document_has_all_of_it() -> None:
    found = document(CLASSIC)
    assert list(found) == [
        "first_time", "last_time", "total", "apis", "clients", "brokers", "topics", "throttled", "refused", "failures",
        "connections_untold", "connections",
    ]  # fmt: skip
    assert [row["count"] for row in found["apis"]] == sorted((row["count"] for row in found["apis"]), reverse=True)
    assert len(found["connections"]) == 10
    assert found["connections"][0]["what"] == "Kafka"
