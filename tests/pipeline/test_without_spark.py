"""What is said where Spark cannot run, and what the command says of wrong usage."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from calls import Call

import kwire.pipeline as pipeline


def test_without_pyspark(monkeypatch: pytest.MonkeyPatch, kwire: Call, tmp_path: Path) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "pyspark" else find(name, *more)
    )
    with pytest.raises(pipeline.NoSpark, match=r"pip install 'kwire\[spark\]'"):
        pipeline.need_spark()
    ran = kwire("pipeline", "run", "fixtures", "--out", str(tmp_path))
    assert (ran.status, ran.out, ran.err.count("\n")) == (2, b"", 1)


def test_without_java(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(pipeline.NoSpark, match="Java 17 or newer"):
        pipeline.need_spark()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "nothing.pcap", "-o", "x"], "nothing.pcap"),
        (["run", "fixtures/captures/kafkajs.pcap"], "--out"),
        (["run", "fixtures/captures/kafkajs.pcap", "-o", "x", "--stream"], "one folder"),
        (["run", "fixtures", "-o", "x", "--tables", "mesages"], "did you mean messages"),
        (["report", "fixtures"], "no rollups there"),
    ],
)
def test_wrong_usage_is_one_line_and_status_2(kwire: Call, arguments: list[str], said: str) -> None:
    ran = kwire("pipeline", *arguments)
    assert (ran.status, said in ran.err) == (2, True)
