"""The words over all definitions are complete, agree with the facts, and mark what is an error code or a secret."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from kwire.schema.errorcodes import errors
from kwire.schema.model import Definition, Field, MessageSchema, release_order
from kwire.schema.registry import builtin

APIS = list(builtin().apis())
DATA = list(builtin().data())
ALL = [*APIS, *DATA]
KIP = re.compile(r"KIP-\d+")
ENTITIES = {"topicName", "topicId", "groupId", "memberId", "brokerId", "producerId", "transactionalId"}


def name(definition: Definition) -> str:
    return definition.name


def messages(definitions: list[Definition]) -> list[MessageSchema]:
    return [message for definition in definitions for message in definition.messages]


def fields(definition: Definition) -> Iterator[tuple[str, Field]]:
    """Every field with its message's name in front of its path."""
    for message in definition.messages:
        for path, field in message.walk():
            yield f"{message.name}.{path}", field


def prose(definition: Definition) -> Iterator[str]:
    """All that a definition says in sentences."""
    yield from (definition.about, definition.trips)
    yield from (error.note for error in definition.errors)
    yield from (note for _, note in definition.changes)
    for _, field in fields(definition):
        yield field.note
        yield from (meaning.note for meaning in field.meanings)


# ---------------------------------------------------------------- completeness


@pytest.mark.parametrize("definition", APIS, ids=name)
def test_every_api_has_its_words(definition: Definition) -> None:
    for words in (definition.about, definition.trips):
        assert words.endswith(".")
    for words in (definition.sender, definition.area, definition.since, definition.kips):
        assert words


@pytest.mark.parametrize("definition", DATA, ids=name)
def test_every_other_message_has_its_words(definition: Definition) -> None:
    assert definition.area
    assert definition.about.endswith(".")


@pytest.mark.parametrize("definition", APIS, ids=name)
def test_every_api_has_related_errors_that_exist_once(definition: Definition) -> None:
    names = [error.name for error in definition.errors]
    assert names
    assert len(set(names)) == len(names)
    assert {found: errors[found].name for found in names} == {found: found for found in names}
    assert all(error.note for error in definition.errors)


@pytest.mark.parametrize("definition", APIS, ids=name)
def test_every_version_says_what_it_brought(definition: Definition) -> None:
    assert [version for version, _ in definition.changes] == list(definition.messages[0].versions.each())
    assert all(note.endswith((".", ").")) for _, note in definition.changes)


# ---------------------------------------------------------------- agreement with the facts


@pytest.mark.parametrize("definition", APIS, ids=name)
def test_request_and_response_have_the_same_versions(definition: Definition) -> None:
    request, response = definition.messages
    assert request.versions == response.versions
    assert [request.name, response.name] == [f"{definition.name}Request", f"{definition.name}Response"]


@pytest.mark.parametrize("definition", [one for one in ALL if one.releases], ids=name)
def test_releases_stand_in_order_and_cover_all_versions(definition: Definition) -> None:
    orders = [release.order for release in definition.releases]
    assert orders == sorted(set(orders))
    spoken = {version for release in definition.releases for version in release.versions.each()}
    assert spoken == set(definition.messages[0].versions.each())
    for release in definition.releases:
        assert release.highest_stable <= release.versions.high


@pytest.mark.parametrize("definition", APIS, ids=name)
def test_no_api_is_older_or_younger_than_its_first_release(definition: Definition) -> None:
    first = definition.releases[0]
    since = release_order(definition.since)[:2]
    assert since == first.order if first.order > (2, 2) else since <= (2, 2)


@pytest.mark.parametrize("definition", APIS, ids=name)
def test_kips_of_the_versions_are_those_of_the_head(definition: Definition) -> None:
    in_head = set(KIP.findall(definition.kips))
    in_versions = {kip for _, note in definition.changes for kip in KIP.findall(note)}
    assert in_versions <= in_head
    for version in re.findall(r"v(\d+)", definition.kips):
        assert int(version) in definition.messages[0].versions


@pytest.mark.parametrize("definition", ALL, ids=name)
def test_words_name_only_errors_that_exist(definition: Definition) -> None:
    """An upper-case word that ends like an error's name is one, or a value of a field."""
    values = {meaning.name for _, field in fields(definition) for meaning in field.meanings}
    ends = r"\b[A-Z_]+_(?:FAILED|REQUIRED|EPOCH|NOT_FOUND|NOT_AVAILABLE|IN_PROGRESS|OUT|EXCEEDED|FENCED|VERSION)\b"
    named = {found for words in prose(definition) for found in re.findall(ends, words)}
    assert {found for found in named - values if found not in errors} == set()


