"""What releases take."""

from __future__ import annotations

from pathlib import Path

import pytest

import kwire
from kwire.analyze.offers import is_gone, known_releases, offer_of, release_like, release_named, versions_at
from kwire.schema.registry import builtin


def test_ranges() -> None:
    assert str(versions_at(0, (3, 9))) == "0-11"
    assert str(versions_at(0, (4, 0))) == "3-12"
    assert str(versions_at(1, (4, 0))) == "4-17"
    assert str(versions_at(8, (4, 1))) == "2-9"  # 10 is in work there
    assert not versions_at(68, (3, 5))
    assert not versions_at(4, (4, 0))


def test_gone_is_not_what_is_to_come() -> None:
    assert is_gone(4, (4, 0))
    assert not is_gone(76, (4, 0))
    assert not is_gone(4, (3, 9))


@pytest.mark.parametrize("release", [(2, 8), (3, 9), (4, 0), (4, 3)])
def test_a_release_is_known_by_what_it_offers(release: tuple[int, int]) -> None:
    ranges = {key: versions_at(key, release) for key in list(builtin().keys())}
    assert release_like(frozenset((key, *found) for key, found in ranges.items() if found)) == release


def test_answers_of_the_same_bytes_are_read_once() -> None:
    capture = Path(__file__).parents[2] / "fixtures" / "captures" / "classic.pcap.gz"
    answers = [one.response for one in kwire.read(capture, api=["ApiVersions"]) if one.response is not None]
    offers = [offer_of(response) for response in answers]
    said = {(response.name, response.data[8:]) for response in answers}
    assert len({id(one) for one in offers}) == len(said) < len(answers)
    assert offers[0] is not None
    assert offers[0].error == 0
    body = answers[0].body()
    assert body is not None
    assert offers[0].ranges == {row["ApiKey"]: (row["MinVersion"], row["MaxVersion"]) for row in body["ApiKeys"]}


def test_names() -> None:
    assert release_named("4.0.1") == (4, 0)
    assert release_named("v4") == (4, 0)
    assert known_releases()[-1] >= (4, 4)
    with pytest.raises(ValueError, match="invalid literal"):
        release_named("soon")
