"""Seats: a consumer that comes back under another id is the same one; two at a time are two."""

from __future__ import annotations

import pytest

from kwire.analyze.members import MOST_TICKS, Seats, Ticks, client_of


def test_a_new_id_on_the_same_connection_has_the_same_seat() -> None:
    seats = Seats()
    first = seats.of("c1", "10.0.0.7", None, "a#1")
    first.taken = True
    assert seats.of("c1", "10.0.0.7", None, "a#1") is first


def test_two_at_a_time_have_seats_of_their_own() -> None:
    seats = Seats()
    first = seats.of("rdkafka", "10.0.0.7", None, "a#1")
    first.taken = True
    assert seats.of("rdkafka", "10.0.0.7", None, "b#1").label == "rdkafka/2"


def test_who_comes_back_on_another_connection_takes_the_vacant_seat() -> None:
    seats = Seats()
    first = seats.of("c1", "10.0.0.7", None, "a#1")
    first.taken = True
    seats.vacate(first)
    assert seats.of("c1", "10.0.0.7", None, "b#1") is first


def test_a_seat_that_was_taken_again_is_not_vacant() -> None:
    seats = Seats()
    first = seats.of("c1", "10.0.0.7", None, "a#1")
    first.taken = True
    seats.vacate(first)
    assert seats.of("c1", "10.0.0.7", None, "a#1") is first
    first.taken = True
    assert seats.of("c1", "10.0.0.7", None, "b#1") is not first


def test_ticks_stay_within_their_bound_and_lose_none() -> None:
    ticks = Ticks()
    for at in range(100_000):
        ticks.add(at * 3_000_000_000)
    assert len(ticks.counts) <= MOST_TICKS
    assert sum(count for _, count in ticks.moments()) == 100_000


@pytest.mark.parametrize(
    ("member", "client"),
    [
        ("classic-c2-fe481306-6767-46ae-a1a4-7dc69a266442", "classic-c2"),
        ("billing_fe481306-6767-46ae-a1a4-7dc69a266442", "billing"),
        ("jkci9wsJTnGWKmGmj89xZg", "jkci9wsJTnGWKmGmj89xZg"),
        ("", ""),
    ],
)
def test_client_ids_in_member_ids(member: str, client: str) -> None:
    assert client_of(member) == client
