"""Share sessions: epochs, partitions, how many there may be."""

from __future__ import annotations

from uuid import UUID

from kwire.coordinator.share.sessions import LAST_EPOCH, ShareSessions

T = UUID(int=1)
A, B, C = (T, 0), (T, 1), (T, 2)


def test_a_session_goes_from_epoch_to_epoch() -> None:
    sessions = ShareSessions()
    session, check = sessions.fetch("g", "m", 0, [A, B], [], False)
    assert session is not None
    assert list(session.spots) == [A, B]
    assert sessions.fetch("g", "m", 2, [], [], False)[1].error == 123
    assert sessions.fetch("g", "m", 1, [C], [A], False)[0] is session
    assert (list(session.spots), session.new) == ([B, C], {C})
    assert sessions.acknowledge("g", "m", 1).error == 123
    assert sessions.acknowledge("g", "m", 2).error == 0
    assert sessions.acknowledge("g", "m", 0).why == "epoch 0: only a ShareFetch opens a session"
    assert sessions.acknowledge("g", "m", -1).error == 0
    assert sessions.close("g", "m") is session
    assert sessions.acknowledge("g", "m", 3).error == 122
    assert check.why == "a session of 2 partitions"


def test_a_session_is_opened_anew() -> None:
    sessions = ShareSessions(most=1)
    first = sessions.fetch("g", "m", 0, [A], [], False)[0]
    second = sessions.fetch("g", "m", 0, [B], [], False)[0]
    assert first is not second
    full = sessions.fetch("g", "n", 0, [A], [], False)[1]
    assert (full.error, full.why) == (133, "1 sessions are open, group.share.max.share.sessions is 1")
    assert sessions.fetch("g", "m", 0, [A], [], True)[1].error == 42


def test_turns() -> None:
    session = ShareSessions().fetch("g", "m", 0, [A, B, C], [], False)[0]
    assert session is not None
    assert [session.rotated(epoch)[0] for epoch in (0, 1, 2, 3)] == [A, B, C, A]
    session.served(A)
    session.served((T, 9))
    assert list(session.spots) == [B, C, A]


def test_epochs_begin_again_at_one() -> None:
    sessions = ShareSessions()
    session = sessions.fetch("g", "m", 0, [], [], False)[0]
    assert session is not None
    session.epoch = LAST_EPOCH
    sessions.fetch("g", "m", LAST_EPOCH, [], [], False)
    assert session.epoch == 1
