"""kwire completion: the script lies where each shell looks for it, and completes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kwire.cli.completion import SHELLS, VARIABLE


@pytest.mark.parametrize(
    ("shell", "place"),
    [("bash", ".local/share/bash-completion/completions/kwire"), ("zsh", ".zfunc/_kwire"),
     ("fish", ".config/fish/completions/kwire.fish")],
)  # fmt: skip
def test_it_is_put_where_the_shell_looks(
    shell: str, place: str, kwire: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    ran = kwire("completion", shell)
    assert ran.status == 0
    assert VARIABLE in (tmp_path / place).read_text()
    assert str(tmp_path / place) in ran.err


@pytest.mark.parametrize("shell", SHELLS)
def test_it_can_be_printed(shell: str, kwire: Any) -> None:
    assert VARIABLE in kwire("completion", shell, "--print").text


def test_commands_and_options_are_completed() -> None:
    for words, wanted in (("kwire doc", "doctor"), ("kwire read --slow", "--slower")):
        asked = {VARIABLE: "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        ran = subprocess.run(
            [sys.executable, "-c", "import sys; sys.argv[0] = 'kwire'; from kwire.cli.main import main; main()"],
            env=os.environ | asked, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert wanted in ran.stdout
