"""What the schema knows of an API key and version, looked up once: names, header versions, codecs and scanners."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kwire.codec.headers import request_header_version, response_header_version
from kwire.codec.library import Library, builtin_library
from kwire.codec.plan import Plan, StructPlan
from kwire.codec.scan_code import Scan
from kwire.codec.thresholds import DEFAULT, Thresholds
from kwire.codec.values import Codec
from kwire.schema.model import MessageSchema
from kwire.session.allowance import OF_CAPTURE, Allowance

NEWER = 16  # versions beyond the newest known that a header may still name


@dataclass(eq=False)
class Kind:
    """An API at a version. supported: whether the schema has it; codecs, scans and plans exist only then. thresholds:
    from how many messages on they are read as columns."""

    library: Library
    key: int
    version: int
    api: str
    request: MessageSchema | None
    response: MessageSchema | None
    thresholds: Thresholds = DEFAULT
    asked: bool = False  # whether the capture holds such a request

    def __post_init__(self) -> None:
        self.supported = self.request is not None and self.version in self.request.versions
        self.request_header = request_header_version(self.key, self.version, self.request)
        self.response_header = response_header_version(self.key, self.version, self.response)

    def __reduce__(self) -> tuple[Any, ...]:
        return _kind, (self.library, self.thresholds, self.key, self.version, self.asked)

    @cached_property
    def names(self) -> tuple[str, str]:
        """Names of request and response, as "FetchRequest v16"."""
        return f"{self.api}Request v{self.version}", f"{self.api}Response v{self.version}"

    @cached_property
    def codecs(self) -> tuple[Codec, Codec]:
        """The codecs of request and response."""
        assert self.request is not None
        assert self.response is not None
        return self.library.codec(self.request.name, self.version), self.library.codec(self.response.name, self.version)

    @cached_property
    def scan_request(self) -> Scan:
        assert self.request is not None
        return self.library.scan(self.request, self.version)

    @cached_property
    def scan_response(self) -> Scan:
        assert self.response is not None
        return self.library.scan(self.response, self.version)

    def plan(self, kind: str) -> Plan:
        """The plan of the request or the response, which must be supported."""
        definition = self.message(kind)
        assert definition is not None
        return self.library.plan_of(definition, self.version)

    @cached_property
    def tells_names(self) -> bool:
        """Whether a struct of the response holds both a topic's id and its name."""
        return (
            self.supported
            and self.response is not None
            and _tells_names(self.library.plan_of(self.response, self.version).root)
        )

    def message(self, kind: str) -> MessageSchema | None:
        """The definition of the request or the response."""
        return self.request if kind == "request" else self.response


def _kind(library: Library, thresholds: Thresholds, key: int, version: int, asked: bool) -> Kind:
    """Makes a Kind again when it is unpickled."""
    made = Kinds(library, thresholds).of(key, version)
    made.asked = asked
    return made


def _tells_names(struct: StructPlan) -> bool:
    entities = {slot.field.entity for slot in struct.slots}
    deeper = [slot.struct for slot in (*struct.slots, *struct.tagged.values()) if slot.struct]
    return {"topicName", "topicId"} <= entities or any(_tells_names(part) for part in deeper)


Reading = tuple[Kind, str]  # an orphan's API and version, and why it can be no other


class Kinds:
    """kinds.of(key, version) gives a Kind, for unknown APIs too. inferred: the capture's budget for naming orphans;
    tried: what was found for short ones, and the cost (orphans.py)."""

    def __init__(self, library: Library | None = None, thresholds: Thresholds = DEFAULT) -> None:
        self.library, self.thresholds = library or builtin_library(), thresholds
        self._known: dict[tuple[int, int], Kind] = {}
        self._highest: dict[int, int | None] = {}
        self.inferred = Allowance(*OF_CAPTURE)
        self.tried: dict[bytes, tuple[Reading | None, int]] = {}

    def of(self, key: int, version: int) -> Kind:
        known = self._known.get((key, version))
        if known is None:
            request = self.library.api_message(key, request=True)
            response = self.library.api_message(key, request=False)
            api = request.name.removesuffix("Request") if request else f"ApiKey{key}"
            known = Kind(self.library, key, version, api, request, response, self.thresholds)
            if len(self._known) < 10_000:  # keys and versions come from untrusted bytes: bounded
                self._known[key, version] = known
        return known

    def seen(self) -> list[Kind]:
        """The supported ones that were asked for so far."""
        return [kind for kind in self._known.values() if kind.supported and kind.asked]

    def highest(self, key: int) -> int | None:
        """The highest plausible version in a header with this key; None for an unknown key."""
        if key not in self._highest:
            request = self.library.api_message(key, request=True)
            self._highest[key] = request.versions.high + NEWER if request else None
        return self._highest[key]

    @cached_property
    def all_highest(self) -> NDArray[np.int32]:
        """highest() of all 65,536 keys as an array; -1 for unknown keys."""
        out = np.full(1 << 16, -1, np.int32)
        for key in sorted(self.library.registry.keys()):
            out[key] = self.highest(key) or 0
        return out
