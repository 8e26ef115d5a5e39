"""The table of the clients' suites, from verdicts that a file has: nothing runs, and the verdict on kwire is right."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

RUN = Path(__file__).parent / "suites" / "run.py"


def told(folder: Path, kwire: dict[str, str]) -> tuple[int, list[str]]:
    many = {f"test_{n}": "passed" for n in range(300)}
    real = {**many, "late": "passed at the second try", "old": "skipped", "odd": "failed twice"}
    fake = {**many, "late": "failed twice", "old": "passed", "odd": "failed twice"}
    file = folder / "found.json"
    file.write_text(json.dumps({"rskafka": {"kwire": {**real, **kwire}, "kfake": fake, "kafka": real}}))
    done = subprocess.run(
        [sys.executable, str(RUN), "rskafka", "--json", str(file), "--work", str(folder)],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()[2:]


def test_a_broker_as_good_as_the_real_one(tmp_path: Path) -> None:
    status, lines = told(tmp_path, {})
    cells = [cell.strip() for cell in lines[0].split("|")[1:-1]]
    good = "301/1 (1 skipped, 1 passed at the second try)"
    assert cells == ["rskafka 0.6.0", good, "301/2", good]
    assert lines[1:] == ["of 301 tests that pass on kafka 0 do not on kwire: 0.00%"]
    assert status == 0


def test_what_passes_on_the_real_one_only_is_named(tmp_path: Path) -> None:
    status, lines = told(tmp_path, {"test_3": "failed twice", "late": "skipped"})
    assert lines[1:] == [
        "rskafka: 2 of the 301 that pass on kafka do not pass on kwire",
        "  test_3: failed twice; not explained",
        "  late: skipped; not explained",
        "of 301 tests that pass on kafka 2 do not on kwire: 0.66%",
    ]
    assert status == 1


def test_less_than_kfake(tmp_path: Path) -> None:
    worse = {f"test_{n}": "failed twice" for n in range(4)}
    status, lines = told(tmp_path, worse)
    assert "rskafka: 3 more fail on kwire than on kfake" in lines
    assert lines[-1] == "of 301 tests that pass on kafka 4 do not on kwire: 1.33%"
    assert status == 1
