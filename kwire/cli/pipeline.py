"""kwire pipeline: captures to tables on Spark, and what those tables say."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kwire.cli.captures import Bounds, connection_options
from kwire.cli.lake import SourceParam, compact_command, report_command, vacuum_command
from kwire.cli.quantities import Duration, Size
from kwire.counted import counted
from kwire.errors import Exit

if TYPE_CHECKING:
    from kwire.pipeline.run import RunOutcome

POLL = 0.5  # s


class SparkSettingParam(click.ParamType[tuple[str, str]]):
    """NAME=VALUE."""

    name = "setting"

    def convert(
        self, value: str | tuple[str, str], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        name, equals, said = value.partition("=")
        if not name or not equals:
            self.fail("write NAME=VALUE", param, ctx)
        return name, said


@click.group(name="pipeline")
def command() -> None:
    """Captures to tables on Spark, on this machine or on a cluster. Needs kwire[spark] and Java 17 or newer."""


for tables_command in (report_command, compact_command, vacuum_command):
    command.add_command(tables_command)


@command.command(name="run", short_help="Captures to a folder of tables and rollups.")
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True, type=SourceParam(exists=True))
@click.option("-o", "--out", "folder", metavar="DIR", help="Where they go: DIR/messages/date=…/api=…")
@click.option(
    "--table-prefix",
    "prefix",
    metavar="NAME.",
    help="No DIR, but tables of a catalog: lake.kafka. has lake.kafka.messages.",
)
@click.option("--master", metavar="URL", help="Spark's master, as local[4]; as spark-submit says otherwise.")
@click.option("--remote", metavar="URL", help="A server of Spark Connect, as sc://HOST:15002; not with --stream.")
@click.option("--tables", "chosen", metavar="NAMES", help="Only these, with commas between them.")
@click.option(
    "--split-size",
    type=Size(),
    default="128MiB",
    show_default=True,
    metavar="SIZE",
    help="How much of a capture a task reads.",
)
@click.option(
    "--bodies",
    type=click.Choice(["none", "json", "variant"]),
    default="none",
    show_default=True,
    help="The table bodies too, as JSON text or as Spark's variant.",
)
@click.option(
    "--findings", is_flag=True, help="The tables findings and audit too, by point and day; not with --stream."
)
@click.option(
    "--format",
    "form",
    default="parquet",
    show_default=True,
    metavar="NAME",
    help="parquet, or what the session can write: orc, delta, iceberg.",
)
@click.option(
    "--mode",
    type=click.Choice(["overwrite", "append", "overwrite-partitions", "error"]),
    default="overwrite",
    show_default=True,
    help="What is done with tables that are there; not with --stream.",
)
@click.option(
    "--incremental", is_flag=True, help="Only captures that no run to DIR has read yet; their rows are added."
)
@click.option(
    "--conf",
    "settings",
    type=SparkSettingParam(),
    multiple=True,
    metavar="NAME=VALUE",
    help="A setting of Spark's, as spark-submit takes it: spark.jars.packages=…",
)
@click.option("--drop-duplicates", is_flag=True, help="What several points captured, once; not with --stream.")
@click.option("--no-rollups", is_flag=True, help="Only the tables.")
@click.option("--json", "as_json", is_flag=True, help="What the run did as a line of JSON on stdout.")
@click.option("--metrics", is_flag=True, help="What the run did as metrics in Prometheus's text format on stdout.")
@click.option("--stream", is_flag=True, help="As they arrive in the one SOURCE, a folder or a topic; Ctrl-C ends it.")
@click.option("--available-now", is_flag=True, help="With --stream: those that are there, then end.")
@click.option("--max-files", type=click.IntRange(1), metavar="N", help="With --stream: files, or messages, of a batch.")
@click.option(
    "--lateness",
    type=Duration(),
    default="1m",
    show_default=True,
    metavar="TIME",
    help="With --stream: how long a file waits for one from before it, in the captures' time.",
)
@connection_options
def run_command(
    sources: tuple[str, ...], folder: str | None, prefix: str | None, master: str | None, remote: str | None, chosen:
    str | None, split_size: int, bodies: str, findings: bool, form: str, mode: str, incremental: bool, settings:
    tuple[tuple[str, str], ...], drop_duplicates: bool, no_rollups: bool, as_json: bool, metrics: bool, stream: bool,
    available_now: bool, max_files: int | None, lateness: int, bounds: Bounds,
) -> int:  # fmt: skip
    """Reads captures, and folders of captures, into DIR/TABLE/, partitioned by date and API; DIR/rollups/ gets sums.

    The tables are those of kwire table, row for row, however the files are cut into splits. A SOURCE may be hdfs:, s3a:
    or whatever else Spark reads here, and with --stream kafka://HOST:PORT/TOPIC: the keys of messages name capture
    points, the values are captures. DIR may be hdfs:, s3a: and so on too; not for a topic.
    """
    from kwire.pipeline import need_spark

    need_spark(remote is not None)
    if bool(folder) == bool(prefix):
        raise click.UsageError("one of --out and --table-prefix says where the tables go")
    from kwire.cli.step_progress import StepProgress
    from kwire.cli.table import names_of
    from kwire.pipeline.catalog_tables import CATALOG
    from kwire.pipeline.job import Job
    from kwire.pipeline.messages import is_topic
    from kwire.pipeline.run import run, session
    from kwire.pipeline.stream import run_stream
    from kwire.render.bodies import BodyRenderer

    if prefix and stream:
        raise click.UsageError(
            "--table-prefix takes no --stream: a batch done twice would double rows there; --out does"
        )
    folder = folder or CATALOG + (prefix or "")
    names = names_of(chosen, bodies != "none", findings)
    if as_json and metrics:
        raise click.UsageError("--json or --metrics: both go to stdout")
    if remote and master:
        raise click.UsageError("--remote is a server that has its own --master")
    if split_size < 1:
        raise click.UsageError("--split-size must be at least a byte")
    if stream:
        _fit_for_streams(sources, folder, form, bodies, drop_duplicates, names)
        if remote:
            raise click.UsageError("--stream needs a session of its own: --master, not --remote")
        if incremental or mode != "overwrite":
            raise click.UsageError("--stream goes on where it was, without --mode and --incremental")
    elif incremental:
        _fit_for_more(folder, form, mode, bodies, drop_duplicates)
    if not stream and any(map(is_topic, sources)):
        raise click.UsageError("what Kafka has comes with --stream; with --available-now too it ends")
    interrupt = Interrupt()
    spark = session(master, settings=dict(settings), remote=remote)
    try:
        job = Job(tuple(names), bounds.settings(), BodyRenderer(False) if "bodies" in names else None)
        if stream:
            done = run_stream(
                spark, sources[0], folder, job, split_size=split_size, lateness=lateness, most=max_files,
                once=available_now, rollups=not no_rollups, stop=interrupt.wait,
            )  # fmt: skip
        else:
            with StepProgress() as progress:
                done = run(
                    spark, sources, folder, job, split_size=split_size, form=form, rollups=not no_rollups,
                    variant=bodies == "variant", drop_duplicates=drop_duplicates, mode=mode, incremental=incremental,
                    watch=progress.show if progress.wanted else None,
                )  # fmt: skip
    finally:
        spark.stop()
    if as_json:
        click.echo(summary(done, prefix or folder))
    if metrics:
        click.echo(measured(done))
    status = _conclude(done, prefix or folder)
    return Exit.INTERRUPTED if interrupt.came else status


class Interrupt:
    """Ctrl-C while a stream runs: it ends, and then what there is gets written."""

    def __init__(self) -> None:
        self.came = False

    def wait(self, query: Any) -> None:
        """Returns when the stream is over."""
        before = signal.signal(signal.SIGINT, self._note)  # Spark's own handler breaks off jobs
        try:
            while not self.came and not query.awaitTermination(POLL):
                pass
        finally:
            signal.signal(signal.SIGINT, before)
        query.stop()

    def _note(self, *_: object) -> None:
        self.came = True


def _fit_for_streams(
    sources: tuple[str, ...], folder: str, form: str, bodies: str, drop_duplicates: bool, names: list[str]
) -> None:
    """Raises UsageError for what a stream cannot do."""
    from kwire.pipeline.messages import is_topic
    from kwire.pipeline.paths import is_elsewhere
    from kwire.tables.columns import JUDGEMENTS

    if len(sources) > 1 or not (is_elsewhere(sources[0]) or Path(sources[0]).is_dir()):
        raise click.UsageError("--stream reads the files of one folder, or one topic")
    if form != "parquet" or bodies == "variant":
        raise click.UsageError("--stream writes Parquet, and bodies as JSON")
    if drop_duplicates:
        raise click.UsageError("--drop-duplicates needs all captures at once, and --stream has not")
    if JUDGEMENTS.keys() & set(names):
        raise click.UsageError("findings and audit need all captures at once, and --stream has not")
    if is_topic(sources[0]) and is_elsewhere(folder):
        raise click.UsageError(f"what Kafka has is kept in a folder that all workers see, and {folder} is none")


def _fit_for_more(
    folder: str, form: str, mode: str, bodies: str, drop_duplicates: bool
) -> None:  # fmt: skip
    """Raises UsageError for what cannot be added to."""
    from kwire.pipeline.catalog_tables import is_catalog
    from kwire.pipeline.paths import is_elsewhere

    if mode != "overwrite":
        raise click.UsageError("--incremental adds: it takes no --mode")
    if not is_catalog(folder) and (form != "parquet" or bodies == "variant" or is_elsewhere(folder)):
        raise click.UsageError(
            "--incremental writes Parquet, to a folder of this machine's, and bodies as JSON; with --table-prefix any"
        )
    if drop_duplicates:
        raise click.UsageError("--drop-duplicates needs all captures at once, and --incremental reads the new ones")


def summary(done: RunOutcome, folder: str) -> str:
    """What a run did, for machines: bytes of the captures and, of these, seams, which travelled between its steps;
    connection parts that were joined, and those that had to be read again."""
    return json.dumps({
        "out": folder, "rows": done.rows, "packets": done.packets, "splits": done.splits, "bytes": done.size,
        "seam_bytes": done.seams, "parts": done.parts, "reread": done.again, "stitched": done.stitched,
        "known": done.known, "grown": done.grown, "failed": done.failed,
    })  # fmt: skip


def measured(done: RunOutcome) -> str:
    """What a run did, a line for each metric, as Prometheus's collectors of text files and logs read them."""
    counts = {
        "packets": done.packets, "splits": done.splits, "bytes": done.size, "seam_bytes": done.seams,
        "parts": done.parts, "reread": done.again, "failed_files": len(done.failed),
    }  # fmt: skip
    return "\n".join([
        *(f'kwire_pipeline_rows_total{{table="{name}"}} {count}' for name, count in done.rows.items()),
        *(f"kwire_pipeline_{name}_total {count}" for name, count in counts.items()),
    ])  # fmt: skip


def _conclude(done: RunOutcome, folder: str) -> int:
    """The last words, on stderr."""
    from kwire.render.lines import clean

    for path, why in list(done.failed.items())[:20]:
        print(f"kwire: {clean(path)} could not be read: {clean(why)}", file=sys.stderr)
    for path in done.grown[:20]:
        print(f"kwire: {clean(path)} has grown since it was read; the rest is not read", file=sys.stderr)
    if done.known:
        print(f"kwire: {counted(done.known, 'capture')} known", file=sys.stderr)
    said = ", ".join(f"{count:,} {name}" for name, count in done.rows.items())
    print(f"kwire: {said} to {folder}", file=sys.stderr)
    print(
        f"kwire: {counted(done.packets, 'packet')} in {counted(done.splits, 'split')}; "
        f"seams {done.seams:,} of {done.size:,} bytes",
        file=sys.stderr,
    )
    if done.failed:
        return Exit.MALFORMED
    return Exit.OK if done.known or any(done.rows.values()) else Exit.NOT_KAFKA
