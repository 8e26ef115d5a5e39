"""What the proxy's capture holds of secrets: asterisks, and every length as it was."""

# mypy: disable-error-code="arg-type"

from __future__ import annotations

from struct import pack
from typing import Any

import pytest

from kwire.codec.frames import decode_frame
from kwire.codec.headers import request_header_version
from kwire.codec.library import builtin_library
from kwire.codec.secrets import METADATA, METADATA_ID
from kwire.proxy.blank import blanking
from kwire.proxy.link import PendingRequest
from kwire.records import build

LIBRARY = builtin_library()


def frame(api: str, version: int, body: dict[str, Any]) -> tuple[int, bytes]:
    message = LIBRARY.message(f"{api}Request")
    key = LIBRARY.registry.find(api).definition.key
    assert key is not None
    head = {"RequestApiKey": key, "RequestApiVersion": version, "CorrelationId": 7, "ClientId": "c"}
    data = LIBRARY.codec("RequestHeader", request_header_version(key, version, message)).encode(head)
    data += LIBRARY.codec(message.name, version).encode(body)
    return key, pack(">i", len(data)) + data


CONFIG = {"Name": "ssl.keystore.password", "ConfigOperation": 0, "Value": "hunter2"}
CASES = [
    ("SaslAuthenticate", 0, {"AuthBytes": b"\0ann\0hunter2"}),
    ("SaslAuthenticate", 2, {"AuthBytes": b"\0ann\0hunter2"}),
    ("IncrementalAlterConfigs", 1, {"Resources": [{"ResourceType": 4, "ResourceName": "1", "Configs": [CONFIG]}]}),
    ("AlterUserScramCredentials", 0, {"Deletions": [], "Upsertions": [
        {"Name": "ann", "Mechanism": 1, "Iterations": 4096, "Salt": b"salt", "SaltedPassword": b"hunter2" * 4}]}),
]  # fmt: skip


@pytest.mark.parametrize(("api", "version", "body"), CASES)
def test_secrets_are_blanked_and_lengths_stay(api: str, version: int, body: dict[str, Any]) -> None:
    key, sent = frame(api, version, body)
    assert b"hunter2" in sent
    edit = blanking().request(PendingRequest(key, version, 7))
    assert edit is not None
    kept = edit(sent)
    assert (b"hunter2" in kept, len(kept), b"*" * 7 in kept) == (False, len(sent), True)
    assert decode_frame(kept).quality == "ok"


def test_what_holds_no_secrets_is_not_held() -> None:
    edits = blanking()
    assert [edits.request(PendingRequest(key, 9, 7)) for key in (0, 3, 12)] == [None] * 3
    assert [edits.response(PendingRequest(key, 9, 7)) for key in (0, 1, 3, 12)] == [None] * 4


def test_tokens_and_unknown_apis_are_blanked_whole() -> None:
    edits = blanking()
    assert edits.token is not None
    assert edits.token(b"\0\0\0\4\0a\0b") == b"\0\0\0\4****"
    unknown = edits.request(PendingRequest(30_000, 0, 7))
    assert unknown is not None
    assert unknown(pack(">ihhi", 11, 30_000, 0, 7) + b"abc") == pack(">ihhi", 11, 30_000, 0, 7) + b"***"


def credential() -> bytes:
    """A batch of the metadata log with a SCRAM credential."""
    keys = {"Salt": b"hunter2salt", "StoredKey": b"hunter2key", "ServerKey": b"hunter2"}
    fields = {"Name": "ann", "Mechanism": 1, "Iterations": 4096, **keys}
    value = b"\1" + bytes([11]) + b"\0" + LIBRARY.codec("UserScramCredentialRecord", 0).encode(fields)
    return build([(None, value)])


@pytest.mark.parametrize("session", [{"SessionId": 0, "SessionEpoch": 0}, {"SessionId": 5, "SessionEpoch": 3}])
@pytest.mark.parametrize(("version", "named"), [(12, {"Topic": METADATA}), (17, {"TopicId": METADATA_ID})])
def test_credentials_of_the_metadata_log_are_blanked(version: int, named: dict[str, Any], session: Any) -> None:
    """Also where it is not named, as in a session that began on another connection."""
    edits = blanking()
    asked = PendingRequest(1, version, 7)
    topics = [] if session["SessionId"] else [{**named, "Partitions": []}]
    _, request = frame("Fetch", version, {**session, "Topics": topics})
    watch = edits.request(asked)
    assert watch is not None
    assert watch(request) == request
    body = {"Responses": [{**named, "Partitions": [{"PartitionIndex": 0, "Records": credential()}]}]}
    data = pack(">i", 7) + b"\0" + LIBRARY.codec("FetchResponse", version).encode(body)
    sent = pack(">i", len(data)) + data
    edit = edits.response(asked)
    assert edit is not None
    kept = edit(sent)
    assert (b"hunter2" in sent, b"hunter2" in kept, b"ann" in kept, len(kept)) == (True, False, True, len(sent))


def test_other_topics_are_not_held() -> None:
    edits = blanking()
    for epoch in (0, 1, 2):
        _, request = frame("Fetch", 12, {"SessionId": epoch and 5, "SessionEpoch": epoch, "Topics": []})
        watch = edits.request(PendingRequest(1, 12, 7))
        assert watch is not None
        watch(request)
        assert edits.response(PendingRequest(1, 12, 7)) is None
