"""What is shown while traffic goes on: findings when they are certain, when there is more of them, and at the end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from scenes import packets_of
from session.conftest import block

from kwire.analyze.live import LiveDoctor
from kwire.capture.packets import Packets
from kwire.cli import following
from kwire.cli.filters import Filter
from kwire.cli.following import Following, patient
from kwire.cli.wanted import Wanted
from kwire.session.reader import Reader, Settings

DENIED = Path(__file__).parents[2] / "fixtures" / "doctor" / "acl-denied.pcap"
ALL = Wanted((), (), (), (), (), (), False, (), None, None, None, (), (), (), False)


def blocks(interrupted: bool = False) -> Iterator[Packets]:
    packets = packets_of(DENIED)
    for at in range(0, len(packets), 10):
        yield block(packets[at : at + 10], at + 1)
    if interrupted:
        raise KeyboardInterrupt


def diagnosed(output: str, interrupted: bool = False) -> bool:
    doctor = LiveDoctor()
    reader = Reader("lo", patient(Settings()), tracking=True, ended=doctor.close)
    chosen = Filter(ALL.selection(lambda: 0, lambda: 0), ALL)
    return Following(blocks(interrupted), reader, chosen).show_diagnosis(doctor, output)


@pytest.mark.parametrize("interrupted", [False, True])
def test_findings_come_when_they_are_certain_and_all_of_them_at_the_end(
    interrupted: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(following, "LOOK", 0)
    monkeypatch.setattr(following, "SELDOM", 0)
    assert diagnosed("text", interrupted)
    said = capsys.readouterr().out
    live, head, summary = said.partition(" from 2026-11-22 10:18:05 UTC · ")
    assert head
    assert live.count("\nerror    acl-denied · at 10:18:05.") == 2  # each with its first fact
    assert "acl-denied · 10:18:05.111 to 10:18:" in live
    assert " times · was " in live
    assert summary.count("error    acl-denied · 10:18:05.1") == 2
    assert "11 times in 4.0 s" in " ".join(summary.split())
    assert "looked for and not found" in summary


def test_rows_of_json_come_again_when_there_is_more(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(following, "LOOK", 0)
    monkeypatch.setattr(following, "SELDOM", 0)
    assert diagnosed("json")
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    topic = [row["count"] for row in rows if row["about"].get("topic")]
    assert topic == sorted(topic)
    assert len(topic) > 2
    assert topic[-1] == 11


def test_without_a_look_all_comes_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    assert diagnosed("json")
    assert [json.loads(line)["count"] for line in capsys.readouterr().out.splitlines()] == [11, 6]
