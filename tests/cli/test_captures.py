"""What the commands that read captures share: times and sizes as arguments, which connections and exchanges, damage."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from kwire.cli.captures import Progress, processes
from kwire.cli.quantities import Duration, Instant, Moment, Size
from kwire.errors import Exit

CAPTURES = "fixtures/captures/"
CLASSIC = CAPTURES + "classic.pcap.gz"
ROOT = Path(__file__).parents[2]
COMMANDS = pytest.mark.parametrize("command", ["read", "stats", "clients"])


@pytest.mark.parametrize(
    ("given", "nanoseconds"),
    [("100ms", 100_000_000), ("1.5s", 1_500_000_000), ("2", 2_000_000_000), ("250us", 250_000), ("250µs", 250_000),
     ("7ns", 7), ("5m", 300_000_000_000), (" 3 ms ", 3_000_000)],
)  # fmt: skip
def test_durations(given: str, nanoseconds: int) -> None:
    assert Duration().convert(given, None, None) == nanoseconds


@pytest.mark.parametrize("given", ["", "ms", "-1s", "1h", "1e3s", "one", "9" * 400])
def test_what_is_no_duration(given: str) -> None:
    with pytest.raises(click.BadParameter, match=f"{given} is no duration; as 100ms, 1.5s"):
        Duration().convert(given, None, None)


@pytest.mark.parametrize(
    ("given", "size"),
    [("512", 512), ("512k", 512 << 10), ("64m", 64 << 20), ("2G", 2 << 30), ("64MiB", 64 << 20), ("1 kb", 1024)],
)
def test_sizes(given: str, size: int) -> None:
    assert Size().convert(given, None, None) == size


@pytest.mark.parametrize("given", ["", "m", "-1", "1.5m", "1t"])
def test_what_is_no_size(given: str) -> None:
    with pytest.raises(click.BadParameter, match=f"{given} is no size; as 512k, 64m"):
        Size().convert(given, None, None)


@pytest.mark.parametrize(
    ("given", "moment"),
    [
        ("12.5", ("start", 12_500_000_000, 1)),
        ("12.853", ("start", 12_853_000_000, 1_000_000)),
        ("2.314049", ("start", 2_314_049_000, 1_000)),
        ("0", ("start", 0, 1)),
        ("+3s", ("start", 3_000_000_000, 1)),
        ("+250ms", ("start", 250_000_000, 1)),
        ("5m", ("start", 300_000_000_000, 1)),
        ("00:00", ("day", 0, 60_000_000_000)),
        ("1:02:03", ("day", 3_723_000_000_000, 1_000_000_000)),
        ("22:46:53.12", ("day", 82_013_120_000_000, 10_000_000)),
        ("22:46:53.123456789", ("day", 82_013_123_456_789, 1)),
        ("00:30:00+01:00", ("day", 84_600_000_000_000, 1_000_000_000)),
        ("1970-01-01T00:00:01", ("epoch", 1_000_000_000, 1_000_000_000)),
        ("1970-01-01T00:00:01.000002", ("epoch", 1_000_002_000, 1_000)),
        ("1970-01-01 01:00:00+01:00", ("epoch", 0, 1_000_000_000)),
        ("1970-01-01T00:00:01Z", ("epoch", 1_000_000_000, 1_000_000_000)),
        ("1970-01-02", ("epoch", 86_400_000_000_000, 86_400_000_000_000)),
        ("2026-11-21T02:16:11.331748", ("epoch", 1_795_227_371_331_748_000, 1_000)),
        ("1795227371331748000", ("epoch", 1_795_227_371_331_748_000, 1)),
        (Instant("epoch", 7, 1), ("epoch", 7, 1)),
    ],
)
def test_moments(given: Any, moment: tuple[str, int, int]) -> None:
    assert Moment().convert(given, None, None) == moment


@pytest.mark.parametrize("given", ["", "-1", "noon", "25:00", "22:61", "22:46:", "2026-13-01T00:00:00", "9" * 400])
def test_what_is_no_moment(given: str) -> None:
    with pytest.raises(click.BadParameter, match=r"is no time; as 12\.5"):
        Moment().convert(given, None, None)


@pytest.mark.parametrize(
    ("clock", "first", "last", "moment"),
    [("22:46:53", "1970-01-05T22:00:00", "1970-01-05T23:00:00", "1970-01-05T22:46:53"),
     ("22:46:53", "1970-01-05T22:50:00", "1970-01-05T23:00:00", "1970-01-05T22:46:53"),
     ("22:46:53", "1970-01-05T22:46:53.5", "1970-01-09T23:00:00", "1970-01-05T22:46:53"),
     ("00:10", "1970-01-05T23:50:00", "1970-01-06T00:20:00", "1970-01-06T00:10"),
     ("23:40", "1970-01-05T23:50:00", "1970-01-06T00:20:00", "1970-01-05T23:40")],
)  # fmt: skip
def test_a_time_of_day_is_of_the_captures_date(clock: str, first: str, last: str, moment: str) -> None:
    given, begun, ended, expected = (Moment().convert(text, None, None) for text in (clock, first, last, moment))
    assert given.of(lambda: begun.ns, lambda: ended.ns) == expected.ns


def _ids(kwire: Any, *options: str, path: str = CLASSIC) -> list[tuple[str, int]]:
    """The requests that the options leave: their APIs and correlation ids."""
    rows = map(json.loads, kwire("read", path, "--format", "json", *options).text.splitlines())
    return [(row["api"], row["correlation_id"]) for row in rows if row["kind"] == "request"]


def _wanted(kwire: Any, holds: Callable[[dict[str, Any], dict[str, Any]], bool]) -> list[tuple[str, int]]:
    """The same, by a look at every exchange's rows."""
    rows = [json.loads(line) for line in kwire("read", CLASSIC, "--format", "json").text.splitlines()]
    answers = {(row["connection"], row["correlation_id"]): row for row in rows if row["kind"] == "response"}
    return [
        (row["api"], row["correlation_id"])
        for row in rows
        if row["kind"] == "request" and holds(row, answers.get((row["connection"], row["correlation_id"]), {}))
    ]


