"""What Spark says when it fails, as one line."""

from __future__ import annotations

import pytest

from kwire.errors import SparkFailed
from kwire.pipeline.failures import in_a_line, reason


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("[PATH_NOT_FOUND] Path does not exist: x. SQLSTATE: 42K03", "Path does not exist: x."),
        (
            "An error occurred\n: org.apache.spark.SparkClassNotFoundException: [DATA_SOURCE_NOT_FOUND] No such: x\n"
            "\tat org.X.y(X.scala:1)\nCaused by: java.lang.ClassNotFoundException: x.DefaultSource\n\t... 5 more",
            "No such: x",
        ),
        (
            "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Timed out. SQLSTATE: XXKST\n"
            "=== Streaming Query ===\nplan",
            "Timed out.",
        ),
        (
            "Job aborted\n: org.a.SparkException: Job aborted\n\tat a.b\nCaused by: org.a.TimeoutException: late",
            "TimeoutException: late",
        ),
        ("Traceback\n  File x\nkwire.errors.CaptureError: bad.pcap: bad", "CaptureError: bad.pcap: bad"),
        ("only this\nand that", "only this"),
        ("", "unknown"),
        ("x" * 999, "x" * 300),
    ],
)
def test_the_line_that_says_it(said: str, line: str) -> None:
    assert reason(Exception(said)) == line


def test_errors_of_java_and_spark_are_one_of_ours() -> None:
    py4j = pytest.importorskip("py4j.protocol")
    errors = pytest.importorskip("pyspark.errors")
    for error in (py4j.Py4JError("[A_B] why"), errors.AnalysisException("[A_B] why")):
        with pytest.raises(SparkFailed, match=r"^Spark: why$"), in_a_line():
            raise error
