"""kwire read --fields: chosen columns of the message record as tsv and csv."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

from kwire.errors import Exit

CLASSIC = "fixtures/captures/classic.pcap.gz"


def test_columns_are_those_of_json(kwire: Any) -> None:
    names = ["time", "client_id", "api", "latency_ns", "error"]
    rows = [json.loads(line) for line in kwire("read", CLASSIC, "--format", "json").text.splitlines()]
    expected = [["" if row[name] is None else str(row[name]) for name in names] for row in rows]
    tabs = kwire("read", CLASSIC, "--fields", ",".join(names))
    assert [line.split("\t") for line in tabs.text.splitlines()] == expected
    commas = kwire("read", CLASSIC, "--format", "csv", "--fields", ",".join(names))
    assert list(csv.reader(io.StringIO(commas.text))) == [names, *expected]


def test_filters_choose_and_bodies_may_come_along(kwire: Any) -> None:
    ran = kwire("read", CLASSIC, "--error", "UNKNOWN_MEMBER_ID", "--fields", "kind,body")
    request, response = ran.text.splitlines()
    assert json.loads(request.removeprefix("request\t"))["GroupId"] == "classic-billing"
    assert json.loads(response.removeprefix("response\t"))["ErrorCode"] == 25


def test_without_names_there_are_the_usual_columns(kwire: Any) -> None:
    head = kwire("read", CLASSIC, "--format", "csv").text.splitlines()[0]
    assert head.startswith("time,connection,kind,client_id,api,")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--fields", "tme"), "no field tme; did you mean time or time_ns?"),
        (("--fields", "zzzzz"), "no field zzzzz; there are capture, connection, kind,"),
        (("--fields", "time", "--format", "json"), "--fields is for --format tsv or csv"),
    ],
)
def test_what_cannot_be(options: tuple[str, ...], said: str, kwire: Any) -> None:
    ran = kwire("read", CLASSIC, *options)
    assert ran.status == Exit.USAGE
    assert said in ran.err
