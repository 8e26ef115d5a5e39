"""The command that starts jobs: what it refuses before Spark starts, and Ctrl-C."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal

import pytest
from calls import Call

from kwire.cli.pipeline import Interrupt, measured, summary

CAPTURES = "fixtures/captures"


@pytest.mark.skipif(
    importlib.util.find_spec("pyspark") is None or shutil.which("java") is None, reason="Spark needs pyspark and Java"
)
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["kafka://localhost:9092/captures", "-o", "x"], "what Kafka has comes with --stream"),
        (["kafka://localhost:9092/x", "-o", "hdfs://host/x", "--stream"], "hdfs://host/x is none"),
        ([CAPTURES, "hdfs://host/y", "-o", "x", "--stream"], "one folder, or one topic"),
        ([CAPTURES, "-o", "x", "--stream", "--format", "delta"], "--stream writes Parquet"),
        ([CAPTURES, "-o", "x", "--stream", "--drop-duplicates"], "needs all captures at once"),
        ([CAPTURES, "-o", "x", "--stream", "--findings"], "need all captures at once"),
        ([CAPTURES, "-o", "x", "--conf", "spark.jars"], "write NAME=VALUE"),
        ([CAPTURES], "one of --out and --table-prefix"),
        ([CAPTURES, "-o", "x", "--table-prefix", "a.b."], "one of --out and --table-prefix"),
        ([CAPTURES, "--table-prefix", "a.b.", "--stream"], "--table-prefix takes no --stream"),
        ([CAPTURES, "-o", "x", "--json", "--metrics"], "both go to stdout"),
        (["file:///no/such.pcap", "-o", "x"], "'/no/such.pcap' does not exist"),
    ],
)
def test_what_cannot_be_is_refused(kwire: Call, arguments: list[str], said: str) -> None:
    ran = kwire("pipeline", "run", *arguments)
    assert (ran.status, said in ran.err) == (2, True)


def test_a_report_takes_an_address_of_a_file(kwire: Call) -> None:
    ran = kwire("pipeline", "report", "file:///")
    assert (ran.status, ran.err.startswith("kwire: /: no rollups there")) == (2, True)


def test_a_summary_for_machines() -> None:
    pytest.importorskip("pyarrow")
    from kwire.pipeline.run import RunOutcome

    done = RunOutcome({"messages": 2}, packets=9, size=100, again=1, failed={"a\n.pcap": "is empty"})
    said = summary(done, "lake")
    assert json.loads(said) == {
        "out": "lake", "rows": {"messages": 2}, "packets": 9, "splits": 0, "bytes": 100, "seam_bytes": 0, "parts": 0,
        "reread": 1, "stitched": 0, "known": 0, "grown": [], "failed": {"a\n.pcap": "is empty"},
    }  # fmt: skip
    assert "\n" not in said


def test_metrics_for_prometheus() -> None:
    pytest.importorskip("pyarrow")
    parser = pytest.importorskip("prometheus_client.parser")
    from kwire.pipeline.run import RunOutcome

    said = measured(RunOutcome({"messages": 2, "exchanges": 1}, packets=9, size=100, failed={"a": "is empty"}))
    assert said.splitlines()[0] == 'kwire_pipeline_rows_total{table="messages"} 2'
    found = {
        (sample.name, sample.labels.get("table")): sample.value
        for family in parser.text_string_to_metric_families(said + "\n")
        for sample in family.samples
    }
    assert found["kwire_pipeline_rows_total", "exchanges"] == 1
    assert found["kwire_pipeline_packets_total", None] == 9
    assert found["kwire_pipeline_failed_files_total", None] == 1


class Query:
    """A stream that runs on until it is stopped."""

    stopped = False

    def awaitTermination(self, _: float) -> bool:
        os.kill(os.getpid(), signal.SIGINT)
        return False

    def stop(self) -> None:
        self.stopped = True


def test_an_interrupt_ends_a_stream_in_order() -> None:
    interrupt, query, before = Interrupt(), Query(), signal.getsignal(signal.SIGINT)
    interrupt.wait(query)
    assert (interrupt.came, query.stopped, signal.getsignal(signal.SIGINT)) == (True, True, before)