@pytest.mark.parametrize(
    ("options", "holds"),
    [
        ((), lambda *_: True),
        (("--api", "Heartbeat"), lambda asked, _: asked["api_key"] == 12),
        (("--api", "12"), lambda asked, _: asked["api_key"] == 12),
        (("--api", "heartbeat", "--api", "SyncGroup"), lambda asked, _: asked["api_key"] in (12, 14)),
        (("--client-id", "classic-c1"), lambda asked, _: asked["client_id"] == "classic-c1"),
        (("--client-id", "*-c?"), lambda asked, _: asked["client_id"] in ("classic-c1", "classic-c2")),
        (("--client", "127.0.0.1"), lambda *_: True),
        (("--client", ":9092"), lambda *_: False),
        (("--broker", "127.0.0.1:9092"), lambda *_: True),
        (("--broker", ":9093"), lambda *_: False),
        (("--id", "6"), lambda asked, _: asked["correlation_id"] == 6),
        (("--id", "6", "--id", "7"), lambda asked, _: asked["correlation_id"] in (6, 7)),
        (("--connection", "#1"), lambda *_: True),
        (("--connection", "#2"), lambda *_: False),
        (("--errors",), lambda _, answer: bool(answer.get("errors", 1))),
        (("--slower", "100ms"), lambda _, answer: answer.get("latency_ns", 0) >= 100_000_000),
        (("--slower", "0.1", "--api", "JoinGroup"),
         lambda asked, answer: answer.get("latency_ns", 0) >= 100_000_000 and asked["api_key"] == 11),
        (("--api", "Heartbeat", "--errors", "--client-id", "classic-c2"),
         lambda asked, answer: asked["api_key"] == 12 and asked["client_id"] == "classic-c2" and answer["errors"]),
        (("--port", "9092"), lambda *_: True),
        (("--port", "9092", "--port", "1"), lambda *_: True),
        (("--port", "1"), lambda *_: False),
        (("--host", "127.0.0.1"), lambda *_: True),
        (("--host", "10.0.0.1"), lambda *_: False),
        (("--host", "::1"), lambda *_: False),
    ],
)  # fmt: skip
def test_each_option_leaves_what_it_says(options: tuple[str, ...], holds: Any, kwire: Any) -> None:
    assert _ids(kwire, *options) == _wanted(kwire, holds)


@pytest.mark.parametrize(
    ("options", "count"),
    [(("--topic", "classic-orders"), 93), (("--topic", "classic-*", "--errors"), 2), (("--topic", "nothing"), 0),
     (("--group", "classic-billing", "--api", "JoinGroup"), 10), (("--group", "*-billing", "--topic", "nothing"), 0)],
)  # fmt: skip
def test_topics_and_groups(options: tuple[str, ...], count: int, kwire: Any) -> None:
    assert len(_ids(kwire, *options)) == count


