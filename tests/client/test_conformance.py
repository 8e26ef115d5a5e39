"""kwire check asks what both know; what only the broker names is a row in all, however much that is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kwire.client.address import Address
from kwire.client.conformance import NOT_ASKED, Probe, advertised
from kwire.client.connection import BrokerConnection
from kwire.client.security import Security
from kwire.schema.model import Versions


def test_what_only_the_broker_knows_is_told_in_runs() -> None:
    every = {key: Versions(1000, 32767) for key in (0, 18, 1000, *range(2000, 32768))}
    connection = SimpleNamespace(offered=every, closed=False, close=lambda: None)
    probe: Any = SimpleNamespace(open=lambda: connection)
    rows = list(advertised(probe, writing=False))
    assert {row.verdict for row in rows} == {NOT_ASKED}
    assert [(row.what, row.told) for row in rows] == [
        ("API key 1000", "kwire does not know it"),
        ("API keys 2000 to 32767", "kwire does not know them"),
        ("Produce v1000 to v32767", "kwire does not know these versions"),
        ("ApiVersions v1000 to v32767", "kwire does not know these versions"),
    ]


def test_which_versions_a_broker_takes_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    known, given = {18: Versions(0, 4)}, []

    def opened(*_: Any, negotiate: bool, offered: Any, **__: Any) -> Any:
        given.append((negotiate, dict(offered) if offered else None))
        return SimpleNamespace(offered=known if negotiate else None)

    monkeypatch.setattr(BrokerConnection, "open", opened)
    probe = Probe(Address("127.0.0.1", 9092), Security(), "kwire", 1.0)
    for negotiate in (True, True, False):
        probe.open(negotiate)
    assert given == [(True, None), (True, known), (False, None)]
