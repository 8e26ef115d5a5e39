"""Where a Produce says whether it wants an answer, in every version."""

from __future__ import annotations

import pytest

from kwire.codec.acks import acks_place, short_at
from kwire.codec.library import builtin_library

VERSIONS = builtin_library().message("ProduceRequest").versions


@pytest.mark.parametrize("acks", [-1, 0, 1])
@pytest.mark.parametrize("name", [None, "", "t", "t" * 200])
def test_acks_are_found_behind_the_transactional_id(name: str | None, acks: int) -> None:
    for version in range(VERSIONS.low, VERSIONS.high + 1):
        body = {"Acks": acks, "TimeoutMs": 0x0505, "TopicData": []}
        body |= {"TransactionalId": name} if version >= 3 else {}
        data = b"abc" + builtin_library().codec("ProduceRequest", version).encode(body)
        assert short_at(data, acks_place(version, data, 3)) == (acks,), version
