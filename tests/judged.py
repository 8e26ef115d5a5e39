"""What kwire groups says of a scene: its findings as "error billing: what", and the groups themselves."""

from __future__ import annotations

from scenes import START, Scene
from session.conftest import block

from kwire.analyze.findings import Finding, TimeFormat
from kwire.analyze.groups import GroupHistories
from kwire.analyze.verdicts import judge
from kwire.session.reader import Reader


def groups_of(scene: Scene) -> GroupHistories:
    groups = GroupHistories()
    reader = Reader("made.pcap", tracking=True, ended=lambda one: groups.activity.close(one, one.coverage))
    for batch in [*reader.feed(block(scene.packets, 1)), *reader.finish()]:
        for exchange in batch:
            groups.add(exchange)
    groups.finish()
    return groups


def findings_of(scene: Scene) -> list[tuple[str, Finding]]:
    return [
        (history.name, one) for history, _, found in judge(groups_of(scene), TimeFormat(START)).groups for one in found
    ]


def groups_said(scene: Scene) -> list[str]:
    return [f"{one.severity} {name}: {one.what}" for name, one in findings_of(scene)]
