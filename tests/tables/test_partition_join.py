"""Partitions that were asked for and answered, joined by exchange, group, topic and number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kwire.codec.columnar import Numbers
from kwire.tables.partition_columns import NamedPartitions
from kwire.tables.partition_join import JoinedPartitions, join

Place = tuple[int, int, int, int]  # exchange, group, topic, partition


def named(places: list[Place], values: list[int], ident: int = -1) -> NamedPartitions:
    columns = np.array(places, np.int64).reshape(-1, 4).T
    count = np.arange(len(places))
    fields: dict[str, Any] = {"Value": Numbers(np.array(values, np.int64))}
    return NamedPartitions(
        columns[0], columns[1], columns[2], np.full(len(places), ident), columns[3], count, fields, b""
    )


ASKED: list[Place] = [(0, -1, 0, 3), (0, -1, 0, 1), (2, 1, 1, -1), (3, 0, 0, 1 << 31)]
ANSWERED: list[Place] = [(0, -1, 0, 1), (1, -1, 0, 1), (2, 1, 1, -1), (2, 0, 1, -1), (3, 0, 0, 1 << 31)]


def made(most: int) -> JoinedPartitions:
    return join((named(ASKED, [10, 11, 12, 13]), named(ANSWERED, [20, 21, 22, 23, 24], 5)), most)


@pytest.mark.parametrize("most", [1 << 62, 1], ids=["small numbers", "large numbers"])
def test_what_is_of_one_place_meets(most: int) -> None:
    found = made(most)
    both = zip(*(found.numbers(turn, "Value", pa.int64()).to_pylist() for turn in (0, 1)), strict=True)
    places = zip(*(each.tolist() for each in (found.owner, found.group, found.topic, found.number)), strict=True)
    assert dict(zip(places, both, strict=True)) == {
        (0, -1, 0, 1): (11, 20), (0, -1, 0, 3): (10, None), (1, -1, 0, 1): (None, 21), (2, 0, 1, -1): (None, 23),
        (2, 1, 1, -1): (12, 22), (3, 0, 0, 1 << 31): (13, 24),
    }  # fmt: skip
    assert found.owner.tolist() == [0, 0, 1, 2, 2, 3]


def test_rows_lead_back() -> None:
    found = made(1 << 62)
    assert [found.at[0][row] for row in found.rows[0]] == list(range(len(ASKED)))
    assert [found.at[1][row] for row in found.rows[1]] == list(range(len(ANSWERED)))


def test_the_id_is_of_the_request_or_else_of_the_response() -> None:
    sides = named(ASKED[:1], [0], 4), named([*ASKED[:1], (1, -1, 0, 0)], [0, 0], 5)
    assert join(sides).ident.tolist() == [4, 5]
    assert join((named(ASKED[:1], [0]), sides[1])).ident.tolist() == [5, 5]


def test_a_field_that_is_not_there_and_values_that_are_not_valid_are_null() -> None:
    found = made(1 << 62)
    assert found.numbers(0, "Other", pa.int32()).null_count == len(found)
    valid = np.array([True, False, True, True])
    assert found.taken(0, np.arange(4), pa.int8(), valid).to_pylist() == [None, 0, None, None, 2, 3]


def test_a_place_that_is_named_twice_has_two_rows() -> None:
    asked = named([(0, -1, 0, 0), (1, -1, 0, 0), (1, -1, 0, 1), (1, -1, 0, 0), (2, -1, 0, 0)], [1, 2, 3, 4, 5])
    found = join((asked, named([(1, -1, 0, 0), (1, -1, 0, 0), (1, -1, 0, 0), (2, -1, 0, 1)], [6, 7, 8, 9])))
    assert found.owner.tolist() == [0, 1, 1, 1, 1, 2, 2]
    assert found.number.tolist() == [0, 0, 0, 0, 1, 0, 1]
    assert found.numbers(0, "Value", pa.int64()).to_pylist() == [1, 2, 4, None, 3, 5, None]
    assert found.numbers(1, "Value", pa.int64()).to_pylist() == [None, 6, 7, 8, None, None, 9]


def test_nothing_at_all() -> None:
    found = join((named([], []), named([], [])))
    assert (len(found), found.numbers(0, "Value", pa.int64()).to_pylist()) == (0, [])
