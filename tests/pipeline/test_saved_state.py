"""The state of a stream on disk: what another version of kwire wrote either fits or is refused in a line."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from kwire.errors import OutputError
from kwire.pipeline.increments import Heard, StreamState, load
from kwire.pipeline.job import Job
from kwire.pipeline.saved_state import FIRST, saved
from kwire.pipeline.splits import Split
from kwire.pipeline.stores import Stores
from kwire.pipeline.stream import BatchStream, run_stream
from kwire.pipeline.survey import Survey


def of_another(state: StreamState, **fields: list[str]) -> bytes:
    """The state as another version wrote it, in which these classes had these fields."""
    line, _, rest = state.saved().partition(b"\n")
    said = json.loads(line.removeprefix(FIRST))
    known = {name.rpartition(":")[2]: name for name in said["classes"]}
    said["classes"] |= {known.get(name, f"kwire.gone:{name}"): found for name, found in fields.items()}
    return FIRST + json.dumps(said | {"kwire": "0.0.7"}).encode() + b"\n" + rest


@pytest.fixture
def state() -> StreamState:
    return StreamState(latest=7, heard={"point": Heard(5, [b"digest"])})


def test_a_state_comes_back_also_from_another_version(state: StreamState) -> None:
    assert load(state.saved()).heard == load(of_another(state)).heard == state.heard
    assert b'"kwire.pipeline.increments:Heard": ["digests", "last"]' in state.saved()


def test_file_systems_and_their_credentials_stay_out_and_are_opened_anew() -> None:
    stores = Stores({"fs.s3a.access.key": "kwire", "fs.s3a.secret.key": "nosecret", "fs.s3a.endpoint.region": "x"}.get)
    path = "s3a://bucket/a.pcap"
    data = StreamState(waiting=[[Survey(Split(path, 0, 1, 1, store=stores.of(path)))]]).saved()
    assert b"nosecret" not in data
    assert load(data, "s", stores).waiting[0][0].split.store is stores.of(path)


@pytest.mark.parametrize("fields", [{"Heard": ["digests", "first"]}, {"Lost": ["a"]}])
def test_other_fields_and_classes_are_refused_in_a_line(state: StreamState, fields: dict[str, list[str]]) -> None:
    with pytest.raises(OutputError, match=r"^s-1: this stream's state is of version 0\.0\.7 of kwire") as caught:
        load(of_another(state, **fields), "s-1")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("data", "whose"), [(pickle.dumps({}), "an older version"), (b"oops", "something else")])
def test_states_without_the_line(data: bytes, whose: str) -> None:
    with pytest.raises(OutputError, match=f"state is of {whose} of kwire"):
        load(data, "s")


def test_a_stream_with_such_a_state_does_not_begin(tmp_path: Path) -> None:
    kept = tmp_path / ".kwire-stream"
    kept.mkdir()
    (kept / "state-00000003").write_bytes(saved(StreamState()))
    job = Job(("messages",))
    BatchStream(None, str(tmp_path), job).check()  # type: ignore[arg-type]
    (kept / "state-00000003").write_bytes(pickle.dumps(StreamState()))
    with pytest.raises(OutputError, match="state-00000003: this stream's state is of an older version"):
        run_stream(None, "in", str(tmp_path), job)  # type: ignore[arg-type]