def test_times_count_from_the_start_or_are_of_the_day(kwire: Any) -> None:
    rows = [json.loads(line) for line in kwire("read", CLASSIC, "--format", "json").text.splitlines()]
    times = [row["time"] for row in rows if row["kind"] == "request"]
    middle = _ids(kwire, "--from", "3", "--to", "10")
    assert 0 < len(middle) < len(times)
    assert len(_ids(kwire, "--to", "2.999999")) + len(_ids(kwire, "--from", "3")) == len(times)
    clock = "2026-11-21T02:16:14"
    ns = 1_795_227_374_000_000_000
    assert len(_ids(kwire, "--from", clock)) == sum(time >= ns for time in times)
    assert len(_ids(kwire, "--to", clock)) == sum(time < ns + 1_000_000_000 for time in times)
    assert _ids(kwire, "--from", clock + "+00:00") == _ids(kwire, "--from", clock)
    assert _ids(kwire, "--from", "02:16:14") == _ids(kwire, "--from", str(ns)) == _ids(kwire, "--from", clock)


def test_times_as_kwire_shows_them_choose_what_they_stand_beside(kwire: Any) -> None:
    for options in ((), ("--utc",)):
        (line,) = kwire("read", CLASSIC, "--api", "LeaveGroup", *options).text.splitlines()[1:2]
        shown = line.split()[0]
        assert ("LeaveGroup", 29) in _ids(kwire, "--from", shown, "--to", shown), shown
        assert len(_ids(kwire, "--from", shown, "--to", shown)) == 1


def test_times_from_the_start_of_stdin_cannot_be_told(kwire: Any) -> None:
    ran = kwire("read", "-", "--from", "1", stdin=b"")
    assert (ran.status, ran.out) == (Exit.USAGE, b"")
    assert (
        "Error: times from the start, and of the day without a date, need files; stdin can be read only once" in ran.err
    )


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--host", "no such host"), "Error: no address no such host"),
        (("--api", "Heartbaet"), "kwire: no message Heartbaet; did you mean Heartbeat"),
        (("--api", "999"), "kwire: no API key 999"),
        (("--api", "AbortedTxn"), "kwire: no "),
        (("--port", "0"), "Error: Invalid value for '--port': 0 is not in the range 1<=x<=65535."),
        (("--slower", "soon"), "Error: Invalid value for '--slower': soon is no duration"),
        (("--from", "noon"), "Error: Invalid value for '--from': noon is no time"),
        (("--id", "x"), "Error: Invalid value for '--id': 'x' is not a valid integer."),
        (("--max-frame", "big"), "Error: Invalid value for '--max-frame': big is no size"),
        (("-", "-"), "Error: stdin can be read only once"),
    ],
)
@COMMANDS
def test_wrong_usage(command: str, options: tuple[str, ...], complaint: str, kwire: Any) -> None:
    ran = kwire(command, CLASSIC, *options)
    assert complaint in ran.err
    assert (ran.out, ran.status) == (b"", Exit.USAGE)


def _damaged(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes())[:5000]


