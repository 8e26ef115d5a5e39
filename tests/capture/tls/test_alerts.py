"""Alerts in words."""

from __future__ import annotations

from kwire.capture.tls.alerts import NAMES, alert_words
from kwire.codec.verdict import TLS_ALERTS


def test_words_begin_with_the_name_that_the_protocol_gives() -> None:
    assert alert_words(48).startswith("unknown_ca: ")
    assert alert_words(200) == "alert 200"
    assert {number: NAMES[number] for number in TLS_ALERTS} == TLS_ALERTS
