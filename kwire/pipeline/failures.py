"""Spark's errors as one line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from kwire.errors import SparkFailed

CAUSE = re.compile(r".*?(?:\bexception: +|(?=\b\w+(?:Exception|Error): ))(.+)")
CONDITION = re.compile(r".*?\[(?!STREAM_FAILED)[A-Z][A-Z_]+(?:\.\w+)*\] (.+)")  # Spark's own, with a text for users
STATE = re.compile(r"\s*SQLSTATE: \w+$")


@contextmanager
def in_a_line() -> Iterator[None]:
    """Turns Spark's exceptions into SparkFailed."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise SparkFailed(f"Spark: {reason(error)}") from error


def reason(error: Exception) -> str:
    """The line of a Spark exception that says why: the last with an error condition, else the last cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip() and not line.lstrip().startswith("at ")]
    for shape in (CONDITION, CAUSE):
        found = [match[1] for line in lines if (match := shape.match(line))]
        if found:
            return STATE.sub("", found[-1])[:300]
    return (lines or ["unknown"])[0][:300]