@pytest.mark.parametrize(
    ("name", "data", "complaint", "status"),
    [
        ("empty.pcap", b"", "kwire: empty.pcap: is empty\n", Exit.USAGE),
        ("empty.pcap.gz", gzip.compress(b"", mtime=0), "kwire: empty.pcap.gz: is empty\n", Exit.USAGE),
        ("notes.txt", b"GET / HTTP/1.1\r\n\r\n", "kwire: notes.txt: neither pcap nor pcapng: it begins with "
         "47 45 54 20; it looks like HTTP request\n", Exit.USAGE),
        ("bytes.bin", b"\1\2\3\4\5", "kwire: bytes.bin: neither pcap nor pcapng: it begins with 01 02 03 04; "
         "kwire decode reads bytes that are no capture\n", Exit.USAGE),
        ("header.pcap", (ROOT / CAPTURES / "share.pcap").read_bytes()[:24],
         "kwire: no Kafka in it (kwire read --not-kafka shows what there is)\n", Exit.NOT_KAFKA),
    ],
)  # fmt: skip
@COMMANDS
def test_files_without_anything_to_read(
    command: str, name: str, data: bytes, complaint: str, status: Exit, kwire: Any, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(data)
    ran = kwire(command, str(tmp_path / name))
    assert ran.err.endswith(complaint)
    assert ran.status == status


@COMMANDS
def test_no_file_and_a_directory(command: str, kwire: Any, tmp_path: Path) -> None:
    for path, complaint in (("nowhere.pcap", "No such file or directory"), (str(tmp_path), "Is a directory")):
        ran = kwire(command, path)
        assert (ran.err, ran.out, ran.status) == (f"kwire: {path}: {complaint}\n", b"", Exit.USAGE)


@pytest.mark.parametrize("cut", [5000, 5007])
@COMMANDS
def test_a_file_that_is_cut_is_read_as_far_as_it_goes(command: str, cut: int, kwire: Any, tmp_path: Path) -> None:
    path = tmp_path / "cut.pcap"
    path.write_bytes(gzip.decompress((ROOT / CLASSIC).read_bytes())[:cut])
    ran = kwire(command, str(path))
    assert "classic-admin" in ran.text
    assert "kwire: cut.pcap: " in ran.err
    assert ran.status == Exit.MALFORMED


@COMMANDS
def test_a_gzip_that_is_cut(command: str, kwire: Any, tmp_path: Path) -> None:
    path = tmp_path / "cut.pcap.gz"
    path.write_bytes((ROOT / CLASSIC).read_bytes()[:9000])
    ran = kwire(command, str(path))
    assert "classic-admin" in ran.text
    assert "kwire: cut.pcap.gz: the compressed file is damaged or cut: " in ran.err
    assert ran.status == Exit.MALFORMED


@COMMANDS
def test_stdin_gzip_or_not_is_read_like_a_file(command: str, kwire: Any) -> None:
    packed = (ROOT / CLASSIC).read_bytes()
    file = kwire(command, CLASSIC)
    for data in (packed, gzip.decompress(packed)):
        ran = kwire(command, "-", stdin=data)
        assert (ran.out, ran.err, ran.status) == (file.out, file.err, Exit.OK)


@COMMANDS
def test_no_kafka_is_a_status_of_its_own(command: str, kwire: Any) -> None:
    assert kwire(command, CLASSIC, "--port", "1").status == Exit.NOT_KAFKA


class _Terminal:
    def isatty(self) -> bool:
        return True

    def write(self, _: str) -> int:
        return 0

    def flush(self) -> None:
        pass


def test_a_bar_shows_only_on_a_terminal_and_only_when_it_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    quiet = Progress(False)
    quiet.show("a.pcap", 1, 10)
    assert quiet._bar is None
    monkeypatch.setattr("sys.stderr", _Terminal())
    wanted = Progress(True)
    wanted._clock = lambda: wanted._begun + 0.5
    wanted.show("a.pcap", 1, 10)
    assert wanted._bar is None
    wanted._clock = lambda: wanted._begun + 2
    wanted.show("a.pcap", 5, 10)
    assert wanted._bar is not None
    assert [task.completed for task in wanted._bar.tasks] == [5]
    wanted.stop()


@pytest.mark.parametrize(
    ("size", "asked", "many"), [(100, None, 1), (16 << 20, None, 4), (100, 3, 3), (1 << 30, 1, 1)],
    ids=["little", "much", "asked for more", "asked for one"],
)  # fmt: skip
def test_processes(size: int, asked: int | None, many: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    with open(tmp_path / "half", "wb") as file:
        file.truncate(size // 2)
    assert processes([tmp_path / "half"] * 2, asked) == many


def test_one_process_reads_what_cannot_be_read_twice() -> None:
    assert processes([CLASSIC, "-"], 7) == 1


def test_one_process_where_none_can_be_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "fork")
    assert processes([ROOT / CLASSIC], 7) == 1


def test_a_filter_behind_not_leaves_out_what_fits_it(kwire: Any) -> None:
    def apis(*options: str) -> set[str]:
        ran = kwire("read", CLASSIC, "--format", "tsv", "--fields", "api", *options)
        assert ran.status in (0, 1)
        return set(ran.text.split())

    every = apis()
    assert apis("--not", "--api", "Fetch") == every - {"Fetch"} != every
    assert apis("--not", "--api", "Fetch", "--not", "--api", "*Group") == {
        api for api in every if api != "Fetch" and not api.endswith("Group")
    }
    assert "JoinGroup" in apis("--error", "MEMBER_ID_REQUIRED")
    assert apis("--error", "MEMBER_ID_REQUIRED", "--settled") == set()


@pytest.mark.parametrize("given", [["--errors", "x"], ["--api=Fetch", "x"], ["--id", "x"]])
def test_not_stands_before_a_filter_with_a_value(given: list[str], kwire: Any) -> None:
    ran = kwire("read", CLASSIC, "--not", *given)
    assert (ran.status, "write --not FILTER VALUE" in " ".join(ran.err.split())) == (2, True)
