"""Folders of what is not done: they go with their driver, or with the next run when it was killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire.staging import LOCK, staging

OLD = ".kwire-0123456789ab"


def test_a_folder_lasts_as_long_as_its_run_and_two_runs_leave_each_other_alone(tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    with staging(str(folder)) as one, staging(str(folder)) as other:
        Path(one, "part").touch()
        assert {path.name for path in folder.iterdir()} == {Path(one).name, Path(other).name}
    with pytest.raises(ValueError, match="failed"), staging(str(folder)):
        raise ValueError("failed")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "files", "stays"),
    [
        (OLD, [LOCK, "rest"], False),  # whose driver is dead
        (OLD, ["rest"], True),  # without a lock: who knows
        (".kwire-stream", [LOCK], True),
        ("messages", [LOCK], True),
    ],
)
def test_what_a_killed_driver_left_goes(tmp_path: Path, name: str, files: list[str], stays: bool) -> None:
    old = tmp_path / name
    old.mkdir()
    for file in files:
        (old / file).touch()
    with staging(str(tmp_path)):
        assert old.exists() is stays
