"""Plans and codecs by name and version, each compiled once; the registry behind it may be overlaid with another schema."""

from __future__ import annotations

from bisect import bisect_right
from functools import cache

from kwire.codec.plan import Plan, compile_plan, layout_starts, require_version
from kwire.codec.values import Codec
from kwire.schema.model import Message
from kwire.schema.registry import Registry, builtin


class Library:
    """What readers of frames ask for plans."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self._codecs: dict[tuple[str, int], Codec] = {}
        self._starts: dict[str, list[int]] = {}

    def message(self, name: str) -> Message:
        """Raises UnknownName."""
        return self.registry.message(name)

    def codec(self, name: str, version: int) -> Codec:
        """Raises UnknownName for a name or a version that is not there."""
        known = self._codecs.get((name, version))
        if known is None:
            known = self._codecs[name, version] = Codec(self._plan(self.registry.message(name), version))
        return known

    def _plan(self, message: Message, version: int) -> Plan:
        """Versions of one layout share the root of their plans."""
        require_version(message, version)
        starts = self._starts.get(message.name)
        if starts is None:
            starts = self._starts[message.name] = layout_starts(message)
        start = starts[bisect_right(starts, version) - 1]
        if start == version:
            return compile_plan(message, version)
        return Plan(message, version, self.plan(message.name, start).root)

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
