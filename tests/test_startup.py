"""Start-up is part of the interface: the everyday commands import nothing heavy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SECOND = {  # what Arrow, numpy and the standard library would import for what tables of a small capture do not need
    "pyarrow.compute", "pyarrow.dataset", "pandas", "pydoc", "asyncio", "rich", "duckdb", "scapy", "multiprocessing",
    "subprocess", "logging", "importlib.metadata", "kwire.analyze.detectors", "kwire.render.html",
}  # fmt: skip
HEAVY = {"scapy", "numpy", "pyarrow", "pandas", "duckdb", "pyspark", "asyncio", "rich", "hypothesis"}
PROGRAM = """
import sys
from kwire.cli.main import main
sys.argv = ["kwire", *sys.argv[1:]]
try:
    main()
except SystemExit as left:
    assert not left.code, left.code
print(*sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""
TABLE = """
import os, sys
from kwire.cli.main import main
sys.argv = ["kwire", "table", "fixtures/captures/kafkajs.pcap", "-o", sys.argv[1]]
try:
    main()
except SystemExit as left:
    assert not left.code, left.code
assert os.environ["OPENBLAS_NUM_THREADS"] == "1"
print(*sys.modules, file=sys.stderr)
"""


def _imported(program: str, *arguments: str) -> set[str]:
    ran = subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(ran.stderr.split())


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["explain", "Heartbeat"],
        ["explain", "27"],
        ["decode", "fixtures/frames/HeartbeatResponse.v3.bin"],
        ["decode", "fixtures/frames/ProduceRequest.v13.bin"],
        ["encode", "HeartbeatRequest", "-v", "4", "{}", "--hex"],
        ["apis"],
    ],
    ids=" ".join,
)
def test_a_command_imports_nothing_heavy(arguments: list[str]) -> None:
    imported = _imported(PROGRAM, *arguments)
    assert {"kwire", "click"} <= imported
    assert imported & HEAVY == set()


def test_tables_import_only_what_they_need(tmp_path: Path) -> None:
    imported = _imported(TABLE, str(tmp_path / "out"))
    assert {"pyarrow.parquet", "kwire.tables.partitions"} <= imported
    assert imported & SECOND == set()


def test_the_public_api_imports_no_command_line() -> None:
    program = "import kwire, sys; kwire.decode('HeartbeatResponse', 3, bytes(6)); print(*sys.modules, file=sys.stderr)"
    imported = _imported(program)
    assert "kwire.codec.values" in imported
    assert imported & {*HEAVY, "click", "kwire.cli", "kwire.render.page"} == set()
