"""Exchanges as lines: columns for every width, times, what they are about, and how they ended."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kwire.render.exchanges import ExchangeLines, about_text, clock, outcome_of, took
from kwire.render.lines import plain
from kwire.session.about import About
from kwire.session.framing import Skipped
from kwire.session.reading import Reading

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"
EXCHANGES = list(Reading([CAPTURES / "classic.pcap.gz"], tracking=True).exchanges())
START = EXCHANGES[0].time


@pytest.mark.parametrize(
    ("latency", "text"),
    [(None, ""), (0, "0.00 ms"), (4_000, "0.00 ms"), (49_999, "0.05 ms"), (50_000, "0.1 ms"), (400_000, "0.4 ms"),
     (9_949_999, "9.9 ms"), (9_950_000, "10 ms"), (31_000_000, "31 ms"), (999_499_999, "999 ms"),
     (999_500_000, "1.00 s"), (1_520_000_000, "1.52 s"), (-400_000, "-0.4 ms")],
)  # fmt: skip
def test_how_long_it_took(latency: int | None, text: str) -> None:
    assert took(latency) == text


@pytest.mark.parametrize(
    ("moment", "text"),
    [(0, "00:00:00.000000"), (1_795_227_371_331_748_999, "02:16:11.331748"), (86_399_999_999_999, "23:59:59.999999")],
)
def test_the_time_of_day(moment: int, text: str) -> None:
    assert clock(moment) == text


@pytest.mark.parametrize(
    ("passed", "text"), [(0, "0.000000"), (1_500, "0.000001"), (12_345_678_901, "12.345678"), (-2_000_000, "-0.002000")]
)
def test_seconds_since_the_start(passed: int, text: str) -> None:
    assert ExchangeLines(100, 5_000_000_000).time(5_000_000_000 + passed) == text
    assert ExchangeLines(100, None).time(0) == "00:00:00.000000"


@pytest.mark.parametrize(
    ("about", "text"),
    [
        (About(), ""),
        (About({"orders": [0, 1]}), "orders-0,1"),
        (About({"orders": []}), "orders"),
        (About({"o": list(range(9))}), "o-0,1,2,3,4,5,+3"),
        (About({name: [] for name in "abcde"}), "a b c +2 topics"),
        (About(groups=["g"], generation=3), "group g gen 3"),
        (About(groups=["g"], generation=-1, epoch=7), "group g epoch 7"),
        (About(groups=["a", "b", "c"]), "group a b +1"),
        (About(transactions=["t"]), "txn t"),
        (About(generation=3), ""),
        (About({"x": [1]}, ["g"], words=["session 5"]), "group g x-1 session 5"),
        (About({"\x1b[31m": [1]}, ["\u202e"], words=["\r"]), "group \\u202e \\x1b[31m-1 \\r"),
    ],
)
def test_what_it_is_about(about: About, text: str) -> None:
    assert about_text(about) == text


def _message(quality: str = "ok", errors: tuple[int, ...] = ()) -> Any:
    return SimpleNamespace(quality=quality, errors=errors, token=False, api=object())


def _exchange(request: Any, response: Any, **given: Any) -> Any:
    error = response.errors[0] if response and response.errors else None
    first = request or response
    return SimpleNamespace(
        **{"request": request, "response": response, "silent": False, "ending": None, "error": error, "first": first,
           "api": "Fetch", **given}
    )  # fmt: skip


@pytest.mark.parametrize(
    ("exchange", "text", "style"),
    [
        (_exchange(_message(), _message()), "ok", "good"),
        (_exchange(_message(), _message(errors=(27,))), "REBALANCE_IN_PROGRESS", "error"),
        (_exchange(_message(), _message(errors=(27,)), api="Heartbeat"), "REBALANCE_IN_PROGRESS", "note"),
        (_exchange(_message(), _message(errors=(35,)), api="ApiVersions"), "UNSUPPORTED_VERSION", "note"),
        (_exchange(_message(), _message(errors=(25, 25, 3))), "UNKNOWN_MEMBER_ID +2", "error"),
        (_exchange(_message(), _message(errors=(79,))), "MEMBER_ID_REQUIRED", "note"),
        (_exchange(_message(), _message(errors=(-99,))), "error -99", "error"),
        (_exchange(_message(), None, silent=True), "no answer wanted", "dim"),
        (_exchange(_message("malformed"), _message()), "ok, request malformed", "error"),
        (_exchange(_message(), _message("trailing")), "ok, answer trailing", "error"),
        (_exchange(_message(), None, ending="the broker answered with HTTP response (\x1b[31m), then the end"),
         "no answer: the broker answered with HTTP response (\\x1b[31m), then the end", "error"),
    ],
)  # fmt: skip
def test_how_it_ended(exchange: Any, text: str, style: str) -> None:
    assert outcome_of(exchange) == (text, style)


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("width", [60, 64, 72, 80, 99, 100, 119, 120, 149, 150, 200, 400])
def test_every_line_fits_and_says_api_and_outcome(width: int, bounded: bool) -> None:
    lines = ExchangeLines(width, START, bounded)
    assert len(plain(lines.head())) <= width
    for exchange in EXCHANGES:
        texts = [plain(line) for line in lines.lines(exchange)]
        assert exchange.api in texts[0]
        assert outcome_of(exchange)[0].split(" ")[-1] in texts[-1]
        if bounded:
            assert max(map(len, texts)) <= width
        else:
            assert len(texts) == 1
            assert about_text(exchange.about) in texts[0]


def test_columns_stand_beneath_their_heads_where_nothing_is_longer() -> None:
    lines = ExchangeLines(200, START)
    head = plain(lines.head())
    row = plain(lines.lines(EXCHANGES[0])[0])
    assert row.index("ApiVersions v3") == head.index("exchange")
    assert row.index("127.0.0.1:9092") == head.index("broker")


@pytest.mark.parametrize("width", [60, 80, 200])
def test_bytes_of_which_no_frame_could_be_made(width: int) -> None:
    lines = ExchangeLines(width, 0)
    connection: Any = SimpleNamespace(ends=("10.0.0.7:1", "10.0.0.2:9092"))
    texts = [plain(line) for line in lines.gap(connection, "response", Skipped(1234, 5678, 1_000_000_000, "why so"))]
    assert " ".join(text.strip() for text in texts) == (
        "1.000000  5,678 bytes from 10.0.0.2:9092 skipped at position 1,234: why so"
    )
    assert max(map(len, texts)) <= width


@pytest.mark.parametrize("width", [60, 80, 100, 120, 150, 200])
@pytest.mark.parametrize("start", [None, START])
def test_on_a_terminal_times_stay_whole_and_lines_within_the_width(width: int, start: int | None) -> None:
    lines = ExchangeLines(width, start)
    for exchange in EXCHANGES:
        shown = [plain(line) for line in lines.lines(exchange)]
        assert shown[0].split()[0] == lines.time(exchange.time)
        assert max(map(len, shown)) <= width


def test_times_that_need_more_than_their_column_stay_whole_too() -> None:
    (line, *_) = ExchangeLines(80, START - 12_345 * 10**9).lines(EXCHANGES[0])
    assert plain(line).startswith("12345.000")
    assert plain(line).split()[1:4] == ["clas…dmin", "ApiVersions", "v3"]


@pytest.mark.parametrize("width", [80, 100, 120])
def test_long_names_of_apis_are_whole_where_the_line_has_room(width: int) -> None:
    exchanges = list(Reading([CAPTURES / "share.pcap"], tracking=True).exchanges())
    long = [exchange for exchange in exchanges if len(exchange.api) > 20]
    assert {len(exchange.api) for exchange in long} >= {23, 25}
    for exchange in long:
        first, *beneath = ExchangeLines(width, START).lines(exchange)
        assert f" {exchange.api} v{exchange.api_version} " in plain(first) + " "
        assert "  ok" in plain(beneath[0] if beneath else first)


def test_a_name_that_no_line_has_room_for_keeps_its_version() -> None:
    exchanges = Reading([CAPTURES / "share.pcap"], tracking=True).exchanges()
    exchange = next(exchange for exchange in exchanges if exchange.api == "InitializeShareGroupState")
    first, _ = ExchangeLines(60, None).lines(exchange)
    assert "… v0" in plain(first)
    assert len(plain(first)) <= 60
