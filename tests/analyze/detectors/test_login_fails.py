"""Logins that fail, each way; and those that go well."""

from __future__ import annotations

from pathlib import Path

from scenes import Scene, diagnosed, packets_of

CAPTURES = Path(__file__).parents[3] / "fixtures" / "captures"
OFFERED = {"ErrorCode": 0, "Mechanisms": ["PLAIN", "SCRAM-SHA-256"]}


def login(scene: Scene, at: float, error: int, client: str = "c1", lifetime: int = 0) -> None:
    line = scene.connect(at, client=client)
    line.ask(at + 0.1, "SaslHandshake", 1, {"Mechanism": "PLAIN"}, OFFERED)
    answer = {"ErrorCode": error, "ErrorMessage": "no" if error else None, "AuthBytes": b"",
              "SessionLifetimeMs": lifetime}  # fmt: skip
    line.ask(at + 0.2, "SaslAuthenticate", 1, {"AuthBytes": b"\0alice\0secret"}, answer)


def test_a_wrong_password() -> None:
    scene = Scene()
    login(scene, 0, 58)
    login(scene, 2, 58)
    (found,) = scene.findings("login-fails")
    assert (found.severity, found.count, found.words) == ("error", 2, "no")
    assert found.what.startswith(
        "10.0.0.2:9092 refuses the PLAIN login of alice at 10.0.0.7 (SASL_AUTHENTICATION_FAILED)"
    )
    assert found.about == {"client_id": "c1", "address": "10.0.0.7", "broker": "10.0.0.2:9092", "principal": "alice"}
    assert "secret" not in found.what


def test_one_that_goes_well_later_is_a_warning_of_that_client_only() -> None:
    scene = Scene()
    login(scene, 0, 58)
    login(scene, 0.5, 58, "c2")
    login(scene, 2, 0)
    assert [(one.severity, one.about["client_id"]) for one in scene.findings("login-fails")] == [
        ("error", "c2"), ("warning", "c1"),
    ]  # fmt: skip


def test_a_mechanism_that_is_not_offered() -> None:
    scene = Scene()
    answer = {"ErrorCode": 33, "Mechanisms": ["PLAIN"]}
    scene.connect(0).ask(1, "SaslHandshake", 1, {"Mechanism": "GSSAPI"}, answer)
    (found,) = scene.findings("login-fails")
    assert found.what == "c1 at 10.0.0.7 wants GSSAPI, which 10.0.0.2:9092 does not offer; it offers PLAIN"


def test_bare_tokens_that_end_in_a_close() -> None:
    found = diagnosed(packets_of(CAPTURES / "sasl-v0.pcap"), ["login-fails"]).findings
    assert [one.about.get("principal", "") for one in found] == ["fixture-plain", "fixture-scram", ""]
    assert "by closing the connection" in found[0].what


def test_a_login_that_lasts_too_short() -> None:
    scene = Scene()
    login(scene, 0, 0, lifetime=5000)
    (found,) = scene.findings("login-fails")
    assert found.what == "the PLAIN login of alice lasts 5,000 ms only"


def test_a_login_that_goes_well_is_fine() -> None:
    scene = Scene()
    login(scene, 0, 0)
    assert scene.findings("login-fails") == []
