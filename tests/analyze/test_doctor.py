"""The doctor: which detectors look, what they are given, in which order their findings come."""

from __future__ import annotations

from pathlib import Path

import pytest
from provoked import capture_of
from scenes import Scene, diagnosed, packets_of

from kwire.analyze import detectors
from kwire.analyze.doctor import chosen, limits_of
from kwire.analyze.findings import SECOND
from kwire.errors import UnknownDetector

BEAT = {"GroupId": "billing", "MemberId": "m", "GenerationId": 1}
FOLDER = Path(detectors.__file__).parent
TESTS = Path(__file__).parent / "detectors"


@pytest.mark.parametrize("name", detectors.names())
def test_a_detector_says_what_it_does(name: str) -> None:
    found = detectors.detector(name)
    assert 0 < len(found.looks_for) <= 60
    assert all((found.fields, found.source, found.means, found.proof, found.advice))
    text = (FOLDER / f"{name.replace('-', '_')}.py").read_text()
    assert text.startswith('"""')
    assert text.count("\n") < 200
    assert (TESTS / f"test_{name.replace('-', '_')}.py").exists()


def test_only_and_skip() -> None:
    assert chosen(["acl-denied"], []) == ["acl-denied"]
    assert "acl-denied" not in chosen([], ["acl-denied"])
    with pytest.raises(UnknownDetector, match="no detector acl-deny; did you mean acl-denied"):
        chosen(["acl-deny"], [])


def test_thresholds() -> None:
    assert limits_of(["acl-denied.least=3"]) == {"acl-denied": {"least": 3.0}}
    with pytest.raises(UnknownDetector, match=r"no threshold acl-denied.most; acl-denied has acl-denied.least"):
        limits_of(["acl-denied.most=3"])
    with pytest.raises(UnknownDetector, match=r"acl-denied.least is a number, and not many"):
        limits_of(["acl-denied.least=many"])


def test_a_threshold_is_obeyed() -> None:
    scene = Scene()
    scene.connect(0).ask(1, "Heartbeat", 3, BEAT, {"ErrorCode": 30})
    assert len(scene.findings("acl-denied")) == 1
    assert scene.findings("acl-denied", acl_denied={"least": 2}) == []


def test_what_was_not_found_is_named() -> None:
    found = diagnosed(Scene().connect(0).ask(1, "Heartbeat", 3, BEAT, {"ErrorCode": 0}).scene.packets)
    assert found.findings == []
    assert found.quiet + [name for name, _ in found.blind] == sorted(detectors.names())
    assert not found.grave


def test_nothing_at_all() -> None:
    assert diagnosed([]).findings == []


@pytest.mark.parametrize(("back", "known"), [(3, False), (1.2, True)])
def test_a_length_of_time_is_not_told_where_the_clock_was_set_back(back: float, known: bool) -> None:
    """Unless by little of it."""
    packets = packets_of(capture_of("open-transaction"))
    middle = len(packets) // 2
    stepped = [*packets[:middle], *(one._replace(time=one.time - int(back * SECOND)) for one in packets[middle:])]
    found = diagnosed(stepped)
    assert any(one.detector == "open-transaction" for one in found.findings) == known
    why = dict(found.blind).get("open-transaction", "")
    assert why.startswith("" if known else "the capture's clock goes back by 3.0 s at packet ")
    assert "open-transaction" not in found.quiet
