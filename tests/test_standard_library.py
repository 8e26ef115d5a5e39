"""decode and explain run on click, rich and the standard library alone, with the same output: so they run in a browser,
where the rest cannot be had."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from conftest import ROOT

PROGRAM = """
import contextlib, io, json, sys
ALLOWED = {*sys.stdlib_module_names, "kwire", "click", "rich", "markdown_it", "mdurl", "pygments"}

class Refusing:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] not in ALLOWED:
            raise ModuleNotFoundError(f"refused: {name}", name=name)

sys.meta_path.insert(0, Refusing)
from kwire.cli.main import main

for arguments in json.load(sys.stdin):
    sys.argv = ["kwire", *arguments]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            main()
        except SystemExit as left:
            status = left.code
    print(json.dumps([status, out.getvalue()]))
"""
FRAMES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "fixtures/frames").glob("*.bin"))
COMMANDS = [
    *(["decode", path] for path in FRAMES),
    ["decode", "--format", "tree", "fixtures/frames/ProduceRequest.v13.bin"],
    ["decode", "--format", "json", "--inner", "fixtures/frames/FetchResponse.v11.bin"],
    ["decode", "--format", "html", "fixtures/frames/FetchResponse.v16.bin"],
    ["explain", "Fetch"],
    ["explain", "27"],
    ["explain", "REBALANCE_IN_PROGRESS"],
    ["explain", "Fetch.IsolationLevel"],
    ["explain", "varint"],
    ["explain", "Fetch", "--diff", "12", "16"],
    ["explain", "Heartbeat", "--format", "json"],
    ["apis"],
    ["errors"],
]


def _run(*commands: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM], input=json.dumps(commands), cwd=ROOT, capture_output=True, text=True,
        env={"PYTHONPATH": str(ROOT), "COLUMNS": "100", "PYTHONUTF8": "1"}, check=True, timeout=300,
    )  # fmt: skip


def test_decode_and_explain_need_nothing_else(kwire: Callable[..., Any]) -> None:
    ran = _run(*COMMANDS)
    shown = [json.loads(line) for line in ran.stdout.splitlines()]
    assert ran.stderr == ""
    for arguments, (status, text) in zip(COMMANDS, shown, strict=True):
        expected = kwire(*arguments)
        assert (status, text) == (expected.status, expected.text), arguments


def test_the_page_of_a_detector_says_what_it_needs() -> None:
    ran = _run(["explain", "acl-denied"])
    assert ran.stderr == "kwire: the page of a detector needs numpy, which is not installed\n"


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_a_codec_without_cramjam_and_google_crc32c(codec: str, tmp_path: Any) -> None:
    """zstd is of Python 3.14; before that it is said that it was not opened."""
    from kwire.records.build import build
    from kwire.records.read import Record

    (tmp_path / "1.log").write_bytes(build([Record(0, 0, b"k", b"a value" * 9, [])], compression=codec))
    ran = _run(["decode", "-x", str(tmp_path / "1.log")])
    status, text = json.loads(ran.stdout)
    if codec == "zstd" and sys.version_info < (3, 14):
        assert "not opened: there is no zstd in this Python" in text
    else:
        assert status == 0
        assert "a valuea value" in text
