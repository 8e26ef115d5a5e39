"""Plans and codecs by name and version, each compiled once; behind it a registry, maybe another schema in front."""

from __future__ import annotations

from bisect import bisect_right
from functools import cache
from typing import TYPE_CHECKING

from kwire.codec.plan import Plan, compile_plan, layout_starts, require_version
from kwire.schema.model import MessageSchema
from kwire.schema.registry import Registry, builtin

if TYPE_CHECKING:
    from kwire.codec.scan_code import Scan
    from kwire.codec.values import Codec


class Library:
    """What readers of frames ask for plans."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self._codecs: dict[tuple[str, int], Codec] = {}
        self._plans: dict[tuple[str, int], Plan] = {}
        self._scans: dict[tuple[str, int], Scan] = {}
        self._starts: dict[str, list[int]] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return (builtin_library, ()) if self.registry is builtin() else (Library, (self.registry,))

    def message(self, name: str) -> MessageSchema:
        """Raises UnknownName."""
        return self.registry.message(name)

    def codec(self, name: str, version: int) -> Codec:
        """Raises UnknownName for a name or a version that is not there."""
        known = self._codecs.get((name, version))
        if known is None:
            from kwire.codec.values import Codec

            known = self._codecs[name, version] = Codec(self.plan(name, version))
        return known

    def plan(self, name: str, version: int) -> Plan:
        """Raises UnknownName for a name or a version that is not there."""
        return self._plans.get((name, version)) or self.plan_of(self.registry.message(name), version)

    def plan_of(self, message: MessageSchema, version: int) -> Plan:
        """The plan of one of the registry's messages. Versions of one layout share the root of their plans."""
        known = self._plans.get((message.name, version))
        if known is None:
            known = self._plans[message.name, version] = self._plan(message, version)
        return known

    def scan(self, message: MessageSchema, version: int) -> Scan:
        """What walks over one of the registry's messages; versions of one layout share it. Takes a while to make."""
        starts = self.layout_starts(message)
        start = starts[bisect_right(starts, version) - 1]
        known = self._scans.get((message.name, start))
        if known is None:
            from kwire.codec.scan_code import scanner

            known = self._scans[message.name, start] = scanner(self.plan_of(message, start))
        return known

    def layout_starts(self, message: MessageSchema) -> list[int]:
        """The versions of one of the registry's messages that begin a layout."""
        starts = self._starts.get(message.name)
        if starts is None:
            starts = self._starts[message.name] = layout_starts(message)
        return starts

    def _plan(self, message: MessageSchema, version: int) -> Plan:
        require_version(message, version)
        starts = self.layout_starts(message)
        start = starts[bisect_right(starts, version) - 1]
        if start == version:
            return compile_plan(message, version)
        return Plan(message, version, self.plan_of(message, start).root)

    def api_message(self, key: int, request: bool) -> MessageSchema | None:
        """An API's request or response; None for a key that is not known."""
        if self.registry.name_of(key) is None:
            return None
        return self.registry.api(key).messages[0 if request else 1]


@cache
def builtin_library() -> Library:
    """Over kwire's own definitions."""
    return Library(builtin())
