"""Whether a Produce wants an answer: one request and many at once agree, in all versions and with any names."""

from __future__ import annotations

import numpy as np
import pytest

import kwire
from kwire.schema.keys import FETCH, PRODUCE
from kwire.session.acks import UNKNOWN, acks_of, is_silent
from kwire.session.api_versions import Kinds
from kwire.wire.columns import Columns

NAMES = (None, "", "t", "t" * 125, "t" * 126, "t" * 127, "t" * 300)


def produce(version: int, acks: int, name: str | None) -> bytes:
    body = {"Acks": acks, "TimeoutMs": 1000, "TopicData": []}
    return kwire.encode("ProduceRequest", version, body | ({"TransactionalId": name} if version >= 3 else {}))


@pytest.mark.parametrize("version", [3, 8, 9, 12])
@pytest.mark.parametrize("acks", [-1, 0, 1])
def test_one_and_many_agree(version: int, acks: int) -> None:
    bodies = [produce(version, acks, name) for name in NAMES]
    starts = np.cumsum([0, *map(len, bodies)])[:-1]
    found = acks_of(version, Columns(b"".join(bodies) + bytes(8)), starts).astype(np.int16)
    kind = Kinds().of(PRODUCE, version)
    for name, body, each in zip(NAMES, bodies, found.tolist(), strict=True):
        assert is_silent(kind, body, 0) == (acks == 0)
        assert each == (acks if version < 9 or len(name or "") < 127 else UNKNOWN)


def test_what_is_cut_or_no_produce_is_not_silent() -> None:
    kinds = Kinds()
    body = produce(9, 0, "t")
    assert not is_silent(kinds.of(PRODUCE, 9), body[:2], 0)
    assert not is_silent(kinds.of(FETCH, 9), body, 0)
    assert not is_silent(None, body, 0)
    assert not is_silent(kinds.of(PRODUCE, 9), body, None)
