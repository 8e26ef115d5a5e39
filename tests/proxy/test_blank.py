"""What the proxy's capture holds of secrets: asterisks, and every length as it was."""

from __future__ import annotations

from struct import pack
from typing import Any

import pytest

from kwire.codec.frames import decode_frame
from kwire.codec.headers import request_header_version
from kwire.codec.library import builtin_library
from kwire.proxy.blank import blanking
from kwire.proxy.link import Asked

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
    edit = blanking().request(Asked(key, version, 7))
    assert edit is not None
    kept = edit(sent)
    assert (b"hunter2" in kept, len(kept), b"*" * 7 in kept) == (False, len(sent), True)
    assert decode_frame(kept).quality == "ok"


def test_what_holds_no_secrets_is_not_held() -> None:
    edits = blanking()
    assert [edits.request(Asked(key, 9, 7)) for key in (0, 1, 3, 12)] == [None] * 4
    assert [edits.response(Asked(key, 9, 7)) for key in (0, 1, 3, 12)] == [None] * 4


def test_tokens_and_unknown_apis_are_blanked_whole() -> None:
    edits = blanking()
    assert edits.token is not None
    assert edits.token(b"\0\0\0\4\0a\0b") == b"\0\0\0\4****"
    unknown = edits.request(Asked(30_000, 0, 7))
    assert unknown is not None
    assert unknown(pack(">ihhi", 11, 30_000, 0, 7) + b"abc") == pack(">ihhi", 11, 30_000, 0, 7) + b"***"
