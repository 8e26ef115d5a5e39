"""Finds connections that several points captured, and removes the duplicate rows.

Captures that overlap in time are read separately. Connections are the same if their ends are equal and so are the
initial sequence numbers, where both points saw a SYN; otherwise, if the captured bytes overlap in both directions at
about the same time. Frames are the same if they begin at the same byte of the same direction. Of equal frames one
stays: from a complete exchange first, then one of quality ok, then that of the capture that began first. An exchange
and its rows stay if one of its frames does; a connection's row, if one of its frames does or no other capture has it.
The table quality keeps all rows, and clients counts all captures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kwire.capture.streams import HALF, WRAP, signed
from kwire.capture.tcp import Key
from kwire.errors import SameNames
from kwire.session.connection_info import ConnectionInfo

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SKEW = 300_000_000_000  # ns by which two captures' clocks may differ
NEEDED = ("messages", "exchanges")  # tables that tell which frames are the same
FRAMES = frozenset({"messages", "bodies"})  # tables with a row per frame
FACTS = frozenset(
    {"partitions", "batches", "group_events"}
)  # tables with rows of an exchange, identified by its request


class Origin(NamedTuple):
    """The streams of a connection, the client's first. key: from the client to the broker; syns and zeros: sequence
    numbers of the SYN and of the first byte, None if not captured; lengths: bytes; times: of the first and the last
    segment, ns."""

    capture: str
    connection: str
    key: Key
    syns: tuple[int | None, int | None]
    zeros: tuple[int | None, int | None]
    lengths: tuple[int, int]
    times: tuple[int, int]


class Copy(NamedTuple):
    """One of several recordings of a connection. whose: the same number for all of them; turn: counts them from 0;
    client, broker: bytes to add to its stream positions to make them equal in all."""

    capture: str
    connection: str
    whose: int
    turn: int
    client: int
    broker: int


def named_apart(paths: Iterable[str]) -> None:
    """Checks that file names differ, since rows name captures without folders. Raises SameNames."""
    names: set[str] = set()
    for path in paths:
        name = Path(path).name
        if name in names:
            raise SameNames(f"two captures are called {name}: their rows could not be told apart, so rename one")
        names.add(name)


def origin_of(connection: ConnectionInfo) -> Origin | None:
    """The origin of a connection; None when its client is not known."""
    client = connection.client
    if client is None:
        return None
    mine, other = connection.tcp.streams[client], connection.tcp.streams[1 - client]
    key = connection.tcp.key if client == 0 else (*connection.tcp.key[3:], *connection.tcp.key[:3])
    return Origin(
        connection.capture, connection.name, key, (mine.syn, other.syn), (mine.first, other.first),
        (mine.position, other.position), (connection.tcp.first_time, connection.tcp.last_time),
    )  # fmt: skip


def copies(origins: Iterable[Origin]) -> list[Copy]:
    """The connections that were recorded more than once."""
    of: dict[Key, list[list[tuple[Origin, int, int]]]] = {}
    for origin in sorted(origins, key=lambda found: (found.times[0], found.capture, found.connection)):
        groups = of.setdefault(origin.key, [])
        for group in groups:
            bases = next((at for known in group if (at := _behind(known, origin)) is not None), None)
            if bases is not None:
                group.append((origin, *bases))
                break
        else:
            groups.append([(origin, 0, 0)])
    several = [group for groups in of.values() for group in groups if len(group) > 1]
    return [
        Copy(origin.capture, origin.connection, whose, turn, client, broker)
        for whose, group in enumerate(several)
        for turn, (origin, client, broker) in enumerate(group)
    ]


def _behind(known: tuple[Origin, int, int], other: Origin) -> tuple[int, int] | None:
    shifts = shifts_of(known[0], other)
    return None if shifts is None else (known[1] + shifts[0], known[2] + shifts[1])


def shifts_of(one: Origin, other: Origin) -> tuple[int, int] | None:
    """By how many bytes the other's two streams begin after those of one; None if they are not the same connection.

    Without SYNs, streams of 2 GiB and more are never the same, because sequence numbers wrap at 4 GiB.
    """
    if one.key != other.key or max(one.times[0], other.times[0]) - min(one.times[1], other.times[1]) > SKEW:
        return None
    syns = [mine == its for mine, its in zip(one.syns, other.syns, strict=True) if None not in (mine, its)]
    if not all(syns):
        return None
    shifts, met = [0, 0], []
    for turn, (mine, its) in enumerate(zip(one.zeros, other.zeros, strict=True)):
        if mine is not None and its is not None:
            shifts[turn] = shift = signed((its - mine) % WRAP)
            met.append(max(0, shift) < min(one.lengths[turn], shift + other.lengths[turn]))
    short = max(*one.lengths, *other.lengths) < HALF
    return (shifts[0], shifts[1]) if syns or (short and met and all(met)) else None


JUDGED = """
    with seen as (
      select m.capture, m.connection, m.kind, m.index, c.whose, c.turn, m.quality = 'ok' as fine,
        m.position + if(m.kind = 'request', c.client, c.broker) as place
      from {messages} m join {copies} c on m.capture = c.capture and m.connection = c.connection),
    told as (
      select seen.*, coalesce(h.whole, false) as whole, h.request_index, h.response_index, h.time_ns, h.correlation_id
      from seen left join {halves} h on seen.capture = h.capture and seen.connection = h.connection
        and seen.kind = h.kind and seen.index = h.index)
    select *, turn = first_value(turn) over (
      partition by whose, kind, place order by whole desc, fine desc, turn) as stays from told"""
HALVES = """
    select e.capture, e.connection, half.kind, half.index, e.request_index, e.response_index, e.time_ns,
      e.correlation_id, e.outcome = 'no answer wanted' or (
        e.request_index is not null and e.response_index is not null) as whole
    from {exchanges} e join {copies} c on e.capture = c.capture and e.connection = c.connection
    lateral view inline(array(
      struct('request' as kind, e.request_index as index), struct('response' as kind, e.response_index as index))) half
    where half.index is not null"""
GONE = """
    select capture, connection, request_index, response_index, time_ns, correlation_id from {judged}
    group by all having not bool_or(stays)"""
REST = {
    "exchanges": "t.request_index <=> g.request_index and t.response_index <=> g.response_index",
    "facts": "t.time_ns <=> g.time_ns and t.correlation_id <=> g.correlation_id",
    "connections": "true",
}


@contextmanager
def without_copies(
    spark: SparkSession, found: Sequence[Copy], table: Callable[[str], DataFrame]
) -> Iterator[Callable[[str, DataFrame], DataFrame]]:
    """Gives a function (name, frame) that removes duplicate rows from a table. table: returns a table of NEEDED by
    name."""
    places = spark.createDataFrame(
        list(found), "capture string, connection string, whose long, turn long, client long, broker long"
    ).hint("broadcast")
    halves = spark.sql(HALVES, exchanges=table("exchanges"), copies=places)
    judged = spark.sql(JUDGED, messages=table("messages"), copies=places, halves=halves).persist()
    gone = spark.sql(GONE, judged=judged)

    def rest(name: str, frame: DataFrame) -> DataFrame:
        if name in FRAMES:
            twice = judged.where("not stays").select("capture", "connection", "kind", "index")
            return frame.join(twice, ["capture", "connection", "kind", "index"], "left_anti").select(*frame.columns)
        if name not in REST and name not in FACTS:
            return frame
        lost = gone if name != "connections" else _of_connections(judged)
        also = REST["facts" if name in FACTS else name]
        return spark.sql(
            f"select t.* from {{t}} t left anti join {{g}} g "
            f"on t.capture = g.capture and t.connection = g.connection and {also}",
            t=frame, g=lost,
        )  # fmt: skip

    try:
        yield rest
    finally:
        judged.unpersist()


def _of_connections(judged: DataFrame) -> DataFrame:
    """The connections of which no frame stays."""
    return judged.groupBy("capture", "connection").agg({"stays": "max"}).where("not `max(stays)`")
