"""DescribeConfigs (32), AlterConfigs (33), IncrementalAlterConfigs (44), ListConfigResources (74)."""

from __future__ import annotations

from collections.abc import Callable

from kwire.broker.apis import Api
from kwire.broker.configs import BROKER, CLIENT_METRICS, DEFAULT, DYNAMIC, GROUP, TOPIC, Value
from kwire.broker.context import Body, Request
from kwire.broker.idle_configs import NOTES
from kwire.broker.refused import Refused
from kwire.broker.state import BrokerState
from kwire.schema import codes
from kwire.schema.model import Versions


def describe_configs(request: Request, state: BrokerState) -> Body:
    return {"Results": [_described(item, request, state) for item in request.body["Resources"]]}


def _described(item: Body, request: Request, state: BrokerState) -> Body:
    kind, name = item["ResourceType"], item["ResourceName"]
    row: Body = {"ErrorCode": codes.NONE, "ErrorMessage": "", "ResourceType": kind, "ResourceName": name, "Configs": []}
    try:
        _check(kind, name, state)
    except Refused as refused:
        return {**row, "ErrorCode": refused.code, "ErrorMessage": refused.why}
    synonyms = request.body.get("IncludeSynonyms", False)
    values = state.cluster.configs.describe(kind, name, item["ConfigurationKeys"] or None)
    notes = NOTES if request.body.get("IncludeDocumentation") else {}
    rows = [_value(value, kind, synonyms) | {"Documentation": notes.get(value.known.name)} for value in values]
    return {**row, "Configs": rows}


def _value(value: Value, kind: int, synonyms: bool) -> Body:
    same = [{"Name": each.name, "Value": each.value, "Source": each.source} for each in value.synonyms]
    return {
        "Name": value.known.name,
        "Value": value.value,
        "ReadOnly": kind == BROKER and value.known.name not in DYNAMIC,
        "IsDefault": value.source == DEFAULT,
        "ConfigSource": value.source,
        "IsSensitive": False,
        "Synonyms": same if synonyms else [],
        "ConfigType": value.known.type,
    }


def alter_configs(request: Request, state: BrokerState) -> Body:
    def change(item: Body, dry: bool) -> None:
        values = {config["Name"]: config["Value"] for config in item["Configs"]}
        state.cluster.configs.replace(item["ResourceType"], item["ResourceName"], values, dry)

    return _each(request, state, change)


def incremental_alter_configs(request: Request, state: BrokerState) -> Body:
    def change(item: Body, dry: bool) -> None:
        changes = [(config["Name"], config["ConfigOperation"], config["Value"]) for config in item["Configs"]]
        state.cluster.configs.change(item["ResourceType"], item["ResourceName"], changes, dry)

    return _each(request, state, change)


def _each(request: Request, state: BrokerState, change: Callable[[Body, bool], None]) -> Body:
    """Every resource stands alone: one may fail, the others are done."""
    rows = []
    for item in request.body["Resources"]:
        row: Body = {"ErrorCode": codes.NONE, "ErrorMessage": None}
        try:
            _check(item["ResourceType"], item["ResourceName"], state)
            change(item, request.body["ValidateOnly"])
        except Refused as refused:
            row = {"ErrorCode": refused.code, "ErrorMessage": refused.why}
        rows.append({**row, "ResourceType": item["ResourceType"], "ResourceName": item["ResourceName"]})
    return {"Responses": rows}


def _check(kind: int, name: str, state: BrokerState) -> None:
    """Raises Refused for a resource that is not there."""
    if kind == TOPIC and name not in state.cluster.topics:
        raise Refused(codes.UNKNOWN_TOPIC_OR_PARTITION, f"Topic {name} does not exist.")
    if kind == BROKER and name and not (name.isdecimal() and int(name) in state.cluster.nodes):
        raise Refused(codes.INVALID_REQUEST, f"Unexpected broker id {name}.")
    if kind not in (TOPIC, BROKER, CLIENT_METRICS, GROUP):
        raise Refused(codes.INVALID_REQUEST, f"Unsupported resource type {kind}")


def list_config_resources(request: Request, state: BrokerState) -> Body:
    wanted = request.body.get("ResourceTypes", [CLIENT_METRICS]) or [TOPIC, BROKER, CLIENT_METRICS, GROUP]
    given = state.cluster.configs.given
    names = {kind: [name for each, name in given if each == kind] for kind in (CLIENT_METRICS, GROUP)}
    names |= {TOPIC: sorted(state.cluster.topics), BROKER: [str(node) for node in state.cluster.nodes]}
    rows = [{"ResourceName": name, "ResourceType": kind} for kind in wanted for name in names.get(kind, ())]
    return {"ErrorCode": codes.NONE, "ConfigResources": rows}


APIS = (
    Api("DescribeConfigs", Versions(0, 4), describe_configs),
    Api("AlterConfigs", Versions(0, 2), alter_configs),
    Api("IncrementalAlterConfigs", Versions(0, 1), incremental_alter_configs),
    Api("ListConfigResources", Versions(0, 1), list_config_resources),
)
