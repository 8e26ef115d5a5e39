"""Captures in object stores: what is asked for, and what of a file is read. A folder stands for the bucket."""

from __future__ import annotations

import gzip
import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

fs = pytest.importorskip("pyarrow.fs")

from kwire.errors import FilesUnreachable  # noqa: E402
from kwire.pipeline import plan as planning  # noqa: E402
from kwire.pipeline import splits as cutting  # noqa: E402
from kwire.pipeline import stores  # noqa: E402
from kwire.pipeline.ledger import enter, of_folder, running  # noqa: E402
from kwire.pipeline.splits import plan  # noqa: E402
from kwire.pipeline.stores import Stores, brought, mapped, opened, within  # noqa: E402
from kwire.session.reader import Settings  # noqa: E402

Call = Callable[..., Any]


@pytest.fixture
def far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that is the bucket s3a://far."""
    folder = tmp_path / "far"
    folder.mkdir()
    made = fs.SubTreeFileSystem(str(folder), fs.LocalFileSystem())
    monkeypatch.setattr(Stores, "_opened", lambda *given: made if given[-1] == "s3a://far" else None)
    return folder


def surveyed(paths: list[str], found: Stores, size: int) -> list[Any]:
    want = planning.wanted(["connections"])
    return [planning.survey_with_rows(split, ["connections"], lambda *_: None, Settings(), want)
            for split in plan(paths, size, size, found)]  # fmt: skip


def test_files_of_folders_and_patterns(far: Path) -> None:
    for name in ("a/1.pcap", "a/2.pcap", "a/.hidden", "a/_SUCCESS", "b/1.pcap", "b/deep/1.pcap"):
        (far / name).parent.mkdir(parents=True, exist_ok=True)
        (far / name).write_bytes(b"1234")
    found = Stores()
    assert found.listed("s3a://far/a") == found.listed("s3a://far/a/") == ["s3a://far/a/1.pcap", "s3a://far/a/2.pcap"]
    assert found.listed("s3a://far/*/1.pcap") == ["s3a://far/a/1.pcap", "s3a://far/b/1.pcap"]
    assert found.listed("s3a://far/a/2.pcap") == ["s3a://far/a/2.pcap"]
    assert found.sizes == dict.fromkeys(found.sizes, 4)
    for missing, said in (("s3a://far/c", "does not exist"), ("s3a://far/c*", "there are no captures")):
        with pytest.raises(FilesUnreachable, match=said):
            found.listed(missing)


@pytest.mark.parametrize("path", ["/captures/a.pcap", "hdfs:/a.pcap", "viewfs://a/b", "kafka://a/b", "gs://b/c"])
@pytest.mark.usefixtures("far")
def test_what_arrow_does_not_open_is_left_to_spark(path: str) -> None:
    assert Stores().of(path) is None


@pytest.mark.parametrize("size", [3000, 1 << 20])
def test_tables_are_those_of_the_same_files_here(
    far: Path, unpacked: Callable[[str], Path], expected: Call, cut: Call, size: int
) -> None:
    here, names = unpacked("kafkajs.pcap"), ["messages", "connections", "quality"]
    (far / here.name).write_bytes(here.read_bytes())
    assert cut([f"s3a://far/{here.name}"], names, size)[0] == expected([here], names)


def test_packed_and_damaged_files_are_read_as_they_come(far: Path, unpacked: Callable[[str], Path]) -> None:
    data = unpacked("kafkajs.pcap").read_bytes()
    (far / "a.pcap").write_bytes(data)
    (far / "packed.pcap.gz").write_bytes(gzip.compress(data))
    (far / "no.pcap").write_bytes(b"no capture")
    for size in (100, 1 << 20):  # as smaller files and larger ones are
        found = Stores()
        plain, none, packed = (
            surveyed([f"s3a://far/{name}"], found, size) for name in ("a.pcap", "no.pcap", "packed.pcap.gz")
        )
        assert sum(made.packets for made in plain) == sum(made.packets for made in packed) > 0
        assert [made.error for made in packed] == [None]
        assert "neither pcap nor pcapng" in none[0].error


