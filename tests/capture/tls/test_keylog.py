"""Key logs: every kind of line, files that grow, and whatever stands in them that is none."""

from __future__ import annotations

import pickle
import random
from pathlib import Path

import pytest

from kwire.capture.tls import keylog
from kwire.capture.tls.keylog import KeyLog

RANDOM, SECRET = bytes(range(32)), bytes(range(48))
LINE = f"CLIENT_RANDOM {RANDOM.hex()} {SECRET.hex()}\n".encode()


def log_of(text: bytes) -> KeyLog:
    log = KeyLog()
    log.add(text)
    return log


@pytest.mark.parametrize(
    ("line", "label", "key"),
    [
        (LINE, keylog.MASTER, RANDOM),
        (LINE.upper(), keylog.MASTER, RANDOM),
        (LINE.replace(b"\n", b"\r\n"), keylog.MASTER, RANDOM),
        (b"  " + LINE.replace(b" ", b"\t"), keylog.MASTER, RANDOM),
        (LINE.replace(b"CLIENT_RANDOM", b"PMS_CLIENT_RANDOM"), keylog.PREMASTER, RANDOM),
        (LINE.replace(b"CLIENT_RANDOM", b"SERVER_TRAFFIC_SECRET_0"), keylog.TRAFFIC[1], RANDOM),
        (b"RSA Session-ID:0102 Master-Key:" + SECRET.hex().encode(), keylog.SESSION, b"\1\2"),
        (b"RSA 0102030405060708 " + SECRET.hex().encode(), keylog.RSA, bytes(range(1, 9))),
    ],
)
def test_every_kind_of_line(line: bytes, label: str, key: bytes) -> None:
    log = log_of(b"# a comment\n\n" + line)
    assert log.find(label, key) == SECRET
    assert (log.unread, log.added) == (0, 1)


def test_lines_of_labels_that_are_not_needed_are_fine() -> None:
    log = log_of(LINE.replace(b"CLIENT_RANDOM", b"EXPORTER_SECRET"))
    assert (log.unread, log.added) == (0, 0)


def test_what_is_no_key_log_is_counted() -> None:
    assert log_of(b"hello\n" + LINE + b"CLIENT_RANDOM 12 34\n").unread == 2


def test_lines_come_back() -> None:
    text = LINE + LINE.replace(b"CLIENT_RANDOM", b"CLIENT_TRAFFIC_SECRET_0")
    assert "".join(f"{line}\n" for line in log_of(text).lines_of(RANDOM)).encode() == text


def test_a_file_that_grows_is_read_on(tmp_path: Path) -> None:
    path = tmp_path / "keys.log"
    log = KeyLog.of([path], growing=True)
    assert log.find(keylog.MASTER, RANDOM) is None
    path.write_bytes(LINE[:50])
    log.refresh()
    assert log.find(keylog.MASTER, RANDOM) is None
    with path.open("ab") as file:
        file.write(LINE[50:])
    log.refresh()
    assert log.find(keylog.MASTER, RANDOM) == SECRET
    path.write_bytes(LINE.replace(b"0001", b"ffff", 1)[: len(LINE) - 41] + b"\n")  # begun anew, and shorter
    log.refresh()
    assert log.added == 2


def test_a_last_line_without_an_end_counts_where_nothing_grows(tmp_path: Path) -> None:
    path = tmp_path / "keys.log"
    path.write_bytes(LINE.rstrip())
    assert KeyLog.of([path]).find(keylog.MASTER, RANDOM) == SECRET


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        KeyLog.of([tmp_path / "no.log"])


def test_secrets_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keylog, "MOST", 3)
    lines = [f"CLIENT_RANDOM {number:064x} {'ab' * 48}\n".encode() for number in range(5)]
    log = log_of(b"".join(lines))
    assert [log.find(keylog.MASTER, number.to_bytes(32, "big")) is None for number in range(5)] == [True] * 2 + [
        False
    ] * 3


def test_it_travels_to_other_processes() -> None:
    assert pickle.loads(pickle.dumps(log_of(LINE))).find(keylog.MASTER, RANDOM) == SECRET


@pytest.mark.parametrize("seed", range(30))
def test_mutated_logs_never_fail(seed: int) -> None:
    rng = random.Random(seed)
    text = bytearray(LINE * 20 + b"RSA Session-ID:0102 Master-Key:" + SECRET.hex().encode() + b"\n")
    for _ in range(30):
        text[rng.randrange(len(text))] = rng.randrange(256)
    log = log_of(bytes(text))
    assert log.added <= 21
