"""Attempts to connect, and how they ended."""

from __future__ import annotations

from scenes import Scene, diagnosed

from kwire.analyze.connect_attempts import HostAttempts


def attempts(scene: Scene) -> dict[tuple[str, str], HostAttempts]:
    return diagnosed(scene.packets, ["capture-quality"]).case.attempts.known


def test_refused_and_then_reached() -> None:
    scene = Scene()
    for at in (1, 2, 3):
        scene.dial(at)
    scene.connect(4).ask(5, "ApiVersions", 0, {}, {"ErrorCode": 0, "ApiKeys": []})
    (found,) = attempts(scene).values()
    assert (found.refused, found.silent, found.connected, found.recovered) == (3, 0, 1, True)
    assert (found.host, found.target, len(found.samples)) == ("10.0.0.7", "10.0.0.2:9092", 3)


def test_a_syn_without_an_answer_is_silent() -> None:
    scene = Scene()
    scene.dial(1, refused=False)
    (found,) = attempts(scene).values()
    assert (found.refused, found.silent, found.connected) == (0, 1, 0)


def test_a_connection_from_its_midst_was_reached() -> None:
    scene = Scene()
    scene.connect(4, syn=False).ask(5, "ApiVersions", 0, {}, {"ErrorCode": 0, "ApiKeys": []})
    (found,) = attempts(scene).values()
    assert (found.failed, found.connected) == (0, 1)


def test_of_a_syn_alone_nobody_knows_what_became() -> None:
    """As of the last attempt before a capture ends."""
    scene = Scene()
    for at in (1, 2, 3):
        scene.dial(at)
    (found,) = diagnosed(scene.packets[:-1], ["capture-quality"]).case.attempts.known.values()
    assert (found.refused, found.silent, found.connected, found.recovered) == (2, 0, 0, False)
