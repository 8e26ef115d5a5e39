"""kwire check asks what both know; what only the broker names is a row in all, however much that is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kwire.client.conformance import NOT_ASKED, advertised
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
