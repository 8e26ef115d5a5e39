"""Plans and codecs by name and version, each compiled once; the registry behind it may be overlaid with another schema."""

from __future__ import annotations

from functools import cache

from kwire.codec.plan import Plan, compile_plan
from kwire.codec.values import Codec
from kwire.schema.model import Message
from kwire.schema.registry import Registry, builtin


class Library:
    """What readers of frames ask for plans."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self._codecs: dict[tuple[str, int], Codec] = {}

    def message(self, name: str) -> Message:
        """Raises UnknownName."""
        return self.registry.message(name)

    def codec(self, name: str, version: int) -> Codec:
        """Raises UnknownName for a name or a version that is not there."""
        known = self._codecs.get((name, version))
        if known is None:
            message = self.registry.message(name)
            known = self._codecs[name, version] = Codec(compile_plan(message, version))
        return known

    def plan(self, name: str, version: int) -> Plan:
        """Raises UnknownName for a name or a version that is not there."""
        return self.codec(name, version).plan

    def api_message(self, key: int, request: bool) -> Message | None:
        """An API's request or response; None for a key that is not known."""
        if key not in self.registry.keys():
            return None
        return self.registry.api(key).messages[0 if request else 1]


@cache
def builtin_library() -> Library:
    """Over kwire's own definitions."""
    return Library(builtin())
