"""kwire what-if: what other settings would make of a capture's traffic."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kwire.cli.captures import Captures, capture_options
from kwire.cli.quantities import Size
from kwire.errors import Exit

if TYPE_CHECKING:
    from kwire.analyze.recompression import Recompression, Way
    from kwire.render.what_if import Answers
    from kwire.session.batch import ExchangeBatch

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
LINGERS = (0.0, 5.0, 20.0, 100.0)
LEAST = (16 << 10, 128 << 10)


@click.command("what-if")
@click.option("--codec", "codecs", multiple=True, metavar="NAME[:LEVEL]",
              help="Compressed so: gzip, snappy, lz4, zstd, none, with a level as zstd:9; repeatable.")  # fmt: skip
@click.option("--linger", "lingers", type=click.FloatRange(0), multiple=True, metavar="MS",
              help="Batches that wait so long for more; repeatable. 0, 5, 20, 100.")  # fmt: skip
@click.option("--batch-size", type=Size(), default="16k", metavar="SIZE", show_default=True,
              help="With --linger, how large batches get, before compression.")  # fmt: skip
@click.option("--fetch-min-bytes", "least", type=Size(), multiple=True, metavar="SIZE",
              help="Fetches that wait for so much; repeatable. 16k, 128k.")  # fmt: skip
@click.option("--fetch-max-wait", type=click.IntRange(1), default=500, metavar="MS", show_default=True,
              help="How long they wait.")  # fmt: skip
@click.option("--zone", "zones", multiple=True, metavar="CIDR=NAME",
              help="Addresses of a zone; repeatable. Brokers' racks are known from Metadata.")  # fmt: skip
@click.option("--sample", type=Size(), default="32m", metavar="SIZE", show_default=True,
              help="So much of each topic's records is computed with; the rest counts in proportion.")  # fmt: skip
@click.option("--all", "everything", is_flag=True, help="All topics and clients, not only the largest.")
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", help="The output format.")
@capture_options
def command(
    captures: Captures, codecs: tuple[str, ...], lingers: tuple[float, ...], batch_size: int, least: tuple[int, ...],
    fetch_max_wait: int, zones: tuple[str, ...], sample: int, everything: bool, output: str,
) -> Exit:  # fmt: skip
    """Says what other settings of producers and consumers would change, by computing it on the very records of a
    capture: bytes, batches and CPU time of each codec and of batches that wait longer; fetches with another
    fetch.min.bytes; and, with --zone, what goes between zones.

    \b
    kwire what-if said.pcapng --topic orders
    kwire what-if said.pcapng --codec zstd:1 --codec zstd:9 --linger 50 --batch-size 64k
    kwire what-if said.pcapng --zone 10.0.1.0/24=a --zone 10.0.2.0/24=b
    """
    from kwire.analyze.fetch_sizes import FetchSizes
    from kwire.analyze.recompression import Recompression, Way
    from kwire.analyze.zones import Zone, Zones
    from kwire.cli.output import show, width
    from kwire.render.jsonform import dumps
    from kwire.render.what_if import Answers, document, what_if_lines

    try:
        ways = [Way.of(text) for text in codecs or CODECS]
        told = Zones([Zone.of(text) for text in zones]) if zones else None
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    records, fetches = Recompression(sample), FetchSizes()

    def add(batch: ExchangeBatch) -> None:
        records.add(batch)
        fetches.add(batch)
        if told is not None:
            told.add(batch)

    done = captures.each_batch(add, lambda _: None, tracking=True)
    answers = Answers(zones=told)
    _topics(answers, records, ways, lingers or LINGERS, batch_size)
    for name, found in fetches.clients.items():
        waits = {f"fetch.min.bytes {size}": found.waiting(size, fetch_max_wait) for size in least or LEAST}
        answers.fetches[name] = found, waits
    if output == "json":
        print(dumps(document(answers)))
    else:
        show(what_if_lines(answers, width(), everything))
    return done.conclude()


def _topics(
    answers: Answers, records: Recompression, ways: list[Way], lingers: tuple[float, ...], batch_size: int
) -> None:
    from kwire.analyze.recompression import Way

    for name, topic in records.topics.items():
        as_now = Way.of(topic.codec)
        batching = {
            f"linger.ms {linger:g}, {as_now.codec}": topic.rebatched(linger, batch_size, as_now) for linger in lingers
        }
        answers.topics[name] = topic, {str(way): topic.compressed(way) for way in ways}, batching
