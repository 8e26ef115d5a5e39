"""The tables' columns: their names, types and order are fixed, and each says what it is."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from kwire.tables.columns import COLUMNS, DEFAULT
from kwire.tables.schemas import SCHEMAS

EXCHANGE = (
    "capture string, connection string, time timestamp, api_key int16, api string, api_version int16, "
    "correlation_id int32, client_id string"
)
FIXED = {
    "messages": "capture string, connection string, kind string, index int64, position int64, time timestamp, "
                "last_time timestamp, packet int64, last_packet int64, size int32, api_key int16, api string, "
                "api_version int16, header_version int8, correlation_id int32, client_id string, error_code int16, "
                "error string, errors int32, latency_ns int64, quality string, note string",
    "exchanges": f"{EXCHANGE}, request_index int64, request_size int32, request_packet int64, response_index int64, "
                 "response_size int32, response_packet int64, response_time timestamp, latency_ns int64, "
                 "held_ns int64, throttle_ns int64, "
                 "error_code int16, error string, errors int32, group string, transactional_id string, "
                 "acks int16, isolation_level string, max_wait_ms int32, rack string, outcome string, note string",
    "partitions": f"{EXCHANGE}, group string, topic string, topic_id string, partition int32, offset int64, "
                  "timestamp int64, high_watermark int64, last_stable_offset int64, log_start_offset int64, "
                  "preferred_read_replica int32, bytes int64, batches int32, records int64, "
                  "compression string, error_code int16, error string",
    "batches": f"{EXCHANGE}, topic string, partition int32, number int32, base_offset int64, last_offset int64, "
               "records int32, bytes int32, magic int8, compression string, timestamp_type string, "
               "first_timestamp int64, max_timestamp int64, producer_id int64, producer_epoch int16, "
               "base_sequence int32, is_transactional bool, is_control bool, crc_ok bool",
    "group_events": f"{EXCHANGE}, latency_ns int64, group string, group_type string, member string, instance string, "
                    "generation int32, protocol string, leader string, members int32, session_timeout_ms int32, "
                    "rebalance_timeout_ms int32, error_code int16, error string",
    "clients": "client_id string, software string, software_version string, broker_itself bool, "
               "addresses list<item: string>, brokers list<item: string>, connections int64, exchanges int64, "
               "errors int64, first_time timestamp, last_time timestamp, "
               "apis list<item: struct<api: string, versions: list<item: int16>>>, "
               "compressions list<item: string>, sasl_mechanisms list<item: string>, principals list<item: string>",
    "connections": "capture string, connection string, first_time timestamp, last_time timestamp, exchanges int64, "
                   "what string, handshake_ns int64, client_id string, "
                   "software string, software_version string, sasl_mechanism string, "
                   "principal string, broker_id int32, missing_bytes int64, repeated_bytes int64, "
                   "skipped_bytes int64, ending string",
    "quality": "capture string, connection string, time timestamp, what string, kind string, position int64, "
               "bytes int64, note string",
    "bodies": "capture string, connection string, kind string, index int64, api string, api_version int16, "
              "body string",
    "findings": "detector string, severity string, about_client_id string, about_address string, about_group string, "
                "about_member string, about_topic string, about_partition int32, about_broker string, "
                "about_principal string, about_transactional_id string, about_api string, first_time timestamp, "
                "last_time timestamp, count int64, packets list<item: string>, text string, advice string, "
                "otherwise string, caused_by string, caused_at timestamp, "
                "among list<item: struct<name: string, values: list<item: string>>>",
    "audit": "release string, verdict string, client_id string, addresses list<item: string>, principal string, "
             "software string, library string, brokers list<item: string>, "
             "blocked_by list<item: struct<api: string, versions: list<item: int16>>>, "
             "blocked_magic list<item: int16>, "
             "negotiated list<item: struct<api: string, versions: list<item: int16>>>, why string, cure string, "
             "negotiates bool, packets list<item: string>, "
             "first_time timestamp, last_time timestamp",
}  # fmt: skip


def test_these_are_the_tables() -> None:
    assert list(COLUMNS) == list(SCHEMAS) == list(FIXED)
    assert [*DEFAULT, "bodies", "findings", "audit"] == list(FIXED)


@pytest.mark.parametrize("name", FIXED)
def test_a_tables_schema_is_fixed(name: str) -> None:
    kinds = {"bool_": "bool", "timestamp[ns, tz=UTC]": "timestamp"}
    found = ", ".join(f"{each.name} {kinds.get(str(each.type), each.type)}" for each in SCHEMAS[name])
    assert re.sub(r"(\w+) timestamp, \1_ns int64", r"\1 timestamp", found) == FIXED[name]
    assert all(each.nullable for each in SCHEMAS[name])


@pytest.mark.parametrize("name", FIXED)
def test_the_list_of_columns_says_the_same_as_the_schema(name: str) -> None:
    listed = [
        (column, kind.replace("list<", "list<item: ").replace("timestamp", "timestamp[ns, tz=UTC]"))
        for column, kind, _ in COLUMNS[name]
    ]
    assert listed == [(each.name, str(each.type)) for each in SCHEMAS[name]]


@pytest.mark.parametrize("name", FIXED)
def test_each_column_says_what_it_is(name: str) -> None:
    names = [column for column, _, _ in COLUMNS[name]]
    assert len(set(names)) == len(names)
    for column, _, what in COLUMNS[name]:
        assert what, column
        assert not what.endswith("."), column


def test_what_tables_share_has_one_type() -> None:
    kinds: dict[str, set[str]] = {}
    for name, columns in COLUMNS.items():
        for column, kind, _ in columns:
            if name not in ("clients", "batches"):  # of which some count less, some more
                kinds.setdefault(column, set()).add(kind)
    assert {column: found for column, found in kinds.items() if len(found) > 1} == {}
    assert all(isinstance(schema, pa.Schema) for schema in SCHEMAS.values())
