"""Finds definitions by name or by key, each file read when it is first asked for.

A file's name follows from the API's name, so a known name costs one file. Names are compared without case, hyphens and
underscores. Only a name that is no file's is looked for in all of them: it may be an older one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kwire.errors import OptionError, UnknownName
from kwire.schema import text
from kwire.schema.model import Definition, MessageSchema
from kwire.schema.shipped import folder_of, listed

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

HERE = Path(__file__).parent


def _span(first: tuple[int, int], last: tuple[int, int]) -> str:
    low, high = (f"{major}.{minor}" for major, minor in (first, last))
    return low if low == high else f"{low} to {high}"


class Found(NamedTuple):
    """What a name led to: the definition, which of its messages was meant (None: all), and the older name used."""

    definition: Definition
    message: MessageSchema | None
    was: str | None


def fold(name: str) -> str:
    """A name as it is compared."""
    return name.lower().replace("_", "").replace("-", "").replace(" ", "")


class Registry:
    """The definitions of a folder with apis/ and data/, kwire's own when none is given; overlay holds ones that stand
    in front of the files."""

    def __init__(self, folder: Traversable | None = None, overlay: Iterable[Definition] = ()) -> None:
        self.folder: Traversable = folder_of("kwire.schema") if folder is None else folder
        self._by_key: dict[int, Traversable] = {}
        self._by_name: dict[str, Traversable] = {}
        for stem, path in listed(self.folder / "apis", ".txt").items():
            number, _, name = stem.partition("_")
            if number.isdecimal():
                self._by_key[int(number)] = path
                self._by_name[fold(name)] = path
        self._data = {fold(stem): path for stem, path in listed(self.folder / "data", ".txt").items()}
        overlay = tuple(overlay)
        self._given = folder, overlay
        self._overlay = {fold(definition.name): definition for definition in overlay}
        self._overlay_keys = {definition.key: definition for definition in overlay if definition.is_api}
        self._read: dict[Traversable, Definition] = {}
        self._responses: dict[int, MessageSchema] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return (builtin, ()) if self._given == (None, ()) else (Registry, self._given)

    def _load(self, path: Traversable) -> Definition:
        known = self._read.get(path)
        if known is None:
            known = self._read[path] = text.parse(path.read_text(encoding="utf-8"), path.name)
        return known

    def keys(self) -> list[int]:
        """Every API key, in order."""
        return sorted({*self._by_key, *(key for key in self._overlay_keys if key is not None)})

    def api(self, key: int) -> Definition:
        """The API of a key. Raises UnknownName."""
        if key in self._overlay_keys:
            return self._overlay_keys[key]
        if key not in self._by_key:
            raise UnknownName("API key", str(key))
        return self._load(self._by_key[key])

    def name_of(self, key: int) -> str | None:
        """An API's name from its key, without reading more than a line; None for an unknown key."""
        if key in self._overlay_keys:
            return self._overlay_keys[key].name
        path = self._by_key.get(key)
        if path is None:
            return None
        if path in self._read:
            return self._read[path].name
        with path.open("r", encoding="utf-8") as file:
            return text.parse_head(file.readline())[0]

    def response(self, key: int) -> MessageSchema:
        """An API's response; of a file that was not read yet, that part alone. Raises UnknownName."""
        path = self._by_key.get(key)
        if key in self._overlay_keys or path is None or path in self._read:
            return self.api(key).messages[1]
        known = self._responses.get(key)
        if known is None:
            known = self._responses[key] = text.parse_response(path.read_text(encoding="utf-8"), path.name)
        return known

    def releases(self) -> list[tuple[int, int]]:
        """Kafka's releases as far as they are known, the oldest first: those that brought APIs, and those with figures
        of their own. 2.0 and 2.1 brought none and have none."""
        there = {(2, 0), (2, 1)}
        for definition in self.apis():
            there |= {(release.order[0], release.order[1]) for release in definition.releases}
            major, _, minor = definition.since.partition(".")
            if major:
                there.add((int(major), int(minor.partition(".")[0])))
        return sorted(there)

    def release(self, named: str) -> tuple[int, int]:
        """One of them, from 4.3 or 0.11. Raises OptionError for any other."""
        parts = named.split(".")
        if len(parts) < 2 or not all(part.isdecimal() for part in parts):
            raise OptionError(f"{named} is no release; write 4.3, 3.9 or 0.11")
        release, known = (int(parts[0]), int(parts[1])), self.releases()
        if release not in known:
            majors = [[one for one in known if one[0] == major] for major in dict(known)]
            spans = ", ".join(_span(same[0], same[-1]) for same in majors)
            raise OptionError(f"kwire knows no Kafka {named}; there are {spans}")
        return release

    def apis(self) -> Iterator[Definition]:
        """Every API, by key."""
        return (self.api(key) for key in self.keys())

    def data(self) -> Iterator[Definition]:
        """Every message that is not an API's, by name."""
        names = {*self._data, *(name for name, d in self._overlay.items() if not d.is_api)}
        for name in sorted(names):
            yield self._overlay.get(name) or self._load(self._data[name])

    def find(self, name: str) -> Found:
        """A definition by an API's or a message's name, old names included. Raises UnknownName with the nearest."""
        wanted = fold(name)
        for suffix, index in (("", None), ("request", 0), ("response", 1)):
            base = wanted.removesuffix(suffix)
            if suffix and base == wanted:
                continue
            definition = self._overlay.get(base) or self._file(base, is_api=bool(suffix))
            if definition and not (suffix and not definition.is_api):
                message = definition.messages[index] if index is not None else None
                return Found(definition, message if definition.is_api else definition.messages[0], None)
        for suffix, index in (("", None), ("request", 0), ("response", 1)):
            old = self._old_names.get(wanted.removesuffix(suffix))
            if old and wanted.endswith(suffix):
                definition, shown = old
                message = definition.messages[index] if definition.is_api and index is not None else None
                return Found(definition, message or (None if definition.is_api else definition.messages[0]), shown)
        raise UnknownName("message", name, self.nearest(name))

    def message(self, name: str) -> MessageSchema:
        """A message by its name, as FetchResponse. Raises UnknownName; also for an API's name alone."""
        found = self.find(name)
        if found.message is None:
            api = found.definition.name
            raise UnknownName("message", name, (f"{api}Request", f"{api}Response"))
        return found.message

    def _file(self, base: str, is_api: bool) -> Definition | None:
        path = self._by_name.get(base) or (None if is_api else self._data.get(base))
        return self._load(path) if path else None

    @cached_property
    def _old_names(self) -> dict[str, tuple[Definition, str]]:
        names: dict[str, tuple[Definition, str]] = {}
        for definition in (*self.apis(), *self.data()):
            for old in (*(was.name for was in definition.was), *definition.aka):
                names.setdefault(fold(old), (definition, old))
        return names

    def names(self) -> list[str]:
        """Every name that find() knows, without the old ones: APIs, their messages, the others. Reads all files."""
        out = []
        for definition in self.apis():
            out += [definition.name, *(message.name for message in definition.messages)]
        return out + [definition.name for definition in self.data()]

    def nearest(self, name: str) -> tuple[str, ...]:
        """The known names that a misspelt one could have been."""
        names = {fold(known): known for known in self.names()}
        names |= {old: definition.name for old, (definition, _) in self._old_names.items() if old not in names}
        import difflib

        close = difflib.get_close_matches(fold(name), names, 3, 0.7)
        return tuple(dict.fromkeys(names[match] for match in close))


@cache
def builtin() -> Registry:
    """kwire's own definitions."""
    return Registry()
