"""The provoked captures of fixtures/doctor, what kwire doctor says of them, and what it has to: truth.json is the word
of the programs that provoked them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from scenes import diagnosed, packets_of

from kwire.analyze.detectors import names
from kwire.analyze.findings import Finding

FOLDER = Path(__file__).parent.parent / "fixtures" / "doctor"
SECOND = 1_000_000_000
TRUTH: dict[str, dict[str, Any]] = json.loads((FOLDER / "truth.json").read_text())
LABELS = sorted(TRUTH)
GRAVE = ("error", "warning")


def capture_of(label: str) -> Path:
    """A capture by its name."""
    return next(path for suffix in (".pcap", ".pcap.gz") if (path := FOLDER / f"{label}{suffix}").exists())


@cache
def found_in(label: str) -> tuple[Finding, ...]:
    """All findings of a capture."""
    return tuple(diagnosed(packets_of(capture_of(label))).findings)


def told(label: str) -> list[str]:
    """Findings above note, as "warning commit-storm: what"."""
    return [f"{one.severity} {one.detector}: {one.what}" for one in found_in(label) if one.severity in GRAVE]


def expected(label: str) -> list[dict[str, Any]]:
    """What a capture's truth says of detectors that there are."""
    return [one for one in TRUTH[label]["found"] if one["detector"] in names()]


def matches(finding: Finding, truth: dict[str, Any]) -> bool:
    """Whether a finding is the one that the truth tells: the detector, about whom, when."""
    if finding.detector != truth["detector"] or abs(finding.time - truth["time"]) > SECOND:
        return False
    return all(str(finding.about.get(name, value)) == str(value) for name, value in truth["about"].items())


def assert_proven(label: str, detector: str, *severities: str) -> Finding:
    """The one finding of a detector in its capture, which is as the truth has it; its healthy twin has none of it.
    severities: which it may have; a warning without any."""
    if label not in TRUTH:
        pytest.skip(f"{label} is not recorded")
    truths = [one for one in TRUTH[label]["found"] if one["detector"] == detector]
    assert truths, label
    mine = [one for one in found_in(label) if one.detector == detector]
    for truth in truths:
        assert any(matches(finding, truth) for finding in mine), (truth, [(one.time, one.about) for one in mine])
    assert {one.severity for one in mine} <= {*(severities or ("warning",)), "note"}
    assert any(one.severity in (severities or ("warning",)) for one in mine)
    assert all(one.evidence for one in mine)
    twin = [one.what for one in found_in(f"{label}-healthy") if one.detector == detector and one.severity in GRAVE]
    assert twin == []
    return next(finding for finding in mine if matches(finding, truths[0]))
