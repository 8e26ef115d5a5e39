"""Names as places and as links in prose."""

from __future__ import annotations

import pytest

from kwire.codec.library import builtin_library
from kwire.site.links import Links, names_of, slug

LINKS = Links(names_of(builtin_library(), {"KIP-848"}))


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("Fetch", "fetch"),
        ("ConsumerGroupHeartbeat", "consumer-group-heartbeat"),
        ("REBALANCE_IN_PROGRESS", "rebalance-in-progress"),
        ("ListClientMetricsResources", "list-client-metrics-resources"),
    ],
)
def test_a_name_is_a_folder(name: str, place: str) -> None:
    assert slug(name) == place


@pytest.mark.parametrize(
    ("here", "place", "address"),
    [
        ("", "fetch", "fetch/index.html"),
        ("fetch", "", "../index.html"),
        ("errors/none", "fetch#v1", "../../fetch/index.html#v1"),
        ("fetch", "fetch#v1", "#v1"),
    ],
)
def test_addresses_hold_from_a_disk(here: str, place: str, address: str) -> None:
    assert LINKS.at(here).href(place) == address


def test_what_prose_names_is_a_link_once_and_the_rest_is_text() -> None:
    shown = LINKS.at("fetch").prose("After JoinGroup, JoinGroup and KIP-848: Fetch <b> NOT_AN_ERROR")
    assert shown == (
        'After <a href="../join-group/index.html">JoinGroup</a>, JoinGroup and '
        '<a href="../kips/index.html#kip-848">KIP-848</a>: Fetch &lt;b&gt; NOT_AN_ERROR'
    )
