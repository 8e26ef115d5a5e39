"""The options of commands that talk to a broker."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kwire.testing import Broker

Kwire = Callable[..., Any]


@pytest.mark.parametrize("mechanism", ["PLAIN", "scram-sha-256", "SCRAM-SHA-512"])
def test_logging_in(kwire: Kwire, mechanism: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "password"
    file.write_text("s3cret\n")
    with Broker(users={"ann": "s3cret"}) as broker:
        call = ["call", broker.address, "ListGroups", "-q", "--sasl", mechanism, "--user", "ann"]
        assert kwire(*call, "--password", "s3cret").status == 0
        assert kwire(*call, "--password", f"@{file}").status == 0
        monkeypatch.setenv("KWIRE_PASSWORD", "s3cret")
        assert kwire(*call).status == 0
        monkeypatch.setenv("KWIRE_PASSWORD", "wrong")
        ran = kwire(*call)
        assert ran.status == 1
        assert ran.err.startswith(f"kwire: {broker.address}: ")


def test_tls(kwire: Kwire) -> None:
    with Broker(tls=True) as broker:
        call = ["call", broker.address, "ListGroups", "-q"]
        assert kwire(*call, "--tls", "--ca", broker.certificate_file).status == 0
        assert kwire(*call, "--tls", "--insecure").status == 0
        ran = kwire(*call, "--tls")
        assert (ran.status, ran.err.rstrip().rpartition("; ")[2]) == (1, "--ca FILE, or --insecure")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--insecure"], "--ca, --cert and --insecure belong to --tls"),
        (["--tls", "--key", __file__], "--key belongs to --cert"),
        (["--user", "ann"], "--user needs --sasl, which says how to log in"),
        (["--sasl", "plain"], "--sasl needs --user"),
        (["--sasl", "plain", "--user", "ann"], "--sasl needs --password, or KWIRE_PASSWORD in the environment"),
        (["--timeout", "0"], "--timeout must be more than nothing, and at most a day"),
        (["--timeout", "999999999999"], "--timeout must be more than nothing, and at most a day"),
    ],
)
def test_options_that_do_not_fit(
    kwire: Kwire, options: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.delenv("KWIRE_PASSWORD", raising=False)
    ran = kwire("call", "127.0.0.1:1", "ListGroups", *options)
    assert (ran.status, ran.err.splitlines()[-1]) == (2, f"Error: {said}")


# ---------------------------------------------------------------- what a peer sends back

WORD = "s3cret-word"
LOGIN = ("--sasl", "plain", "--user", "app", "--password", WORD)
GROUPS = {
    "Groups": [{"GroupId": f"x{WORD}", "ProtocolType": "consumer", "GroupState": "Stable", "GroupType": "classic"}]
}
REFUSED = {"ErrorCode": 58, "ErrorMessage": f"app has another password than {WORD}", "AuthBytes": b""}


@pytest.mark.parametrize("view", ["text", "tree", "json", "hex"])
def test_a_password_in_an_answer_is_withheld(view: str, kwire: Any) -> None:
    with Broker(users={"app": WORD}) as broker:
        broker.control("ListGroups", lambda _: GROUPS)
        ran = kwire("call", broker.address, "ListGroups", *LOGIN, "--format", view, "--full")
        shown = kwire("call", broker.address, "ListGroups", *LOGIN, "--format", view, "--full", "--show-secrets")
    for text in (WORD, WORD.encode().hex(" ")):
        assert text not in ran.text + ran.err
    assert "withheld" in ran.text or view == "hex"
    assert WORD in shown.text or WORD.encode().hex(" ") in shown.text or view == "hex"


def test_a_password_in_the_reason_of_a_refused_login_is_withheld(kwire: Any) -> None:
    with Broker(users={"app": WORD}) as broker:
        broker.control("SaslAuthenticate", lambda _: REFUSED)
        called = kwire("call", broker.address, "ListGroups", *LOGIN)
        walked = [kwire("walk", broker.address, "-g", "g", "-t", "t", *LOGIN, "--format", form, "-x")
                  for form in ("text", "json")]  # fmt: skip
    assert called.err.endswith("login refused: app has another password than withheld\n")
    for ran in walked:
        assert WORD not in ran.text + ran.err
        assert "app has another password than withheld" in " ".join(ran.text.split())
