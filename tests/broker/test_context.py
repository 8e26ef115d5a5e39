"""Answers that come later, and peers that hang up."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.broker.context import Later, Peer


@pytest.mark.parametrize("first", ["give", "then"])
def test_an_answer_is_delivered_once_whatever_comes_first(first: str) -> None:
    later, got = Later(), list[Any]()
    if first == "give":
        later.give({"a": 1})
        assert later.given
        later.then(got.append)
    else:
        later.then(got.append)
        assert (later.given, got) == (False, [])
        later.give({"a": 1})
    later.give({"b": 2})
    assert got == [{"a": 1}]


def test_who_waits_for_a_peer_is_told_once_that_it_is_gone() -> None:
    peer, told = Peer(1, "::1", 5, 1), list[str]()
    peer.closing.append(lambda: told.append("gone"))
    peer.close()
    peer.close()
    assert (told, peer.closed, peer.principal, str(peer)) == (["gone"], True, None, "[::1]:5")
