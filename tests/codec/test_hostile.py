"""Bytes that were cut, damaged or made up: both readers agree on what is broken, neither fails otherwise nor takes more
memory than the bytes warrant; and whatever a plan allows survives writing and reading."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from spans import gap
from vectors import damaged, each, names

from kwire.codec.annotate import annotate
from kwire.codec.library import builtin_library
from kwire.codec.plan import Slot, StructPlan
from kwire.codec.span import fields
from kwire.codec.values import Codec
from kwire.errors import DecodeError
from kwire.wire.fixed import RANGES

ALL_PREFIXES = 40  # vectors of up to so many bytes are cut everywhere
SOME_PREFIXES = 8
MUTATIONS = 4  # of each vector: ten thousand in all


def read(codec: Codec, data: bytes) -> tuple[dict[str, Any] | None, DecodeError | None]:
    try:
        return codec.decode(data), None
    except DecodeError as error:
        return None, error


def check(codec: Codec, data: bytes) -> None:
    """The promises of both readers, for any bytes."""
    where = f"{codec.plan.title} {data.hex()}"
    span = annotate(codec.plan, data)
    message, error = read(codec, data)
    broken = span.broken()
    assert gap([span], 0, len(data)) is None, where
    assert (error is None) == (broken is None), where
    if error is None or broken is None:
        assert repr(fields(span)) == repr(message), where
        return
    path, part = broken
    assert (error.message, error.path, error.offset) == (codec.plan.title, path, part.start), where
    assert error.reason == part.note, where
    assert part.note, where


def prefixes(data: bytes, rng: random.Random) -> Iterator[bytes]:
    lengths: Any = range(len(data))
    if len(data) > ALL_PREFIXES:
        lengths = [0, 1, len(data) - 1, *rng.sample(range(2, len(data) - 1), SOME_PREFIXES)]
    return (data[:length] for length in lengths)


# ---------------------------------------------------------------- cut and damaged


@pytest.mark.parametrize("name", names())
def test_a_cut_message_is_broken_in_both_readers_or_in_neither(name: str) -> None:
    rng, seen = random.Random(name), set()
    for version, data in each(name):
        if version not in seen:
            seen.add(version)
            codec = builtin_library().codec(name, version)
            for cut in prefixes(data, rng):
                check(codec, cut)


@pytest.mark.parametrize("name", names())
def test_a_damaged_message_is_broken_in_both_readers_or_in_neither(name: str) -> None:
    rng = random.Random(name)
    for version, data in each(name):
        codec = builtin_library().codec(name, version)
        for _ in range(MUTATIONS):
            check(codec, damaged(data, rng))


@pytest.mark.parametrize("seed", range(8))
def test_random_bytes_are_broken_in_both_readers_or_in_neither(seed: int) -> None:
    rng = random.Random(seed)
    for name in rng.sample(names(), 60):
        version, _ = rng.choice(each(name))
        small = bytes(rng.choice((0, 0, 0, 1, 2, 3, 0xFF)) for _ in range(rng.randrange(60)))
        for data in (rng.randbytes(rng.randrange(60)), small):
            check(builtin_library().codec(name, version), data)


# ---------------------------------------------------------------- bounds

CLAIMS = [
    ("MetadataResponse", 1, "7fffffff", "00"),
    ("MetadataResponse", 12, "00000000 ffffffff0f", "01"),
    ("ProduceRequest", 3, "ffff 0001 00000001 7fffffff", "0000"),
    ("FetchResponse", 4, "00000000 7fffffff 0000 7fffffff", "00"),
    ("FetchResponse", 16, "00000000 0000 00000000 ffffffff0f", "0201"),
    ("JoinGroupResponse", 5, "00000000 0000 00000000 7fff", "61"),
    ("SaslAuthenticateRequest", 0, "7fffffff", "61"),
    ("OffsetFetchRequest", 1, "0000 00000001 0000 7fffffff", "00000001"),
    ("UpdateMetadataResponse", 6, "0000 ffffffff0f", "0000"),
    ("DescribeClusterRequest", 1, "00 01 ffffffff0f", "0000"),
    ("DescribeGroupsRequest", 5, "ffffffff0f", "01"),
    ("UpdateMetadataRequest", 5, "00000000 00000000 0000000000000000 7fffffff 0000 7fffffff", "00"),
    ("ListGroupsRequest", 4, "ffffffff0f", "0102"),
    ("DeleteGroupsRequest", 0, "7fffffff", "0000"),
]


def peak(read: Callable[[bytes], object], data: bytes) -> int:
    """The most bytes that were allocated at once while read(data) ran."""
    tracemalloc.start()
    with suppress(DecodeError):
        read(data)
    highest = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return highest


@pytest.mark.parametrize(("name", "version", "head", "fill"), CLAIMS)
def test_memory_follows_the_bytes_not_what_they_claim(name: str, version: int, head: str, fill: str) -> None:
    codec = builtin_library().codec(name, version)
    start, unit = bytes.fromhex(head), bytes.fromhex(fill)
    for data in (start, start + unit * 20, start + unit * (6000 // len(unit))):
        with pytest.raises(DecodeError):
            codec.decode(data)
        bound = 1000 * len(data) + 1_000_000
        assert peak(codec.decode, data) < bound
        assert peak(lambda raw: annotate(codec.plan, raw), data) < bound


# ---------------------------------------------------------------- made-up messages

TEXT = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=12),
    st.binary(max_size=6).map(lambda raw: raw.decode("utf-8", "surrogateescape")),
    st.sampled_from(["", "a" * 127, "é" * 64, "z" * 300]),
)
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "float64": st.floats(allow_nan=False),
    "uuid": st.uuids(),
    "string": TEXT,
    "bytes": st.one_of(st.binary(max_size=20), st.just(b"\xff" * 200)),
    "records": st.binary(max_size=20),
    **{kind: st.integers(low, high) for kind, (low, high) in RANGES.items()},
}


def values(slot: Slot) -> st.SearchStrategy[Any]:
    one = messages(slot.struct) if slot.struct else SCALARS[slot.type]
    if slot.array:
        one = st.lists(one, max_size=2 if slot.struct else 4)
    return st.none() | one if slot.nullable else one


def messages(plan: StructPlan) -> st.SearchStrategy[dict[str, Any]]:
    """Messages of a plan: every field of the version, tagged ones and unknown tags or not."""
    present = {slot.name: values(slot) for slot in plan.slots}
    if not plan.flexible:
        return st.fixed_dictionaries(present)
    numbers = st.one_of(st.integers(0, 200), st.integers(0, 2**32 - 1)).filter(lambda tag: tag not in plan.tagged)
    optional = {slot.name: values(slot) for slot in plan.tagged.values()}
    optional["_tagged"] = st.dictionaries(numbers, st.binary(max_size=4), min_size=1, max_size=2)
    return st.fixed_dictionaries(present, optional=optional)


def sample() -> list[tuple[str, int]]:
    rng = random.Random(11)
    chosen = [(name, rng.choice(each(name))[0]) for name in rng.sample(names(), 24)]
    tagged = [("FetchRequest", 17), ("FetchResponse", 16), ("ApiVersionsResponse", 4)]
    nullable = [("ConsumerGroupHeartbeatResponse", 1), ("DescribeTopicPartitionsRequest", 0)]
    return sorted({*chosen, *tagged, *nullable})


@pytest.mark.slow
@pytest.mark.parametrize(("name", "version"), sample())
def test_what_a_plan_allows_is_written_and_read_again(name: str, version: int) -> None:
    codec = builtin_library().codec(name, version)

    @settings(
        max_examples=15, derandomize=True, database=None, deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )  # fmt: skip
    @given(messages(codec.plan.root))
    def round_trip(sent: dict[str, Any]) -> None:
        data = codec.encode(sent)
        assert codec.decode(data) == sent
        assert fields(annotate(codec.plan, data)) == sent
        assert codec.encode(codec.decode(data)) == data

    round_trip()


@settings(max_examples=200, derandomize=True, database=None, deadline=None)
@given(st.sampled_from(sample()), st.binary(max_size=80))
def test_no_bytes_confuse_the_readers(kind: tuple[str, int], data: bytes) -> None:
    check(builtin_library().codec(*kind), data)
