"""Captures read in place from an S3 server, and streams to it: the tables are those of the same files here."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from calls import Call
from pyarrow import fs
from s3server import SECRETS, S3Server, s3_server
from sparkcluster import rows_in

from kwire.pipeline import hive
from kwire.pipeline.hive import WrittenFile
from kwire.pipeline.job import Job
from kwire.pipeline.ledger import ENDS
from kwire.pipeline.run import run
from kwire.pipeline.stores import of_session
from kwire.pipeline.stream import BatchStream
from kwire.tables.columns import DEFAULT
from kwire.tables.schemas import SCHEMAS


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


class Killed(BaseException):
    """The driver is gone."""


def test_a_stream_within_a_bucket_whose_driver_dies_in_a_batch(
    spark: Any, tmp_path: Path, s3: S3Server, packets_of: Call, save: Call, unpacked: Call, expected: Call,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    packets = packets_of(unpacked("old39.pcap.gz"))
    ends = [0, 60, 190, 330, 505, len(packets)]
    cuts = enumerate(pairwise(ends))
    captures = [save(tmp_path / f"{at}.pcap", packets[low:high]) for at, (low, high) in cuts]
    there, out, lake, place = s3.put("stream", *captures), "s3a://stream/out", s3.filesystem("stream"), hive.place
    for name, value in s3.settings.items():
        spark.conf.set(name, value)

    def stream() -> BatchStream:  # the last file always waits, and is read again
        return BatchStream(spark, out, Job(DEFAULT), 9000, lateness=1, stores=of_session(spark))

    def written() -> dict[str, list[str]]:
        return {name: rows_in(f"out/{name}", SCHEMAS[name], lake) for name in DEFAULT}

    def half(folder: str, staged: str, files: list[WrittenFile], *more: Any) -> None:
        place(folder, staged, files[: len(files) // 2 + 1], *more)
        raise Killed

    def die(*_: Any) -> None:
        raise Killed

    stream().batch(0, there[:2])
    for patched, what, dying in ((hive, "place", half), (BatchStream, "_save", die)):
        with monkeypatch.context() as patch:
            patch.setattr(patched, what, dying)
            with pytest.raises(Killed):
                stream().batch(1, there[2:4])
    stream().batch(1, there[2:4])
    stream().finish()
    assert written() == expected(captures[:4], DEFAULT)
    with lake.open_input_stream("out/.kwire-stream/state-00000001") as file:
        assert SECRETS[1].encode() not in file.read()
    stream().batch(2, there[4:])
    stream().finish()
    assert written() == expected(captures, DEFAULT)
    kept = lake.get_file_info(fs.FileSelector("out/.kwire-stream", recursive=True))
    assert [info.base_name for info in kept if info.is_file] == ["state-00000001", "state-00000002"]
