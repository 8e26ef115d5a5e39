"""What a script of a streams group's requests is written with."""

from __future__ import annotations

from dataclasses import dataclass

from coordinator_lab import Lab


@dataclass
class StreamsLab(Lab):
    """A script with topics of its own."""
