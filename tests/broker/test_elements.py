"""Elements are counted as the decoder would make them, and no further than allowed."""

from __future__ import annotations

from struct import pack

import pytest

from kwire.broker.apis import announced
from kwire.broker.context import finish
from kwire.broker.elements import TooMany, Unreadable, count
from kwire.codec.example import example
from kwire.codec.library import builtin_library

LIBRARY = builtin_library()
CASES = [(LIBRARY.registry.api(key).name, v) for key, versions in announced(None).items() for v in versions.each()]


def elements(value: object) -> int:
    if isinstance(value, dict):
        return sum(elements(inner) for name, inner in value.items() if name != "_tagged")
    if isinstance(value, list):
        return len(value) + sum(map(elements, value))
    return 0


@pytest.mark.parametrize(("api", "version"), CASES)
def test_every_request_is_counted_and_none_of_its_beginnings(api: str, version: int) -> None:
    codec = LIBRARY.codec(f"{api}Request", version)
    message = example(codec.plan)
    data = codec.encode(message)
    found = finish(count(codec.plan.root, data, 0, 1_000))
    assert elements(message) <= found <= elements(message) + 8  # tags count too
    if data:
        with pytest.raises(Unreadable):
            finish(count(codec.plan.root, data[:-1], 0, 1_000))


def test_too_many_and_more_than_there_can_be() -> None:
    plan = LIBRARY.plan("DescribeGroupsRequest", 0).root
    data = pack(">i", 5) + pack(">h", 0) * 5
    assert finish(count(plan, data, 0, 5)) == 5
    with pytest.raises(TooMany):
        finish(count(plan, data, 0, 4))
    with pytest.raises(Unreadable, match="beyond the end"):
        finish(count(plan, pack(">i", 2**31 - 1) + bytes(100), 0, 1 << 40))


def test_structs_within_are_counted_in_steps() -> None:
    plan = LIBRARY.plan("MetadataRequest", 9).root
    data = LIBRARY.codec("MetadataRequest", 9).encode({"Topics": [{"Name": "t"}] * 9_000})
    assert len(list(count(plan, data, 0, 10_000))) == 9_000 // 2_001
