"""Files that are written: whole or not at all, never onto an input, and nothing is left of what was killed."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from kwire import outputs
from kwire.errors import OutputError
from kwire.outputs import PART, Output, remove_left

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links, modes and locks are another matter there")
LEFT = ".kwire-0123456789abcdef.part"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# ---------------------------------------------------------------- whole or not at all


def test_a_file_has_its_name_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with Output(path) as file:
        file.write(b"half")
        (part,) = names(tmp_path)
        assert PART.fullmatch(part)
        file.write(b" and half")
    assert (names(tmp_path), path.read_bytes()) == (["x"], b"half and half")


@pytest.mark.parametrize("error", [ValueError(), KeyboardInterrupt(), SystemExit(143)])
def test_what_fails_leaves_what_was_there(error: BaseException, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("old")

    def write() -> None:
        with Output(path) as file:
            file.write(b"new")
            raise error

    with pytest.raises(type(error)):
        write()
    assert (names(tmp_path), path.read_text()) == (["x"], "old")


def test_a_full_disk_is_said_of_the_file_as_it_was_named(tmp_path: Path) -> None:
    def write() -> None:
        with Output(tmp_path / "x"):
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space left") as raised:
        write()
    assert raised.value.filename == str(tmp_path / "x")
    assert names(tmp_path) == []


def test_a_file_that_others_read_while_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "x"
    output = Output(path, force=False)
    file = output.open()
    file.write(b"head")
    output.place()
    assert (names(tmp_path), path.read_bytes()) == (["x"], b"head")
    file.write(b" more")
    file.flush()
    assert path.read_bytes() == b"head more"
    output.abandon()
    assert path.read_bytes() == b"head more"


def test_it_can_be_written_again(tmp_path: Path) -> None:
    output = Output(tmp_path / "x")
    for text in (b"one", b"two"):
        with output as file:
            file.write(text)
    assert (tmp_path / "x").read_bytes() == b"two"


def test_a_forked_process_that_ends_takes_nothing_away(tmp_path: Path) -> None:
    output = Output(tmp_path / "x")
    file = output.open()
    child = os.fork()
    if child == 0:
        output.abandon()
        os._exit(0)
    os.waitpid(child, 0)
    file.write(b"whole")
    output.close()
    assert (tmp_path / "x").read_bytes() == b"whole"


# ---------------------------------------------------------------- what must not be written


@pytest.mark.parametrize("link", [None, os.symlink, os.link])
@pytest.mark.parametrize("force", [True, False])
def test_no_input_is_written_whatever_its_name(link: Any, force: bool, tmp_path: Path) -> None:
    read = tmp_path / "read"
    read.write_text("precious")
    target = tmp_path / "target" if link else read
    if link:
        link(read, target)
    with pytest.raises(OutputError, match="read here too"):
        Output(target, inputs=[read], force=force)
    with pytest.raises(OutputError):
        Output(read, inputs=[tmp_path / ".." / tmp_path.name / "read"], force=force)
    assert read.read_text() == "precious"


def test_what_comes_on_stdin_is_an_input(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("precious")
    program = "import sys; from kwire.outputs import Output; Output(sys.argv[1])"
    with path.open() as file:
        ran = subprocess.run([sys.executable, "-c", program, str(path)], stdin=file, capture_output=True, check=False)
    assert b"OutputError" in ran.stderr


def test_what_is_kept_is_not_overwritten_without_force(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("old")
    with pytest.raises(OutputError, match=r"x: exists already; --force overwrites it$"):
        Output(path, force=False)
    with Output(path, force=True) as file:
        file.write(b"new")
    assert path.read_text() == "new"


def test_an_empty_file_has_nothing_to_lose(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.touch()
    with Output(path, force=False) as file:
        file.write(b"new")
    assert path.read_text() == "new"


@pytest.mark.parametrize("links", [True, False])
def test_what_came_meanwhile_is_kept_too(links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: Any) -> None:
        raise OSError(errno.EPERM, "no links here")

    if not links:
        monkeypatch.setattr(os, "link", none)
    with Output(tmp_path / "y", force=False) as file:
        file.write(b"alone")
    output = Output(tmp_path / "x", force=False)
    output.open()
    (tmp_path / "x").write_text("theirs")
    with pytest.raises(OutputError, match="exists already"):
        output.close()
    assert (names(tmp_path), (tmp_path / "x").read_text()) == (["x", "y"], "theirs")


def test_links_are_replaced_and_never_followed(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_text("theirs")
    for name, goal in (("x", "theirs"), ("y", "nowhere")):
        (tmp_path / name).symlink_to(goal)
        with pytest.raises(OutputError, match="exists already"):
            Output(tmp_path / name, force=False)
        with Output(tmp_path / name) as file:
            file.write(b"mine")
        assert not (tmp_path / name).is_symlink()
    assert (names(tmp_path), (tmp_path / "theirs").read_text()) == (["theirs", "x", "y"], "theirs")


def test_a_link_to_a_device_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "x").symlink_to("/dev/null")
    with pytest.raises(OutputError, match="a link to what is no file"):
        Output(tmp_path / "x")


def test_folders_and_paths_that_lead_nowhere(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        Output(tmp_path)
    with pytest.raises(FileNotFoundError, match="no such folder"):
        Output(tmp_path / "no" / "x")


@pytest.mark.skipif(sys.platform != "win32" and os.geteuid() == 0, reason="root may write everything")
def test_a_file_that_is_read_only_stays(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("old")
    path.chmod(0o400)
    with pytest.raises(PermissionError):
        Output(path)


# ---------------------------------------------------------------- modes


def test_who_may_read_it(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        for name, private in (("mine", True), ("usual", False)):
            output = Output(tmp_path / name, private=private)
            output.open()
            (part,) = [path for path in tmp_path.iterdir() if PART.fullmatch(path.name)]
            assert mode(part) == (0o600 if private else 0o644)
            output.close()
            assert mode(tmp_path / name) == (0o600 if private else 0o644)
        (tmp_path / "usual").chmod(0o640)
        with Output(tmp_path / "usual"):
            pass
        assert mode(tmp_path / "usual") == 0o640
        (tmp_path / "mine").chmod(0o644)
        with Output(tmp_path / "mine", private=True):
            pass
        assert mode(tmp_path / "mine") == 0o600
    finally:
        os.umask(before)


# ---------------------------------------------------------------- what was left


KILLED = """
import os, signal, sys
from kwire.outputs import Output
Output(sys.argv[1]).open().write(b"half")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_kill_left_is_removed_by_the_next_run(tmp_path: Path) -> None:
    ran = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "x")], check=False)
    assert (ran.returncode, len(names(tmp_path))) == (-signal.SIGKILL, 1)
    with Output(tmp_path / "y"):
        assert len(names(tmp_path)) == 1
    assert names(tmp_path) == ["y"]


