"""A broker's files as lists: records with their batches, what internal topics hold, entries of indexes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kwire.payloads.files import open_file
from kwire.records.build import build
from kwire.render.lines import plain
from kwire.render.logs import file_lines

LOGS = Path(__file__).parents[2] / "fixtures" / "logs"
LOG = "00000000000000000000.log"


def lines_of(path: str, width: int | None = None, most: int = 0) -> list[str]:
    where = LOGS / path
    kind = "log" if where.suffix == ".checkpoint" else where.suffix[1:]
    return [plain(line) for line in file_lines(open_file(where.read_bytes(), kind, str(where)), width, most)]


def test_a_record_is_a_line_and_batches_are_marked() -> None:
    lines = lines_of(f"share-jobs-1/{LOG}")
    assert lines[:5] == [
        "   offset  time          key       value",
        "           2026-11-21",
        '        0  02:17:15.922  "key-0"   "job 0"',
        "┌  batch at byte 78 · 10 records · producer 2 epoch 0 sequence 1",
        '│       1  02:17:15.954  "key-3"   "job 3"',
    ]
    assert lines[13] == '└      10  02:17:15.955  "key-18"  "job 18"'


def test_so_many_records_and_no_more() -> None:
    lines = lines_of(f"share-jobs-1/{LOG}", most=2)
    assert lines[-2:] == ['└       1  02:17:15.954  "key-3"  "job 3"', "   … 30 more records"]
    assert lines[3] == "┌  batch at byte 78 · 10 records · producer 2 epoch 0 sequence 1"


@pytest.mark.parametrize("path", sorted(path.relative_to(LOGS).as_posix() for path in LOGS.rglob("*.log")))
@pytest.mark.parametrize("width", [60, 80, 200])
def test_lines_are_cut_at_the_width(path: str, width: int) -> None:
    assert max(map(len, lines_of(path, width))) <= width


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("transactions-out-0", "┌  batch at byte 245 · transactional · control · producer 6 epoch 1"),
        ("transactions-out-0", "└       8  02:17:40.316  COMMIT CoordinatorEpoch 0"),
        ("classic-orders-1", "┌  batch at byte 0 · 51 records · lz4: 896 bytes, 2,208 inside"),
        ("classic-orders-1", '│       0  02:16:16.458  "order-0"    "value of order 0"  +1 header'),
        ("__transaction_state-1", "        0  02:17:40.169  txn transactions-1 · EMPTY · producer 6 epoch 0"),
        ("__transaction_state-1",
         "        1  02:17:40.245  txn transactions-1 · ONGOING · producer 6 epoch 0 · transactions-out-0"),
        ("__consumer_offsets-0", "        0  02:16:13.657  group classic-billing · gen 0 · 0 members"),
        ("__consumer_offsets-0",
         "│       3  02:16:16.584  group classic-billing commits classic-orders-0 at 49 leader epoch 0"),
        ("__consumer_offsets-3", "│      12  02:17:33.855  StreamsGroupCurrentMemberAssignment GroupId "
         "streams-wordcount MemberId 67AEo-_6SbabHPPiSWwtrQ deleted"),
        ("__consumer_offsets-3", "└       6  02:17:30.544  StreamsGroupTargetAssignmentMetadata GroupId "
         "streams-wordcount → AssignmentEpoch 3"),
        ("__cluster_metadata-0",
         "│      20  02:16:11.395  TopicRecord Name classic-orders TopicId Z3axOkP1Sw-Je0DgwQhG0Q"),
        ("__cluster_metadata-0", "└      11  02:16:08.997  EndTransactionRecord"),
    ],
)  # fmt: skip
def test_what_is_in_it_is_told(path: str, line: str) -> None:
    assert line in lines_of(f"{path}/{LOG}")


@pytest.mark.parametrize(
    ("path", "lines"),
    [
        ("transactions-out-0/00000000000000000000.txnindex",
         ["  ProducerId  FirstOffset  LastOffset  LastStableOffset",
          "           6            9          15                16",
          "           8           27          28                29"]),
        ("__consumer_offsets-1/00000000000000000000.index", ["  Offset  Position", "      36      4137"]),
        ("transactions-out-0/00000000000000000000.timeindex",
         ["                 Timestamp  Offset", "  2026-11-21 02:17:41.311Z      28"]),
    ],
)  # fmt: skip
def test_an_entry_is_a_row(path: str, lines: list[str]) -> None:
    assert lines_of(path) == lines


def test_entries_that_are_too_wide_take_more_lines() -> None:
    path = "transactions-out-0/00000000000000000029.snapshot"
    assert lines_of(path, 80)[0] == "ProducerId 6  Epoch 3  LastSequence -1  LastOffset -1  OffsetDelta 0"
    assert max(map(len, lines_of(path, 80))) <= 80
    assert lines_of(path)[0].split()[:2] == ["ProducerId", "Epoch"]


def _log(data: bytes) -> list[str]:
    return [plain(line) for line in file_lines(open_file(data, "log"), None)]


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [(b"k", b"v", '"k"  "v"'), (None, b"v", 'null  "v"'), (b"k", None, '"k"  null'),
     (b"\x00\x01", b"\xff\x00", "00 01  ff 00"), (b"k", b"a\x1b[31mb", '"k"  61 1b 5b 33 31 6d 62'),
     (b"k", b'{\n  "a": 1\n}', r'"k"  "{\n  \"a\": 1\n}"'), (b"k", bytes(100), '"k"  ' + "00 " * 48 + "… 100 bytes")],
)  # fmt: skip
def test_keys_and_values_as_text_or_bytes(key: Any, value: Any, shown: str) -> None:
    *_, line = _log(build([(key, value)]))
    assert " ".join(shown.split()) == " ".join(line.split()[2:])


def test_what_is_broken_is_said_where_it_is() -> None:
    raw = bytearray(build([(b"key", b"value"), (b"key", b"other")]))
    raw[-3] ^= 1
    whole = len(raw)
    lines = _log(bytes(raw) + build([(b"a", b"b")])[:40])
    assert "wrong checksum" in lines[1]
    assert lines[-1].startswith(f"!  at byte {whole}: a cut batch: 40 of ")
