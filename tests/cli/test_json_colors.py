"""JSON in color on a terminal: the same text, its pieces colored; plain into a pipe."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from kwire.cli.json_colors import colored

CAPTURE = "fixtures/captures/classic.pcap.gz"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"a": 1}', '{<36>"a"<0>: <33>1<0>}'),
        ('["x: \\"y\\"", -1.5e3, null, true]', '[<32>"x: \\"y\\""<0>, <33>-1.5e3<0>, <35>null<0>, <35>true<0>]'),
        ('"1 true"', '<32>"1 true"<0>'),
        ("", ""),
    ],
)
def test_pieces(text: str, shown: str) -> None:
    assert re.sub(r"\x1b\[(\d+)m", r"<\1>", colored(text)) == shown


@pytest.mark.parametrize(
    "line",
    [
        "explain 27 --format json", f"read {CAPTURE} --format json --body", f"doctor {CAPTURE} --format json",
        f"stats {CAPTURE} --format json", f"decode {CAPTURE} --frame 8 --format json",
        f"decode {CAPTURE} --frame 8 --format spans", "apis --format json",
    ],
)  # fmt: skip
def test_the_same_text_in_color(line: str, kwire: Any) -> None:
    plain, bright = kwire(*line.split()).text, kwire(*line.split(), "--color", "always").text
    assert "\x1b" not in plain
    assert "\x1b[36m" in bright
    assert re.sub(r"\x1b\[\d+m", "", bright) == plain
    assert bright.count("\x1b[0m") * 2 == bright.count("\x1b")


def test_other_forms_are_left_alone(kwire: Any) -> None:
    assert kwire("apis", "--format", "csv", "--color", "always").text == kwire("apis", "--format", "csv").text


def test_no_color_is_obeyed(kwire: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" in kwire("explain", "27", "--format", "json").text
    monkeypatch.setenv("NO_COLOR", "1")
    assert json.loads(kwire("explain", "27", "--format", "json").text)
