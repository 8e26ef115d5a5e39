"""Files of a lake here and in a bucket: the same of both, and no folders are made in a bucket."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from s3server import s3_server

from kwire.pipeline.lake_files import Store, create, empty, files_of, make_folder, move, put, read, remove, staged
from kwire.pipeline.stores import Stores

Place = tuple[str, Store]


@pytest.fixture
def here(tmp_path: Path) -> Place:
    return str(tmp_path / "lake"), None


@pytest.fixture
def far() -> Iterator[Place]:
    with s3_server() as server:
        server.put("bucket")
        yield "s3a://bucket/lake", Stores(server.settings.get).of("s3a://bucket/lake")


@pytest.fixture(params=["here", "far"])
def place(request: pytest.FixtureRequest) -> Place:
    found: Place = request.getfixturevalue(request.param)
    return found


def test_files_are_written_listed_moved_and_removed(place: Place) -> None:
    folder, store = place
    assert (list(files_of(folder, store)), read(f"{folder}/a", store)) == ([], None)
    for data in (b"first", b"second"):
        put(f"{folder}/kept/a", data, store)
        assert read(f"{folder}/kept/a", store) == data
    with create(f"{folder}/staged/x=1/b", store) as file:
        file.write(b"b")
    make_folder(f"{folder}/table", store)
    assert sorted(files_of(folder, store)) == [f"{folder}/kept/a", f"{folder}/staged/x=1/b"]
    assert list(files_of(folder, store, recursive=False)) == []
    move([(f"{folder}/staged/x=1/b", f"{folder}/table/x=1/b")], store)
    assert sorted(files_of(folder, store)) == [f"{folder}/kept/a", f"{folder}/table/x=1/b"]
    remove([f"{folder}/kept/a"], store)
    empty(f"{folder}/table", store)
    empty(f"{folder}/other", store)
    assert list(files_of(folder, store)) == []


def test_what_is_staged_is_gone_at_the_end(place: Place) -> None:
    folder, store = place
    with staged(folder, store) as place_of_its_own:
        create(f"{place_of_its_own}/table/a", store).close()
        assert read(f"{place_of_its_own}/table/a", store) == b""
    assert list(files_of(folder, store)) == []


def test_what_a_killed_stream_left_in_a_bucket_goes_with_the_next(far: Place) -> None:
    folder, store = far
    put(f"{folder}/.kwire-stream/staged/1/table/a", b"left", store)
    with staged(folder, store):
        assert list(files_of(folder, store)) == []
