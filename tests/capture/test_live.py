"""What is kept of the rights that opened the sockets: none."""

from __future__ import annotations

import ctypes
import os
import pwd
from typing import Any

import pytest

from kwire.capture.live import NOBODY, Live, _user


@pytest.fixture
def dropped(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """What would have been called."""
    found: list[tuple[str, Any]] = []
    for name in ("setgroups", "setgid", "setuid"):
        monkeypatch.setattr(os, name, lambda value, name=name: found.append((name, value)))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(ctypes, "CDLL", lambda _: type("C", (), {"prctl": print, "capset": print}))
    return found


@pytest.mark.parametrize(
    ("sudo", "becomes"),
    [(("1000", "100"), (1000, 100)), (("", ""), None), (("0", "0"), None), (("x", "y"), None), (("1000", ""), None)],
)
def test_root_becomes_who_called_sudo_or_nobody(
    sudo: tuple[str, str], becomes: tuple[int, int] | None, dropped: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in zip(("SUDO_UID", "SUDO_GID"), sudo, strict=True):
        monkeypatch.setenv(name, value)
    live = Live.__new__(Live)
    live.user = _user()
    live.drop_privileges()
    found = pwd.getpwnam("nobody")
    user, group = becomes or (found.pw_uid, found.pw_gid)
    assert dropped == [("setgroups", []), ("setgid", group), ("setuid", user)]
    assert user != 0


def test_a_system_without_nobody(dropped: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(_: str) -> None:
        raise KeyError

    monkeypatch.setattr(pwd, "getpwnam", unknown)
    live = Live.__new__(Live)
    live.user = None
    live.drop_privileges()
    assert dropped[1:] == [("setgid", NOBODY[1]), ("setuid", NOBODY[0])]