def test_only_the_ranges_of_a_split_are_read(
    far: Path, unpacked: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, window, seen = unpacked("kafkajs.pcap"), 8192, [0]
    (far / here.name).write_bytes(here.read_bytes())

    class Counting(io.BytesIO):
        def readinto(self, into: Any) -> int:
            count = super().readinto(into)
            seen[0] += count
            return count

    for name, value in (("HEAD", 64), ("BACK", 512), ("SEARCHED", 2048)):
        monkeypatch.setattr(cutting, name, value)
    splits = plan([f"s3a://far/{here.name}"], window, window, Stores())
    splits = pickle.loads(pickle.dumps(splits))  # as they go to their tasks
    monkeypatch.setattr(stores, "opened", lambda *_: Counting(here.read_bytes()))
    for split in splits:
        planning.survey_with_rows(
            split, ["connections"], lambda *_: None, Settings(), planning.wanted(["connections"]), window=window
        )
    assert here.stat().st_size <= seen[0] <= here.stat().st_size + len(splits) * (64 + 512)


def test_a_view_is_of_the_whole_file_and_holds_the_ranges(far: Path) -> None:
    (far / "a").write_bytes(b"0123456789")
    view = mapped("s3a://far/a", Stores().of("s3a://far/a"), 10, [(0, 2), (6, 99)])
    assert bytes(view) == b"01\0\0\0\x006789"
    assert len(mapped("s3a://far/a", Stores().of("s3a://far/a"), 99, [])) == 10  # it was longer when it was listed


def test_a_file_is_copied_where_it_must_be_one(far: Path, tmp_path: Path) -> None:
    (far / "a%41 b.pcap").write_bytes(b"abc")
    near = tmp_path / "near"
    near.mkdir()
    store = Stores().of("s3a://far/x")
    copies = [Path(brought("s3a://far/a%41 b.pcap", store, near)) for _ in range(2)]
    assert [(copy.name, copy.read_bytes()) for copy in copies] == [("a%41 b.pcap", b"abc")] * 2
    assert copies[0] != copies[1]


def test_the_ledger_knows_far_captures(far: Path, tmp_path: Path) -> None:
    (far / "a.pcap").write_bytes(b"a" * 100)
    (far / "b.pcap").write_bytes(b"b" * 100)
    lake, found = str(tmp_path / "lake"), Stores()
    paths = found.listed("s3a://far/")
    with running(lake) as run:
        enter(lake, run, ["messages"], {paths[0]: "2026-11-21"}, True, found)
    chosen = of_folder(lake, ["messages"]).choose(paths, found)
    assert (chosen.new, chosen.known) == (paths[1:], paths[:1])
    (far / "a.pcap").write_bytes(b"a" * 200)
    assert of_folder(lake, ["messages"]).choose(paths, found).grown == paths[:1]


def test_settings_of_s3a() -> None:
    said = {
        "fs.s3a.access.key": "key", "fs.s3a.bucket.far.secret.key": "secret", "fs.s3a.endpoint": "http://host:9000",
        "fs.s3a.path.style.access": "true",
    }  # fmt: skip
    assert stores._s3("far", said.get) == {
        "access_key": "key", "secret_key": "secret", "endpoint_override": "host:9000", "scheme": "http",
        "region": "us-east-1", "allow_delayed_open": True,
    }  # fmt: skip
    assert stores._s3("far", {"fs.s3a.endpoint": "s", "fs.s3a.path.style.access": "false"}.get) == {
        "endpoint_override": "s", "scheme": "https", "region": "us-east-1", "force_virtual_addressing": True,
        "allow_delayed_open": True,
    }  # fmt: skip


def test_a_path_within_its_bucket() -> None:
    assert [within(path) for path in ("s3a://far/a/b c", "hdfs:///a", "s3a://far")] == ["a/b c", "a", ""]
    assert opened(__file__).read(3) == b'"""'