def test_what_is_being_written_stays(tmp_path: Path) -> None:
    first, second = Output(tmp_path / "x"), Output(tmp_path / "y")
    first.open().write(b"one")
    second.open().write(b"two")
    remove_left(tmp_path)
    first.close()
    second.close()
    assert [(tmp_path / name).read_bytes() for name in names(tmp_path)] == [b"one", b"two"]


def test_only_files_that_look_so_are_removed(tmp_path: Path) -> None:
    theirs = ["kwire-0123456789abcdef.part", ".kwire-0123.part", ".x.part", LEFT.replace("0", "1")]
    for name in theirs[:3]:
        (tmp_path / name).touch()
    os.mkfifo(tmp_path / theirs[3])
    (tmp_path / LEFT).symlink_to("kwire-0123456789abcdef.part")
    (tmp_path / LEFT.replace("0", "2")).mkdir()
    before = names(tmp_path)
    remove_left(tmp_path)
    assert names(tmp_path) == before


def test_one_that_is_removed_between_its_making_and_its_lock_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed: list[Any] = []
    lock = fcntl.flock

    def late(descriptor: int, how: int) -> None:
        if not removed:
            removed.extend(tmp_path.iterdir())
            removed[0].unlink()
        lock(descriptor, how)

    monkeypatch.setattr(outputs, "flock", late)
    with Output(tmp_path / "x") as file:
        file.write(b"whole")
    assert (len(removed), names(tmp_path), (tmp_path / "x").read_bytes()) == (1, ["x"], b"whole")


def test_without_locks_nothing_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(outputs, "flock", none)
    (tmp_path / LEFT).touch()
    with Output(tmp_path / "x"):
        pass
    assert names(tmp_path) == [LEFT, "x"]


# ---------------------------------------------------------------- no files


def test_pipes_and_devices_are_written_to_as_they_are(tmp_path: Path) -> None:
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    with Output(pipe, private=True, force=False) as file:
        file.write(b"through")
    reader.join(60)
    assert (got, names(tmp_path)) == ([b"through"], ["pipe"])
    with Output("/dev/null", force=False) as file:
        file.write(b"gone")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.mark.parametrize("name", ["-", "/dev/stdout", "/dev/fd/1", "/dev/stderr"])
def test_stdout_by_its_names(name: str, tmp_path: Path) -> None:
    program = "import sys; from kwire.outputs import Output\nwith Output(sys.argv[1], force=False) as f: f.write(b'x')"
    into = tmp_path / "into"
    with into.open("wb") as file:
        for stream in (subprocess.PIPE, file):
            ran = subprocess.run(
                [sys.executable, "-c", program + "\nprint('y')", name],
                stdout=stream,
                stderr=subprocess.STDOUT,
                check=True,
            )
            assert ran.stdout in (b"xy\n", None)
    assert into.read_bytes() == b"xy\n"


def test_stdout_that_is_an_input_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("precious")
    program = "import sys; from kwire.outputs import Output; Output('-', inputs=[sys.argv[1]])"
    with path.open("ab") as file:
        ran = subprocess.run(
            [sys.executable, "-c", program, str(path)], stdout=file, stderr=subprocess.PIPE, check=False
        )
    assert b"OutputError" in ran.stderr
