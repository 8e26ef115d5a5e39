"""Every attack that the benchmark measures, small: kwire ends with a status that it documents, and knows why."""

# mypy: disable-error-code="func-returns-value"

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from attacks import bodies, decoding, definitions
from hostile import attacks

from kwire.cli import literals
from kwire.codec import frames, identify
from kwire.errors import Exit

SCALE = 0.001
ATTACKS = attacks()


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_ends_as_documented(name: str, kwire: Any, tmp_path: Path) -> None:
    arguments = ATTACKS[name](tmp_path, SCALE)
    if arguments[0] == "python":
        pytest.skip("not a command of kwire")
    ran = kwire(*arguments)
    assert ran.status in tuple(Exit)
    assert "a bug in kwire" not in ran.err


def _peak(run: Any) -> int:
    tracemalloc.start()
    run()
    highest = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return highest


@pytest.mark.parametrize("options", [(), ("--format", "json", "--inner"), ("--format", "spans")])
def test_bombs_share_what_a_frame_may_decompress_to(options: tuple[str, ...], kwire: Any, tmp_path: Path) -> None:
    arguments = decoding.bombs(tmp_path, 0.01, *options)  # 64 batches of 0.5 MB
    ran = kwire(*arguments, "--inflate", "1m")
    allowed = 1_048_576 // (2 if options else 1)  # forms that spell out bytes are given half of it
    assert f"not opened: these bytes would decompress to more than {allowed:,} bytes in all" in " ".join(
        ran.text.split()
    )
    whole, bounded = (_peak(lambda more=more: kwire(*arguments, *more)) for more in ((), ("--inflate", "1m")))
    assert bounded < 10_000_000 < whole


def test_stars_of_a_dump_are_bounded(kwire: Any, tmp_path: Path) -> None:
    for maker in (decoding.far_offset, decoding.many_stars):
        arguments = maker(tmp_path, 0.1)
        assert _peak(lambda arguments=arguments: kwire(*arguments)) < 150_000_000
        assert "the stars before it stand for more than 67,108,864 bytes" in kwire(*arguments).err


def test_frames_that_nobody_explains_are_tried_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[bytes] = []
    monkeypatch.setattr(identify, "infer", lambda raw, _: tried.append(raw) or [])
    items = identify.identify(b"\0\0\0\4\xff\xff\xff\xff" * 5000)
    assert len(items) == 5000
    assert len(tried) == identify.FEW + 40_000 // identify.EACH


def test_a_row_of_zeros_is_one_piece() -> None:
    assert frames.split(b"\0\0\0\1x" + bytes(1000)) == [(0, 5), (5, 1005)]


@pytest.mark.parametrize("text", ['"\\', "/* ", "\\x00    "])
def test_literals_that_nothing_ends_are_walked_over_once(text: str) -> None:
    """Ten times the text takes about ten times as many steps, not a hundred: else this takes hours."""
    for form in literals.FORMS:
        form.read(text * 200_000)


def test_a_jar_that_is_a_bomb_is_not_unpacked(kwire: Any, tmp_path: Path) -> None:
    arguments = definitions.bomb(tmp_path, 0.05)
    assert _peak(lambda: kwire(*arguments)) < 20_000_000
    assert "bytes of definitions; 33,554,432 are the most that is read" in kwire(*arguments).err


@pytest.mark.parametrize("command", bodies.COMMANDS, ids=" ".join)
def test_bombs_in_captures_are_opened_as_far_as_a_frame_may(
    command: tuple[str, ...], kwire: Any, tmp_path: Path
) -> None:
    arguments = bodies.opened(command, tmp_path, 0.01)  # 6 answers of 64 batches of 0.5 MB
    opens = command[0] == "decode" or "-x" in command or "--inner" in command
    ran = kwire(*arguments, *(("--inflate", "1m") if opens else ()))
    assert ran.status == Exit.OK
    if opens:
        assert "not opened: these bytes would decompress to more than" in " ".join(ran.text.split())
        assert _peak(lambda: kwire(*arguments, "--inflate", "1m")) < 25_000_000
