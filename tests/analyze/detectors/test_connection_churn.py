"""A producer for each record."""

from __future__ import annotations

from provoked import assert_proven
from scenes import Scene


def test_provoked() -> None:
    found = assert_proven("connection-churn", "connection-churn")
    assert "closed again within 5 s" in found.what


def refused(login: bool) -> Scene:
    """Thirty connections in 15 s, on each a login that fails, or one question."""
    scene = Scene()
    for number in range(30):
        line = scene.connect(number / 2)
        if login:
            line.ask(number / 2 + 0.1, "SaslHandshake", 1, {"Mechanism": "PLAIN"}, {"ErrorCode": 0, "Mechanisms": []})
            answer = {"ErrorCode": 58, "ErrorMessage": "", "AuthBytes": b""}
            line.ask(number / 2 + 0.2, "SaslAuthenticate", 1, {"AuthBytes": b"\0u\0p"}, answer)
        else:
            line.ask(number / 2 + 0.1, "ListGroups", 0, {}, {"ErrorCode": 0, "Groups": []})
        line.close(number / 2 + 0.3)
    return scene


def test_what_fails_before_any_work_is_no_churn() -> None:
    assert refused(login=True).findings("connection-churn") == []
    (found,) = refused(login=False).findings("connection-churn")
    assert found.what.endswith("with 1 request each")
