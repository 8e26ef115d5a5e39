"""kwire decode on a broker's files: found out by name or by checksum, corrupt ones said, inner formats in JSON."""

import json
from pathlib import Path
from typing import Any

LOGS = Path(__file__).parents[2] / "fixtures" / "logs"
OUT = LOGS / "transactions-out-0" / "00000000000000000000.log"
METADATA = LOGS / "__cluster_metadata-0" / "00000000000000000000.log"


def test_a_batch_is_known_by_its_checksum(kwire: Any) -> None:
    ran = kwire("decode", stdin=OUT.read_bytes())
    assert ran.status == 0
    assert ran.text.startswith("log segment")


def test_a_wrong_checksum_is_said_first_and_is_no_success(kwire: Any) -> None:
    raw = bytearray(OUT.read_bytes())
    raw[100] ^= 1
    ran = kwire("decode", "--as", "records", stdin=bytes(raw))
    assert ran.status == 1
    assert ran.text.splitlines()[1] == "  1 checksum wrong: corrupt or changed on the way"
    assert "wrong checksum" in ran.text
    told = json.loads(kwire("decode", "--as", "records", "--format", "json", stdin=bytes(raw)).text)
    assert told["wrong_checksums"] == 1


def test_a_topic_that_the_path_does_not_tell(kwire: Any) -> None:
    raw = METADATA.read_bytes()
    assert "FeatureLevelRecord" not in kwire("decode", stdin=raw).text
    for options, said in (((), "FeatureLevelRecord Name metadata.version"), (("-x",), "FeatureLevelRecord v0")):
        assert said in kwire("decode", "--topic", "__cluster_metadata", *options, stdin=raw).text


def test_records_in_json_say_what_they_are(kwire: Any) -> None:
    batches = json.loads(kwire("decode", "--format", "json", str(METADATA)).text)["body"]
    records = [record for batch in batches for record in batch["Records"]]
    assert [record["_offset"] for record in records] == sorted(record["_offset"] for record in records)
    assert all(record["_timestamp"].endswith("Z") for record in records)
    assert {"FeatureLevelRecord v0"} <= {r["Value"]["_type"] for r in records if isinstance(r["Value"], dict)}


def test_zeros_are_nothing(kwire: Any) -> None:
    ran = kwire("decode", stdin=bytes(100))
    assert ran.status == 3
    assert ran.text.startswith("not Kafka: zero bytes")


def test_a_cut_response_is_malformed_not_foreign(kwire: Any) -> None:
    frame = (LOGS.parent / "frames" / "MetadataResponse.v13.bin").read_bytes()
    ran = kwire("decode", stdin=frame[:40])
    assert ran.status == 1
    assert "the first four bytes say 61 and 36 follow" in ran.text


def test_a_field_of_every_frame(kwire: Any) -> None:
    frames = LOGS.parent / "frames"
    both = (frames / "HeartbeatRequest.v3.bin").read_bytes() + (frames / "JoinGroupRequest.v9.bin").read_bytes()
    assert kwire("decode", "--field", "GroupId", stdin=both).text.split() == ["classic-billing", "transactions-group"]


def test_the_error_code_minus_one_is_no_option(kwire: Any) -> None:
    assert kwire("explain", "-1").text.startswith("error code -1  UNKNOWN_SERVER_ERROR")


def test_a_schema_folder_that_kwire_wrote(kwire: Any, tmp_path: Path) -> None:
    folder = Path(__file__).parents[2] / "kwire" / "schema"
    (tmp_path / "apis").mkdir()
    text = (folder / "apis" / "12_heartbeat.txt").read_text("utf-8").replace("GenerationId ", "GenerationNumber ")
    (tmp_path / "apis" / "12_heartbeat.txt").write_text(text, "utf-8")
    frame = str(LOGS.parent / "frames" / "HeartbeatRequest.v3.bin")
    assert "GenerationNumber" in kwire("decode", frame, "--schema", str(tmp_path)).text
