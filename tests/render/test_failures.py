"""The broker's words beneath a line, and the table of errors: each text once, in every width, nothing obeyed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kwire.analyze.failures import AnsweredError, FailureKind, Failures
from kwire.analyze.findings import Reference, TimeFormat
from kwire.render import failures as module
from kwire.render.failures import failures_lines, word_lines
from kwire.render.lines import Line

NASTY = "\x1b[31m[red]\u202e\n" + "x" * 300
REF = Reference("a.pcap", 17, 2_000_000_000, "c>b#1", "ProduceResponse v9")


def plain(line: Line) -> str:
    return "".join(text for text, _ in line)


def said(monkeypatch: pytest.MonkeyPatch, *found: AnsweredError, bounded: bool = True, width: int = 80) -> list[str]:
    monkeypatch.setattr(module, "failures_of", lambda _: found)
    exchange: Any = SimpleNamespace()
    return [plain(line) for line in word_lines(exchange, width, 13, bounded)]


def test_each_text_stands_once_with_what_it_is_about(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [AnsweredError(6, f"orders-{part}", "moved") for part in range(4)]
    found += [
        AnsweredError(87, "orders-9", "rejected", ((2, "no key"), (3, ""), (4, "rejected"))),
        AnsweredError(1, "x"),
    ]
    assert said(monkeypatch, *found) == [
        "             ╰ orders-0, orders-1 and 2 more: moved",
        "             ╰ orders-9: rejected",
        "             ╰ orders-9: record 2: no key",
    ]


def test_many_texts_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = said(monkeypatch, *[AnsweredError(6, "", f"text {number}") for number in range(9)])
    assert lines[-1] == "               … 5 more (-x)"
    assert len(lines) == 5


@pytest.mark.parametrize("width", [60, 80, 200])
def test_text_from_the_wire_is_safe_and_fits(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = said(monkeypatch, AnsweredError(6, NASTY, NASTY), width=width)
    failures = Failures()
    failures.kinds[NASTY, NASTY[:9], NASTY, NASTY] = FailureKind(
        3, REF._replace(capture=NASTY, several=True), REF, NASTY, 2
    )
    table = [plain(line) for line in failures_lines(failures, TimeFormat(0), width, False)]
    assert "".join(lines + table).isprintable()
    assert max(map(len, lines + table)) <= width


def test_a_pipe_gets_a_text_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    (line,) = said(monkeypatch, AnsweredError(6, "orders-0", "word " * 100), bounded=False)
    assert line.endswith("word " * 100)


def test_the_table_says_which_error_for_whom_on_what_and_when() -> None:
    failures = Failures()
    failures.kinds["INVALID_RECORD", "Produce", "cart-1", "orders-3"] = FailureKind(
        12, REF, REF._replace(packet=80, time=9_123_000_000), "no key", 3
    )
    failures.kinds["no answer", "Metadata", "", ""] = FailureKind(1, REF, REF, "")
    assert [plain(line) for line in failures_lines(failures, TimeFormat(0), 100, False)] == [
        "      12  INVALID_RECORD  Produce  cart-1  orders-3",
        "          from 2.000 (frame 17) to 9.123 (frame 80)",
        "          ╰ no key (3 times in other words)",
        "       1  no answer  Metadata  (no client id)",
        "          at 2.000 (frame 17)",
    ]


@pytest.mark.parametrize(("capture", "words"), [
    ("sasl.pcap.gz", "Authentication failed: Invalid username or password"),
    ("franz.pcap.gz", "franz-absent: This server does not host this topic-partition."),
])  # fmt: skip
@pytest.mark.parametrize("command", ["read", "stats"])
def test_commands_show_them(command: str, capture: str, words: str, kwire: Any) -> None:
    text = kwire(command, f"fixtures/captures/{capture}", "--errors", columns=120).text
    assert f"╰ {words.removeprefix('franz-absent: ') if command == 'stats' else words}\n" in text
    if command == "stats":
        assert words not in kwire(command, f"fixtures/captures/{capture}", columns=120).text
        assert '"failures": [' in kwire(command, f"fixtures/captures/{capture}", "--errors", "--format", "json").text


def test_groups_show_them(kwire: Any) -> None:
    text = kwire("groups", "fixtures/captures/evict-consumer-protocol.pcap.gz", columns=200).text
    assert "\n         the broker says: Member mRu0oV5RQUSyROc1MusC2Q is not a member of group billing.\n" in text
