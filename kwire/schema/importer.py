"""Brings a release's facts into the text files, and keeps the words that stand in them.

One file per API key in apis/, one per other message in data/. A file that does not exist is made, without words; one
that does is merged with: the newest release that knows a version decides it (see merge.py). Older names and layouts
that differed are recorded when releases come in their order; an older one that comes late adds only what is missing.
Before 3.0 many of the official files were drafts that no code used (2.2's FetchResponse has fields that never were on
a wire): of those releases only the range of versions is taken, and only for messages already known.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from kwire.errors import SchemaError
from kwire.outputs import Output
from kwire.schema import merge, text
from kwire.schema.model import NONE, Definition, MessageSchema, Release, Renamed, release_order, snake
from kwire.schema.official import Official, ReleaseSource
from kwire.schema.registry import Registry

FIRST_TRUSTED = "3.0"
DATA_KINDS = ("header", "data", "metadata", "coordinator-key", "coordinator-value")


class Imported(NamedTuple):
    """Paths of what was made and what was changed; the rest stayed as it was."""

    made: tuple[Path, ...]
    changed: tuple[Path, ...]


def import_source(source: ReleaseSource, folder: Path) -> Imported:
    """Merges a release into folder/apis and folder/data. Raises SchemaError; nothing is written then."""
    known = load_folder(folder)
    by_key = {definition.key: path for path, definition in known.items() if definition.is_api}
    by_name = {definition.name: path for path, definition in known.items() if not definition.is_api}
    leads = release_order(source.release) >= _newest(known.values())
    results: dict[Path, Definition] = {}
    draft = release_order(source.release) < release_order(FIRST_TRUSTED)
    speaks = [official for official in source.found if official.message.versions]
    for key, pair in sorted(_apis(speaks).items()):
        fresh = _api(key, pair, source.release)
        if draft and key not in by_key:
            continue
        path = by_key.get(key) or folder / "apis" / f"{key:02}_{snake(fresh.name)}.txt"
        results[path] = _merge(known.get(path), fresh, source.release, leads)
    for official in speaks:
        if official.message.kind in DATA_KINDS and (official.message.name in by_name or not draft):
            fresh = _data(official, source.release)
            path = by_name.get(fresh.name) or folder / "data" / f"{snake(fresh.name)}.txt"
            results[path] = _merge(known.get(path), fresh, source.release, leads)
    if _apis(speaks):
        for path, definition in known.items():
            if definition.is_api and path not in results:
                results[path] = replace(definition, releases=_gone(definition.releases, source.release))
    made: list[Path] = []
    changed: list[Path] = []
    gone: list[Path] = []
    outputs: list[Output] = []
    try:
        for path, definition in results.items():
            page = text.dump(definition)
            target = path.with_name(f"{definition.key:02}_{snake(definition.name)}.txt") if definition.is_api else path
            if path.exists() and target == path and path.read_text("utf-8") == page:
                continue
            (changed if path.exists() else made).append(target)
            if target != path and path.exists():
                gone.append(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            outputs.append(Output(target))
            outputs[-1].open().write(page.encode())
        for output in outputs:  # only now, when all are whole
            output.close()
    except BaseException:
        for output in outputs:
            output.abandon()
        raise
    for path in gone:
        path.unlink()
    return Imported(tuple(made), tuple(changed))


def overlay(source: ReleaseSource, registry: Registry) -> list[Definition]:
    """A release's definitions as they stand in front of a registry's, with its words; those that agree are left out.

    The source leads: it is what the user asked for. Versions that only the registry knows stay readable, unless they
    do not fit beside the source's layouts. Nothing is written. Raises SchemaError for a release of drafts.
    """
    if release_order(source.release) < release_order(FIRST_TRUSTED):
        raise SchemaError(f"Kafka {source.release}", f"its definitions are drafts; only those of {FIRST_TRUSTED}+ hold")
    speaks = [official for official in source.found if official.message.versions]
    known = {definition.key: definition for definition in registry.apis()}
    names = {definition.name: definition for definition in registry.data()}
    pairs = [(_api(key, pair, source.release), known.get(key)) for key, pair in _apis(speaks).items()]
    data = [_data(official, source.release) for official in speaks if official.message.kind in DATA_KINDS]
    out: list[Definition] = []
    for fresh, old in (*pairs, *((one, names.get(one.name)) for one in data)):
        base = old or replace(fresh, releases=())
        olds = old.messages if old else fresh.messages
        messages = tuple(_in_front(new, two) for new, two in zip(fresh.messages, olds, strict=True))
        if messages != (old and old.messages):
            was = tuple(one for one in base.was if one.name != fresh.name)
            listeners = fresh.listeners or base.listeners
            out.append(replace(base, name=fresh.name, messages=messages, was=was, listeners=listeners))
    return out


def _in_front(new: MessageSchema, old: MessageSchema) -> MessageSchema:
    """old if it has every version of new just so; else new's layouts with old's words, and old's other versions."""
    shared = new.versions.within(old.versions)
    if new.name == old.name and all(
        version in shared and merge.shape(new, version) == merge.shape(old, version) for version in new.versions.each()
    ):
        return old
    try:
        return merge.merge(new, old, "").message
    except SchemaError:  # the two do not fit into one message
        return merge.merge(new, replace(old, versions=shared), "").message


