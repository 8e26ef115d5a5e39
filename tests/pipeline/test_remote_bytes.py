"""Long bytes at a split's edges stay in the file, and come back as they were."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
from calls import Call

from kwire.pipeline import plan as planning
from kwire.pipeline import remote_bytes
from kwire.pipeline.reading import survey
from kwire.pipeline.remote_bytes import fetch, leave
from kwire.pipeline.splits import plan
from kwire.session.reader import Settings

FAST = ("messages", "exchanges", "connections", "quality")


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nearly all bytes are long."""
    monkeypatch.setattr(remote_bytes, "LEAST", 30)


@pytest.mark.parametrize("name", ["mtu1500.pcap.gz", "old39.pcap.gz", "pyclients.pcap"])
@pytest.mark.usefixtures("short")
def test_tables_are_the_same(unpacked: Callable[[str], Path], expected: Call, cut: Call, name: str) -> None:
    path = unpacked(name)
    assert cut([path], FAST, 8000, 8000)[0] == expected([path], FAST, 8000)


def test_bytes_come_back(unpacked: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    path, settings, want = unpacked("old39.pcap.gz"), Settings(), planning.wanted(FAST)
    splits = plan([path], 12000, 12000)
    whole = [survey(split, settings, want, 12000) for split in splits]
    monkeypatch.setattr(remote_bytes, "LEAST", 30)
    left = [survey(split, settings, want, 12000) for split in splits]
    assert len(pickle.dumps(left)) < len(pickle.dumps(whole))
    kept = [part for made in left for part in made.parts if part.far]
    assert {found.what for part in kept for found in part.far} >= {"head", "open"}
    for made, before in zip(left, whole, strict=True):
        for part, same in zip(made.parts, before.parts, strict=True):
            fetch(part, made.split)
            assert (part.head, part.exit, part.far) == (same.head, same.exit, [])


def test_bytes_that_lie_otherwise_come_along(unpacked: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    path, settings, want = unpacked("mtu1500.pcap.gz"), Settings(), planning.wanted(FAST)
    made = survey(plan([path], 50000, 50000)[1], settings, want, 50000)
    monkeypatch.setattr(remote_bytes, "LEAST", 30)
    assert all(leave(part, remote_bytes.Finder([])) is part for part in made.parts)
