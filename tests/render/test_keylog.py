"""The page of kwire explain keylog: every line fits but the commands, and the commands are those that kwire has."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kwire.cli.main import main
from kwire.render.keylog import document, lines, text


@pytest.mark.parametrize("width", [60, 80, 200])
def test_prose_is_wrapped_and_commands_are_not(width: int) -> None:
    shown = ["".join(part for part, _ in line) for line in lines(width)]
    assert all(len(line) <= width or line.startswith("    ") for line in shown)
    assert "    node --tls-keylog=keys.log app.js" in shown


def test_the_options_of_kwires_own_commands_exist() -> None:
    commands = main.commands if hasattr(main, "commands") else {}
    for name, words in re.findall(r"^    kwire (\w+) (.*)$", text(), re.MULTILINE):
        command = commands.get(name)
        if command is None:
            continue
        known = {flag for parameter in command.params for flag in parameter.opts}
        assert set(re.findall(r"(?<!\S)--?[a-z-]+", words)) <= known, name


def test_explain_finds_it(kwire: Any) -> None:
    assert kwire("explain", "keylog").text.startswith("Keys of TLS sessions")
    assert kwire("explain", "SSLKEYLOGFILE").text == kwire("explain", "keylog").text
    assert '"topic": "keylog"' in kwire("explain", "keylog", "--format", "json").text
    assert document()["topic"] == "keylog"