def load_folder(folder: Path) -> dict[Path, Definition]:
    """Every definition under folder/apis and folder/data."""
    paths = sorted(folder.glob("apis/*.txt")) + sorted(folder.glob("data/*.txt"))
    return {path: text.parse(path.read_text("utf-8"), path.name) for path in paths}


def _apis(found: Iterable[Official]) -> dict[int, dict[str, Official]]:
    apis: dict[int, dict[str, Official]] = {}
    for official in found:
        if official.message.kind in ("request", "response") and official.key is not None:
            apis.setdefault(official.key, {})[official.message.kind] = official
    return {key: pair for key, pair in apis.items() if len(pair) == 2}


def _api(key: int, pair: dict[str, Official], release: str) -> Definition:
    request, response = pair["request"], pair["response"]
    return Definition(
        name=request.message.name.removesuffix("Request"),
        key=key,
        messages=(request.message, response.message),
        listeners=" ".join(request.listeners),
        releases=(_release(request, release),),
    )


def _data(official: Official, release: str) -> Definition:
    return Definition(official.message.name, official.key, (official.message,), releases=(_release(official, release),))


def _release(official: Official, release: str) -> Release:
    versions = official.message.versions
    return Release(release, versions, versions.high - 1 if official.unstable else versions.high)


def _newest(known: Iterable[Definition]) -> tuple[int, ...]:
    """The newest release that left a trace in any definition: each names only those that changed its versions."""
    return max((release.order for definition in known for release in definition.releases), default=())


def _merge(known: Definition | None, fresh: Definition, release: str, leads: bool) -> Definition:
    """leads: nothing newer than this release is known."""
    if known is None:
        return fresh
    if release_order(release) < release_order(FIRST_TRUSTED):
        return replace(known, releases=compress((*known.releases, *fresh.releases)))
    leading, trailing = (fresh, known) if leads else (known, fresh)
    messages: list[MessageSchema] = []
    differs = known.differs
    for new, old in zip(leading.messages, trailing.messages, strict=True):
        merged = merge.merge(new, old, release if leads else "")
        messages.append(merged.message)
        differs += merged.differs
    was = known.was
    if leads and known.name != fresh.name:
        was = (*was, Renamed(known.name, release))
    return replace(
        known,
        name=leading.name,
        key=leading.key if leading.key is not None else trailing.key,
        messages=tuple(messages),
        listeners=leading.listeners or trailing.listeners,
        was=was,
        releases=compress((*known.releases, *fresh.releases)),
        differs=differs,
    )


def compress(releases: Iterable[Release]) -> tuple[Release, ...]:
    """In order, each only where it differs from the one before."""
    out: list[Release] = []
    for release in sorted({release.release: release for release in releases}.values(), key=lambda r: r.order):
        if not out or out[-1][1:] != release[1:]:
            out.append(release)
    return tuple(out)


def _gone(releases: tuple[Release, ...], release: str) -> tuple[Release, ...]:
    if not releases or release_order(release) < releases[0].order:
        return releases
    return compress((*releases, Release(release, NONE, NONE.high)))