@pytest.mark.parametrize("definition", ALL, ids=name)
def test_sentences_are_clean(definition: Definition) -> None:
    for words in prose(definition):
        assert words == words.strip()
        assert "  " not in words
        assert words.replace("\n\n", "").isprintable()


@pytest.mark.parametrize("message", messages(ALL), ids=lambda message: message.name)
def test_every_struct_is_defined_and_used(message: MessageSchema) -> None:
    used = {field.element for _, field in message.walk() if field.is_struct}
    assert {field.element for _, field in message.walk() if field.is_struct and not message.fields_of(field)} == set()
    assert {struct.name for struct in message.structs} <= used


@pytest.mark.parametrize("definition", ALL, ids=name)
def test_the_words_behind_a_field_are_known(definition: Definition) -> None:
    """A misspelt flag would be read as an entity."""
    assert {field.entity for _, field in fields(definition)} <= {"", *ENTITIES}


@pytest.mark.parametrize("definition", ALL, ids=name)
def test_values_that_mean_something_are_told_once(definition: Definition) -> None:
    for _, field in fields(definition):
        values = [meaning.value for meaning in field.meanings]
        assert values == [] or field.element in ("int8", "int16", "int32", "int64")
        assert len(set(values)) == len(values)


# ---------------------------------------------------------------- marks


@pytest.mark.parametrize("definition", ALL, ids=name)
def test_error_codes_are_marked(definition: Definition) -> None:
    """Those of 16 bits; the int32 of SubscriptionInfoData counts in Kafka Streams' own codes."""
    named = {path for path, field in fields(definition) if re.search(r"ErrorCodes?$", field.name)}
    marked = {path for path, field in fields(definition) if field.error}
    assert marked == {path for path, field in fields(definition) if path in named and field.element == "int16"}
    assert named - marked <= {"SubscriptionInfoData.ErrorCode"}


SECRETS = [
    "SaslAuthenticateRequest.AuthBytes",
    "SaslAuthenticateResponse.AuthBytes",
    "CreateDelegationTokenResponse.Hmac",
    "RenewDelegationTokenRequest.Hmac",
    "ExpireDelegationTokenRequest.Hmac",
    "DescribeDelegationTokenResponse.Tokens.Hmac",
    "AlterUserScramCredentialsRequest.Upsertions.Salt",
    "AlterUserScramCredentialsRequest.Upsertions.SaltedPassword",
    "UserScramCredentialRecord.Salt",
    "UserScramCredentialRecord.StoredKey",
    "UserScramCredentialRecord.ServerKey",
]


def test_credentials_are_marked_secret_and_nothing_else() -> None:
    assert sorted(path for one in ALL for path, field in fields(one) if field.secret) == sorted(SECRETS)


def test_no_field_that_sounds_like_a_credential_is_forgotten() -> None:
    sounds = re.compile(r"(?i)hmac|password|secret|credential|authbytes|storedkey|serverkey")
    found = {path for one in ALL for path, field in fields(one) if sounds.search(field.name) and not field.is_struct}
    assert found <= set(SECRETS)


@pytest.mark.parametrize(
    ("message", "path", "old", "before"),
    [
        ("TxnOffsetCommitRequest", "GenerationIdOrMemberEpoch", "GenerationId", "4.4"),
        ("OffsetCommitRequest", "GenerationIdOrMemberEpoch", "GenerationId", "3.6"),
        ("StreamsGroupHeartbeatResponse", "AcceptableRecoveryLagLegacy", "AcceptableRecoveryLag", "4.4"),
        ("VoteRequest", "Topics.Partitions.ReplicaId", "CandidateId", "4.0"),
        ("VoteRequest", "Topics.Partitions.ReplicaEpoch", "CandidateEpoch", "4.0"),
        ("AddPartitionsToTxnRequest", "V3AndBelowTopics", "Topics", "3.5"),
        ("AlterPartitionRequest", "Topics.Partitions.PartitionEpoch", "CurrentIsrVersion", "3.2"),
        ("ListConfigResourcesResponse", "ConfigResources.ResourceName", "Name", "4.1"),
    ],
)
def test_renamed_fields_carry_their_older_name(message: str, path: str, old: str, before: str) -> None:
    assert (old, before) in dict(builtin().message(message).walk())[path].was


def test_older_names_never_stand_beside_the_new_one_at_one_version() -> None:
    for message in messages(ALL):
        for fields_of_level in (message.fields, *(message.fields_of(field) for _, field in message.walk())):
            for field in fields_of_level:
                for old in field.was:
                    twins = [one for one in fields_of_level if one.name == old.name]
                    assert all(not one.versions.within(field.versions) for one in twins)
