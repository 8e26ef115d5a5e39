"""What a group is before one joins it: its state and how many members it has. A group that is not there is no error."""

from __future__ import annotations

from typing import NamedTuple

from kwire.client.exchange import Body
from kwire.client.topology import GroupPlace
from kwire.client.walk.step import NOTE, Detail
from kwire.errors import Failure, KwireError
from kwire.schema import codes
from kwire.schema.errorcodes import errors

NEWER = "ConsumerGroupDescribe"


class GroupStatus(NamedTuple):
    """kind: classic or consumer; state: the coordinator's word, None when it would not say."""

    kind: str
    state: str | None
    members: int
    detail: Detail


def group_status(place: GroupPlace) -> GroupStatus:
    """DescribeGroups, and where it does not know the group, ConsumerGroupDescribe. Raises Failure."""
    row = _row(place, "DescribeGroups", {"Groups": [place.group]})
    if row.get("ErrorCode") == codes.GROUP_ID_NOT_FOUND or row.get("GroupState") == "Dead":
        newer = _row(place, NEWER, {"GroupIds": [place.group]})
        if newer and not newer.get("ErrorCode"):
            return _told("consumer", newer, place.group)
        return GroupStatus("classic", "Dead", 0, Detail(f"group {place.group}: not there yet"))
    return _told("classic", row, place.group)


def _row(place: GroupPlace, api: str, body: Body) -> Body:
    """The group's row; nothing where this broker or this era has no such request."""
    assert place.coordinator is not None
    try:
        place.cluster.version(place.coordinator, api)
    except Failure as failure:
        if failure.kind != "unsupported":
            raise
        return {}
    except KwireError:
        return {}
    found = place.ask(api, lambda _: body).body()["Groups"]
    return dict(found[0]) if found else {}


def _told(kind: str, row: Body, group: str) -> GroupStatus:
    if not row or row["ErrorCode"]:
        said = errors.label(row["ErrorCode"]) if row else "this broker does not describe groups"
        return GroupStatus(kind, None, 0, Detail(f"group {group}: {said}", NOTE))
    count = len(row["Members"])
    text = f"group {group}: {row['GroupState']}, {count} member{'' if count == 1 else 's'}"
    if kind == "consumer":
        text += ", of the consumer protocol (KIP-848)"
    elif row.get("ProtocolType") not in ("consumer", "", None):
        text += f", of protocol type {row['ProtocolType']}"
    return GroupStatus(kind, row["GroupState"], count, Detail(text, NOTE if count else "ok"))
