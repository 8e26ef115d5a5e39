"""Files of a log: a topic's configuration says when a segment ends, what its indexes hold, when it is on the disk."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kwire.broker.configs import SET, TOPIC, Configs
from kwire.broker.segments import LogEntry, SegmentFiles, SegmentRules
from kwire.records import Record, build


class Owner:
    """A topic whose time stands still; run() does what is due later."""

    def __init__(self, **configs: str) -> None:
        self.configs, self.now, self.due = Configs(), 0, list[tuple[int, Callable[[], None]]]()
        for name, value in configs.items():
            self.configs.change(TOPIC, "t", [(name.replace("_", "."), SET, value)])

    def rules(self) -> SegmentRules:
        return SegmentRules.of(lambda name: self.configs.topic("t", name), self.configs.roll_ms("t"))

    def now_ms(self) -> int:
        return self.now

    def later(self, delay_ms: int, act: Callable[[], None]) -> None:
        self.due.append((delay_ms, act))

    def run(self) -> list[int]:
        """What was waited for, ms."""
        delays = [delay for delay, _ in self.due]
        for _, act in self.due:
            act()
        self.due.clear()
        return delays


def entries(count: int, size: int = 2_000, step_ms: int = 1) -> list[LogEntry]:
    made = []
    for base in range(count):
        data = build([Record(base, base * step_ms, None, b"v" * size, [])])
        made.append(LogEntry(base, base, base * step_ms, 0, data))
    return made


def written(folder: Path, owner: Owner, count: int = 20, **how: Any) -> SegmentFiles:
    files = SegmentFiles(folder / "t-0", owner)
    for entry in entries(count, **how):
        files.append(entry)
    return files


def bases(files: SegmentFiles, suffix: str = ".log") -> list[int]:
    return sorted(int(path.name.split(".")[0]) for path in files.folder.glob(f"*{suffix}"))


@pytest.mark.parametrize(("interval", "indexed"), [("0", 19), ("4096", 9), ("30000", 1)])
def test_index_interval_bytes(tmp_path: Path, interval: str, indexed: int) -> None:
    files = written(tmp_path, Owner(index_interval_bytes=interval))
    assert (files.folder / f"{0:020d}.index").stat().st_size == indexed * 8
    assert (files.folder / f"{0:020d}.timeindex").stat().st_size == indexed * 12


@pytest.mark.parametrize(
    ("configs", "begun"),
    [
        ({}, [0]),
        ({"segment_bytes": "10500"}, [0, 5, 10, 15]),
        ({"segment_ms": "6"}, [0, 7, 14]),
        ({"index_interval_bytes": "0", "segment_index_bytes": "72"}, [0, 6, 12, 18]),
    ],
)
def test_where_segments_begin(tmp_path: Path, configs: dict[str, str], begun: list[int]) -> None:
    assert bases(written(tmp_path, Owner(**configs))) == begun
    owner = Owner(**configs)
    files = SegmentFiles(tmp_path / "t-0", owner)
    assert [entry.base for entry in files.read()] == list(range(20))
    assert bases(files) == begun


def test_jitter_ends_segments_before_their_time() -> None:
    assert 0 < Owner(segment_ms="1000", segment_jitter_ms="1000").rules().roll_ms < 1_000
    assert Owner(segment_ms="1000").rules().roll_ms == 1_000


@pytest.mark.parametrize(("messages", "flushed"), [("1", 20), ("5", 4), ("1000", 0)])
def test_flush_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, messages: str, flushed: int) -> None:
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(Path(file.name).suffix))
    written(tmp_path, Owner(flush_messages=messages))
    assert synced.count(".log") == flushed


def test_flush_ms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(Path(file.name).suffix))
    files = written(tmp_path, Owner(flush_ms="100"), 2)
    files.flush_late(99)
    assert synced == []
    files.flush_late(100)
    files.flush_late(1_000)  # nothing was written since
    assert synced == [".log"]


def test_preallocate(tmp_path: Path) -> None:
    files = written(tmp_path, Owner(preallocate="true", segment_bytes="10500"), 7)
    first, second = (files.folder / f"{base:020d}.log" for base in (0, 5))
    assert first.stat().st_size < 10_500 == second.stat().st_size  # the one that is over ends where its batches do
    again = SegmentFiles(files.folder, Owner())  # as after a crash
    assert [entry.base for entry in again.read()] == list(range(7))
    assert second.stat().st_size < 10_500
    closed = written(tmp_path / "closed", Owner(preallocate="true", segment_bytes="10500"), 2)
    closed.close()
    assert (closed.folder / f"{0:020d}.log").stat().st_size < 10_500


def test_file_delete_delay_ms(tmp_path: Path) -> None:
    owner = Owner(segment_bytes="10500", file_delete_delay_ms="700")
    files = written(tmp_path, owner)
    files.drop_before(12)
    assert (bases(files), bases(files, ".log.deleted")) == ([10, 15], [0, 5])
    assert owner.run() == [700]
    assert bases(files, ".log.deleted") == []
    files.drop_before(15)
    again = SegmentFiles(files.folder, owner)  # as after a crash
    assert ([entry.base for entry in again.read()], bases(files, ".log.deleted")) == ([15, 16, 17, 18, 19], [])
    again.delete()
    assert [path.name.split(".")[0] for path in tmp_path.iterdir()] == ["t-0"]
    assert not again.folder.exists()
    assert owner.run()[-1] == 700
    assert list(tmp_path.iterdir()) == []


def test_a_topic_with_the_longest_name_is_deleted(tmp_path: Path) -> None:
    owner = Owner()
    files = SegmentFiles(tmp_path / f"{'t' * 249}-0", owner)
    files.append(entries(1)[0])
    files.delete()
    (gone,) = tmp_path.iterdir()
    assert (len(gone.name), gone.name.endswith("-delete")) == (255, True)
    owner.run()
    assert list(tmp_path.iterdir()) == []
