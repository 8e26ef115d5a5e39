"""Bodies that are equal byte by byte are decoded once; how many are kept is bounded by their bytes."""

from __future__ import annotations

import pickle

from kwire.codec.library import builtin_library
from kwire.session.equal_bodies import EqualBodies

HEARTBEAT = builtin_library().codec("HeartbeatResponse", 4)
OK, REBALANCING = bytes(7), bytes(4) + b"\x00\x1b" + bytes(1)


def test_equal_bodies_have_the_same_values() -> None:
    bodies = EqualBodies()
    first = bodies.of(HEARTBEAT, OK)
    assert first == {"ThrottleTimeMs": 0, "ErrorCode": 0}
    assert bodies.of(HEARTBEAT, bytes(bytearray(OK))) is first
    assert bodies.of(HEARTBEAT, REBALANCING) == {"ThrottleTimeMs": 0, "ErrorCode": 27}


def test_another_version_is_another_body() -> None:
    bodies = EqualBodies()
    assert bodies.of(HEARTBEAT, OK) is not bodies.of(builtin_library().codec("HeartbeatResponse", 3), OK)


def test_what_cannot_be_decoded_has_no_values() -> None:
    bodies = EqualBodies()
    assert bodies.of(HEARTBEAT, b"\x00") is None
    assert bodies.of(HEARTBEAT, b"\x00") is None


def test_bodies_that_are_kept_are_bounded() -> None:
    bodies = EqualBodies(room=100)
    for throttled in range(1000):
        found = bodies.of(HEARTBEAT, throttled.to_bytes(4, "big") + bytes(3))
        assert found is not None
        assert found["ThrottleTimeMs"] == throttled
        assert len(bodies._known) < 20


def test_pickled_it_begins_anew() -> None:
    bodies = EqualBodies(room=100)
    bodies.of(HEARTBEAT, OK)
    again = pickle.loads(pickle.dumps(bodies))
    assert again.of(HEARTBEAT, OK) == bodies.of(HEARTBEAT, OK)
