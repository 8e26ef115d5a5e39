"""Transcripts: each .txt file here holds commands and exactly what they print. pytest --rewrite writes them anew.

A file begins with "# columns 80". A command stands behind "$ ": kwire and the few others below, piped into one another
as in a shell, from the repository's root. Lines of stderr begin with "! "; an exit status that is not 0 comes last.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FILES = sorted(HERE.glob("*.txt"))


def _echo(arguments: list[str], _: bytes) -> bytes:
    return " ".join(arguments).encode() + b"\n"


def _cat(arguments: list[str], stdin: bytes) -> bytes:
    return b"".join((ROOT / name).read_bytes() for name in arguments) if arguments else stdin


def _head(arguments: list[str], stdin: bytes) -> bytes:
    flag, count, *names = arguments
    assert flag == "-c", "only head -c N"
    return _cat(names, stdin)[: int(count)]


def _printf(arguments: list[str], _: bytes) -> bytes:
    (text,) = arguments
    return text.encode().decode("unicode_escape").encode("latin-1")


OTHERS: dict[str, Callable[[list[str], bytes], bytes]] = {"echo": _echo, "cat": _cat, "head": _head, "printf": _printf}


def _commands(text: str) -> list[str]:
    return [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]


def _stages(command: str) -> Iterator[list[str]]:
    words: list[str] = []
    for word in shlex.split(command):
        if word == "|":
            yield words
            words = []
        else:
            words.append(word)
    yield words


def _run(command: str, columns: int, kwire: Any) -> str:
    out, err, status = b"", "", 0
    for name, *arguments in _stages(command):
        if name == "kwire":
            ran = kwire(*arguments, stdin=out, columns=columns)
            out, err, status = ran.out, err + ran.err, ran.status
        else:
            out = OTHERS[name](arguments, out)
    shown = out.decode()
    lines = [f"$ {command}\n", shown, "" if not shown or shown.endswith("\n") else "\n"]
    lines += [f"! {line}".rstrip() + "\n" for line in err.splitlines()]
    return "".join(lines) + (f"[exit {status}]\n" if status else "")


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_commands_print_what_the_transcript_says(path: Path, kwire: Any, request: pytest.FixtureRequest) -> None:
    old = path.read_text("utf-8")
    head = re.match(r"# columns (\d+)\n", old)
    assert head, f"{path.name} does not begin with # columns N"
    commands = _commands(old)
    assert commands, f"{path.name} has no commands"
    new = head.group() + "".join("\n" + _run(command, int(head.group(1)), kwire) for command in commands)
    if request.config.getoption("--rewrite"):
        path.write_text(new, "utf-8")
    else:
        assert old == new


def test_there_are_transcripts() -> None:
    assert len(FILES) > 10


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_no_line_of_a_transcript_is_wider_than_its_terminal(path: Path) -> None:
    text = path.read_text("utf-8")
    columns = int(text.split()[2])
    wide = [line for line in text.splitlines() if len(line) > columns and not line.startswith(("$ ", "! ", "#"))]
    assert [line for line in wide if " " in line.strip() and not _data(line)] == []


def _data(line: str) -> bool:
    """JSON, CSV and markdown are not laid out for a width."""
    return line.lstrip().startswith(("{", "[{", '"', "|")) or bool(re.match(r"[\w-]+,[\w-]+,", line))
