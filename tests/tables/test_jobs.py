"""Several processes give the same rows as one, and what goes wrong in one of them is said."""

from __future__ import annotations

import gc
import json
import os
import signal
import time
from collections.abc import Callable
from multiprocessing import Pipe
from pathlib import Path
from struct import unpack_from
from typing import Any

import pyarrow as pa
import pytest
from tablerows import rows_of

from kwire.errors import CaptureError, JobError, KwireError
from kwire.render.bodies import BodyRenderer
from kwire.session.reader import Settings
from kwire.session.reading import Reading
from kwire.tables import build, jobs
from kwire.tables.build import tables_of
from kwire.tables.columns import COLUMNS
from kwire.tables.jobs import build_with_jobs
from kwire.tables.schemas import SCHEMAS

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"
CHOSEN = ["classic.pcap.gz", "franz.pcap.gz", "notkafka.pcap", "oldjava.pcap.gz", "sasl.pcap.gz", "streams.pcap"]


def ordered(rows: list[dict[str, Any]]) -> list[str]:
    """Rows as text in an order of their own; compressions that are as frequent have none."""
    rows = [row | {"compressions": sorted(row["compressions"])} if "compressions" in row else row for row in rows]
    return sorted(map(json.dumps, rows))


def together(paths: list[Path], names: list[str], many: int) -> tuple[dict[str, pa.Table], Reading, int]:
    parts: dict[str, list[pa.RecordBatch]] = {name: [] for name in names}
    texts = BodyRenderer() if "bodies" in names else None
    reading, exchanges = build_with_jobs(
        paths, names, lambda name, batch: parts[name].append(batch), Settings(), many, texts
    )
    return {name: pa.Table.from_batches(found, SCHEMAS[name]) for name, found in parts.items()}, reading, exchanges


@pytest.mark.parametrize("many", [1, 2, 3])
@pytest.mark.parametrize("name", CHOSEN)
def test_any_number_of_jobs_gives_the_same_rows(name: str, many: int) -> None:
    path = CAPTURES / name
    alone = tables_of([path], COLUMNS, bodies=BodyRenderer())
    found, reading, exchanges = together([path], list(COLUMNS), many)
    for table, rows in alone.items():
        assert ordered(rows_of(found[table])) == ordered(rows_of(rows)), table
    assert exchanges == alone["exchanges"].num_rows
    assert reading.notes == []


@pytest.mark.parametrize("names", [["messages"], ["connections", "quality"], ["clients"], ["batches", "messages"]])
def test_some_tables_of_several_captures(names: list[str]) -> None:
    paths = [CAPTURES / name for name in ("franz.pcap.gz", "notkafka.pcap", "txn.pcap.gz")]
    alone, (found, reading, _) = tables_of(paths, names), together(paths, names, 2)
    assert list(found) == names
    for name in names:
        assert ordered(rows_of(found[name])) == ordered(rows_of(alone[name]))
    assert packets_of(reading) == sum(_packets(path) for path in paths)


def packets_of(reading: Reading) -> int:
    return sum(capture.packets for capture in reading.captures)


def _packets(path: Path) -> int:
    return packets_of(build.build([path], [], lambda *_: None))


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="no /proc that lists open files")
def test_nothing_stays_open() -> None:
    together([CAPTURES / "ipv6.pcap"], ["messages"], 2)  # what is opened once and kept
    gc.collect()  # what other tests left
    before = set(os.listdir("/proc/self/fd"))
    together([CAPTURES / "ipv6.pcap"], ["messages"], 2)
    left = set(os.listdir("/proc/self/fd")) - before
    for _ in range(20):  # clients of other tests may open and close sockets all the time: what stays is ours
        time.sleep(0.05)
        left &= set(os.listdir("/proc/self/fd"))
    assert {number: os.readlink(f"/proc/self/fd/{number}") for number in left} == {}


def test_damage_is_said_once(tmp_path: Path) -> None:
    cut = tmp_path / "cut.pcap"
    cut.write_bytes((CAPTURES / "ipv6.pcap").read_bytes()[:-7])
    found, reading, _ = together([cut], ["quality", "messages"], 3)
    assert [row["what"] for row in found["quality"].to_pylist()] == ["damaged"]
    assert len(reading.notes) == 1
    assert reading.notes[0].startswith("cut.pcap: ")


def broken(error: BaseException | None) -> Callable[..., Any]:
    """What stands in for the second worker's obedience; workers are forked from here."""
    whole = jobs._Worker._obey

    def obey(self: Any, *rest: Any) -> None:
        if self.number == 1:
            if error is None:
                os._exit(3)
            raise error
        whole(self, *rest)

    return obey


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (KwireError("made.pcap: is empty"), "^made.pcap: is empty$"),
        (OSError("no such device"), "^no such device$"),
        (RuntimeError("out of luck"), "^RuntimeError: out of luck$"),
        (None, "^a worker ended before it was done$"),
    ],
    ids=["kwire", "system", "unforeseen", "gone"],
)
def test_what_goes_wrong_in_a_worker_is_said(
    error: Exception | None, said: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(jobs._Worker, "_obey", broken(error))
    with pytest.raises(JobError, match=said):
        together([CAPTURES / "classic.pcap.gz"], ["messages"], 2)
    assert "Traceback" not in capfd.readouterr().err


def test_what_is_no_capture_is_said_as_by_one_process(tmp_path: Path) -> None:
    path = tmp_path / "page.pcap"
    path.write_bytes(b"GET / HTTP/1.1\r\n")
    with pytest.raises(CaptureError, match="looks like HTTP"):
        together([path], ["messages"], 2)


def test_workers_end_whatever_this_process_does_with_sigterm(tmp_path: Path) -> None:
    path = tmp_path / "page.pcap"
    path.write_bytes(b"GET / HTTP/1.1\r\n")
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with pytest.raises(CaptureError):
            together([path], ["messages"], 2)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_worker_ends_quietly_when_nobody_asks() -> None:
    orders, asking = Pipe(duplex=False)
    heard, results = Pipe(duplex=False)
    asking.close()
    heard.close()
    jobs._Worker(0, 1, orders, results, [], []).run([], ["messages"], Settings(), None, [])
    assert orders.closed
    assert results.closed


def test_many_small_captures_follow_each_other(tmp_path: Path) -> None:
    """More blocks than there are slots for, of a connection that goes on through all of them."""
    plain = (CAPTURES / "ipv6.pcap").read_bytes()
    packets = cut_into_packets(plain)
    paths = [tmp_path / f"{number:02}.pcap" for number in range(12)]
    for number, path in enumerate(paths):
        path.write_bytes(plain[:24] + b"".join(piece(packets, number, len(paths))))
    alone, (found, reading, _) = tables_of(paths, COLUMNS, bodies=BodyRenderer()), together(paths, list(COLUMNS), 2)
    assert packets_of(reading) == len(packets)
    for table, rows in alone.items():
        assert ordered(rows_of(found[table])) == ordered(rows_of(rows)), table


def cut_into_packets(data: bytes) -> list[bytes]:
    """The records of a little-endian pcap."""
    out, pos = [], 24
    while pos < len(data):
        (size,) = unpack_from("<I", data, pos + 8)
        out.append(data[pos : pos + 16 + size])
        pos += 16 + size
    return out


def piece(packets: list[bytes], number: int, of: int) -> list[bytes]:
    """One of so many parts."""
    step = -(-len(packets) // of)
    return packets[number * step : (number + 1) * step]
