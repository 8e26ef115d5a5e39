"""The refusal of a broker's handler: an error code and why."""

from __future__ import annotations


class Refused(Exception):
    """What was asked is not done; code says so on the wire, why in words. Never leaves the broker."""

    def __init__(self, code: int, why: str) -> None:
        self.code, self.why = code, why
        super().__init__(why)
