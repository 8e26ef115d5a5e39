"""Several processes give the same rows as one, and what goes wrong in one of them is said."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kwire.errors import KwireError
from kwire.render.bodies import Bodies
from kwire.session.reader import Settings
from kwire.tables import build
from kwire.tables.build import tables_of
from kwire.tables.columns import COLUMNS
from kwire.tables.jobs import JobError, Outcome, _work, build_with_jobs
from kwire.tables.schemas import SCHEMAS

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"
CHOSEN = ["classic.pcap.gz", "franz.pcap.gz", "notkafka.pcap", "oldjava.pcap.gz", "sasl.pcap.gz", "streams.pcap"]


def ordered(rows: list[dict[str, Any]]) -> list[str]:
    """Rows as text in an order of their own; compressions that are as frequent have none."""
    rows = [row | {"compressions": sorted(row["compressions"])} if "compressions" in row else row for row in rows]
    return sorted(map(json.dumps, rows))


def together(paths: list[Path], names: list[str], jobs: int) -> tuple[dict[str, pa.Table], Outcome]:
    parts: dict[str, list[pa.RecordBatch]] = {name: [] for name in names}
    texts = Bodies() if "bodies" in names else None
    outcome = build_with_jobs(paths, names, lambda name, batch: parts[name].append(batch), Settings(), jobs, texts)
    return {name: pa.Table.from_batches(found, SCHEMAS[name]) for name, found in parts.items()}, outcome


@pytest.mark.parametrize("jobs", [1, 2, 3])
@pytest.mark.parametrize("name", CHOSEN)
def test_any_number_of_jobs_gives_the_same_rows(name: str, jobs: int) -> None:
    path = CAPTURES / name
    alone = tables_of([path], COLUMNS, bodies=Bodies())
    found, outcome = together([path], list(COLUMNS), jobs)
    for table, rows in alone.items():
        assert ordered(found[table].to_pylist()) == ordered(rows.to_pylist()), table
    assert outcome.exchanges == alone["exchanges"].num_rows
    assert outcome.notes == []


@pytest.mark.parametrize("names", [["messages"], ["connections", "quality"], ["clients"], ["batches", "messages"]])
def test_some_tables_of_several_captures(names: list[str]) -> None:
    paths = [CAPTURES / name for name in ("franz.pcap.gz", "notkafka.pcap", "txn.pcap.gz")]
    alone, (found, outcome) = tables_of(paths, names), together(paths, names, 2)
    assert list(found) == names
    for name in names:
        assert ordered(found[name].to_pylist()) == ordered(alone[name].to_pylist())
    assert outcome.packets == sum(_packets(path) for path in paths)


def _packets(path: Path) -> int:
    return int(build.build([path], [], lambda *_: None).captures[0].packets)


def test_damage_is_said_once(tmp_path: Path) -> None:
    cut = tmp_path / "cut.pcap"
    cut.write_bytes((CAPTURES / "ipv6.pcap").read_bytes()[:-7])
    found, outcome = together([cut], ["quality", "messages"], 3)
    assert [row["what"] for row in found["quality"].to_pylist()] == ["damaged"]
    assert len(outcome.notes) == 1
    assert outcome.notes[0].startswith("cut.pcap: ")


def broken(error: BaseException | None) -> Callable[..., Any]:
    """What stands in for read_into in the second worker, which are forked from here."""
    whole = build.read_into

    def read(builder: Any, paths: Any, settings: Settings, *rest: Any) -> Any:
        if settings.share is None or settings.share[0] == 1:
            if error is None:
                os._exit(3)
            raise error
        return whole(builder, paths, settings, *rest)

    return read


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
    monkeypatch.setattr(build, "read_into", broken(error))
    with pytest.raises(JobError, match=said):
        together([CAPTURES / "classic.pcap.gz"], ["messages"], 2)
    assert "Traceback" not in capfd.readouterr().err


def test_a_worker_ends_quietly_when_nobody_listens() -> None:
    mine, theirs = Pipe(duplex=False)
    mine.close()
    _work(theirs, [CAPTURES / "classic.pcap.gz"], ["messages"], Settings(), None)
    assert theirs.closed
