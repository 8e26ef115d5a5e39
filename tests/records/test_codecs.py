"""The choice of codecs: cramjam, or without it those of the standard library and our own."""

from __future__ import annotations

import sys

import pytest

from kwire.records.codecs import codecs


def test_cramjam_where_it_is_installed() -> None:
    assert codecs().error.__module__ == "cramjam"


def test_our_own_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cramjam", None)
    assert codecs.__wrapped__().snappy.__module__ == "kwire.records.plain_codecs"
