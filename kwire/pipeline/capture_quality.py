"""Rows of the table quality about whole files: damage, packets dropped while capturing, packets not read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kwire.capture.files import note_kind, packet_notes
from kwire.pipeline.survey import Survey
from kwire.session.reader import Reader
from kwire.tables.build import Builder


def of_file(builder: Builder, surveys: Sequence[Survey], unread: dict[str, int]) -> None:
    """Adds the remarks on a file, from its splits. unread: gets counts of unread packets by reason."""
    name = Path(surveys[0].split.path).name
    drops: dict[int, int] = {}
    for made in surveys:
        for note in made.notes:
            builder.remark(name, "damaged", note)
        drops |= made.drops
        for what, count in made.unread.items():
            unread[what] = unread.get(what, 0) + count
    dropped = sum(drops.values()) + sum(made.dropped for made in surveys)
    if dropped:
        builder.remark(name, "dropped", f"{dropped:,} packets were dropped while capturing")


def of_chain(builder: Builder, reader: Reader, unread: dict[str, int]) -> None:
    """Adds the remarks on files that follow each other, at their end."""
    for note in [*packet_notes(unread), *reader.notes]:
        builder.remark(reader.name, note_kind(note), note)
