"""Captures read in place from an S3 server: the tables are those of the same files here, and what a run asks for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from calls import Call
from s3server import S3Server, s3_server

from kwire.pipeline.job import Job
from kwire.pipeline.ledger import ENDS
from kwire.pipeline.run import run
from kwire.tables.columns import DEFAULT


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.mark.parametrize("size", [9000, 1 << 20])
def test_tables_of_captures_in_place(
    spark: Any, tmp_path: Path, s3: S3Server, unpacked: Call, expected: Call, written: Call, size: int
) -> None:
    captures = [unpacked(name) for name in ("kafkajs.pcap", "consumer848.pcap", "classic.pcap.gz")]
    for name, value in s3.settings.items():
        spark.conf.set(name, value)
    s3.put(f"captures-{size}", *captures)
    out = tmp_path / "out"
    done = run(spark, [f"s3a://captures-{size}/in/"], str(out), Job(DEFAULT), split_size=size, rollups=False)
    assert written(out, DEFAULT) == expected(captures, DEFAULT)
    noted = sum(1 + (path.stat().st_size > ENDS) for path in captures)  # requests to tell a file again by its ends
    if done.splits == len(captures):  # each is opened and read once, and once more to be noted
        assert s3.asked == {"GET list": 2, "HEAD": 1 + 2 * len(captures), "GET range": len(captures) + noted}
    else:  # a file is opened to see what it is; a split is read once, or once more where the joint needs it
        assert s3.asked["HEAD"] <= 1 + 2 * len(captures) + 2 * done.splits
