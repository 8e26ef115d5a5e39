"""Merges facts: what is known of a message with what one more release says.

The newer release leads: wherever both have a version, its layout and its names win, and what the older one said is
kept as a fact (an older name; a layout that differed). Versions that only the older one has keep the older layout.
Words (notes, meanings of values) and marks set by hand (secret, an entity) stay with their fields. After a merge every
version is compared with the side it came from; a difference is a SchemaError, never a silent change of bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from kwire.errors import SchemaError
from kwire.schema.model import NONE, Field, MessageSchema, Renamed, Struct, Versions

Shape = tuple[object, ...]


class Merged(NamedTuple):
    message: MessageSchema
    differs: tuple[str, ...]


def merge(newer: MessageSchema, older: MessageSchema, newer_release: str) -> Merged:
    """The union of two releases' facts.

    newer_release names the first release that has the newer layout; empty when that is not known, and then neither
    older names nor differing layouts are recorded.
    """
    shared = newer.versions.within(older.versions)
    versions = newer.versions.join(older.versions)
    extra = _difference(older.versions, newer.versions, newer.name)
    if len(versions.each()) != len(newer.versions.each()) + len(extra.each()):
        raise SchemaError(newer.name, f"versions {older.versions} and {newer.versions} leave a hole")
    differs = tuple(_differences(newer, older, shared, newer_release)) if newer_release else ()
    renamed = _renames(newer, older, shared)
    fields = _fields(newer, older, newer.fields, older.fields, extra, renamed, newer_release)
    structs = [_struct(newer, older, struct, extra, renamed, newer_release) for struct in newer.structs]
    known = {struct.name for struct in structs}
    structs += [struct for struct in older.structs if struct.name not in known and _uses(fields, struct.name)]
    flexible = newer.flexible.join(older.flexible.within(extra))
    merged = MessageSchema(newer.name, newer.kind, versions, flexible, fields, tuple(structs))
    _verify(merged, newer, newer.versions.each())
    _verify(merged, older, extra.each())
    return Merged(merged, differs)


def _difference(of: Versions, without: Versions, name: str) -> Versions:
    left = [version for version in of.each() if version not in without]
    if not left:
        return NONE
    if left[-1] - left[0] + 1 != len(left):
        raise SchemaError(name, f"versions {of} and {without} leave a hole")
    return Versions(left[0], left[-1])


def _verify(merged: MessageSchema, source: MessageSchema, versions: Iterable[int]) -> None:
    for version in versions:
        if shape(merged, version) != shape(source, version):
            raise SchemaError(f"{merged.name} v{version}", "the merged layout is not the one that was read")


# ---------------------------------------------------------------- layouts


def shape(message: MessageSchema, version: int) -> Shape:
    """What decides the bytes of a version: types, order, null markers, tags. Names do not."""
    return (version in message.flexible, *_shape(message, message.fields, version))


def _shape(message: MessageSchema, fields: tuple[Field, ...], version: int) -> Iterator[object]:
    tagged = []
    for field in present(fields, version):
        kind = ("[]" if field.is_array else "") + ("struct" if field.is_struct else field.element)
        inner = tuple(_shape(message, message.fields_of(field), version))
        known = (kind, version in field.nullable, field.inflexible, inner)
        if version in field.tagged:
            tagged.append((field.tag, *known))
        else:
            yield known
    yield tuple(sorted(tagged, key=str))


def present(fields: tuple[Field, ...], version: int) -> list[Field]:
    """The fields that a version has, tagged ones included."""
    return [field for field in fields if version in field.versions or version in field.tagged]


def _untagged(item: Shape) -> Shape:
    """A shape without its tagged fields, at every depth."""
    return tuple(_untagged(part) if isinstance(part, tuple) else part for part in item[:-1]) if item else item


def _differences(newer: MessageSchema, older: MessageSchema, shared: Versions, release: str) -> Iterator[str]:
    """Sentences for the versions that both have and lay out in different ways."""
    by_text: dict[str, list[int]] = {}
    for version in shared.each():
        if shape(newer, version) == shape(older, version):
            continue
        new = dict(_flat(newer, newer.fields, version))
        old = dict(_flat(older, older.fields, version))
        gone = [f"{path} ({kind})" for path, kind in old.items() if new.get(path) != kind]
        come = [f"{path} ({kind})" for path, kind in new.items() if old.get(path) != kind]
        texts = [f"had {', '.join(gone)}"] if gone else []
        texts += [f"lacked {', '.join(come)}"] if come else []
        if (version in newer.flexible) != (version in older.flexible):
            texts.append("was flexible" if version in older.flexible else "was not flexible")
        by_text.setdefault("; ".join(texts) or "had another order of fields", []).append(version)
    for text, versions in by_text.items():
        yield f"{newer.name} v{Versions(versions[0], versions[-1])} before {release} {text}"


def _flat(message: MessageSchema, fields: tuple[Field, ...], version: int, path: str = "") -> Iterator[tuple[str, str]]:
    for field in present(fields, version):
        kind = ("[]" if field.is_array else "") + ("struct" if field.is_struct else field.element)
        tag = f" tag {field.tag}" if version in field.tagged else ""
        yield path + field.name, kind + ("?" if version in field.nullable else "") + tag
        yield from _flat(message, message.fields_of(field), version, f"{path}{field.name}.")


# ---------------------------------------------------------------- names


def _renames(newer: MessageSchema, older: MessageSchema, shared: Versions) -> dict[tuple[str, str], str]:
    """{(path in the newer names, older name): newer name}, found where both lay out a version alike."""
    found: dict[tuple[str, str], str] = {}

    def compare(new: tuple[Field, ...], old: tuple[Field, ...], version: int, path: str) -> None:
        for one, two in zip(present(new, version), present(old, version), strict=True):
            if one.name != two.name:
                found[path, two.name] = one.name
            if one.is_struct:
                compare(newer.fields_of(one), older.fields_of(two), version, f"{path}{one.name}.")

    for version in shared.each():
        if shape(newer, version) == shape(older, version):
            compare(newer.fields, older.fields, version, "")
    return found


def _fields(
    newer: MessageSchema,
    older: MessageSchema,
    new: tuple[Field, ...],
    old: tuple[Field, ...],
    extra: Versions,
    renamed: dict[tuple[str, str], str],
    release: str,
    path: str = "",
) -> tuple[Field, ...]:
    """One level of fields: the newer ones in their order, and the older ones that only extra versions need."""
    by_name = {renamed.get((path, field.name), field.name): field for field in old}
    out: list[Field] = []
    for field in new:
        twin = by_name.get(field.name)
        if twin is None or twin.is_struct != field.is_struct:
            out.append(field)
            continue
        out.append(_join(newer, older, field, twin, extra, renamed, release, path))
    names = [field.name for field in out]
    after = 0
    for field in old:
        name = renamed.get((path, field.name), field.name)
        if name in names:
            after = names.index(name) + 1
            continue
        needed = field.versions.within(extra)
        if needed:
            out.insert(after, field._replace(versions=needed, nullable=field.nullable.within(needed)))
            names.insert(after, name)
            after += 1
    return tuple(out)


def _join(
    newer: MessageSchema,
    older: MessageSchema,
    field: Field,
    twin: Field,
    extra: Versions,
    renamed: dict[tuple[str, str], str],
    release: str,
    path: str,
) -> Field:
    """A field that both know: the newer facts, the versions of both, the words of whichever has them."""
    was = {old.name: old for old in twin.was + field.was}
    if release and twin.name != field.name and twin.name not in was:
        was[twin.name] = Renamed(twin.name, release)
    was.pop(field.name, None)
    inner: tuple[Field, ...] = ()
    if field.fields:
        inner = _fields(
            newer, older, field.fields, older.fields_of(twin), extra, renamed, release, f"{path}{field.name}."
        )
    tagged = field.tagged.join(twin.tagged.within(extra))
    return field._replace(
        versions=field.versions.join(twin.versions.within(extra)),
        nullable=field.nullable.join(twin.nullable.within(extra)),
        tagged=tagged,
        tag=field.tag if field.tag is not None else twin.tag if tagged else None,
        entity=field.entity or twin.entity,
        error=field.error or twin.error,
        secret=field.secret or twin.secret,
        carrier=field.carrier or twin.carrier,
        was=tuple(was.values()),
        note=field.note or twin.note,
        meanings=field.meanings or twin.meanings,
        fields=inner,
    )


def _struct(
    newer: MessageSchema,
    older: MessageSchema,
    struct: Struct,
    extra: Versions,
    renamed: dict[tuple[str, str], str],
    release: str,
) -> Struct:
    """A struct on its own is merged with the older struct of that name, or with the inline fields of its first user."""
    twin = next((other.fields for other in older.structs if other.name == struct.name), None)
    if twin is None:
        users = (field for _, field in older.walk() if field.element == struct.name)
        twin = next((older.fields_of(user) for user in users), None)
    if twin is None:
        return struct
    path = next((f"{path}." for path, field in newer.walk() if field.element == struct.name), "")
    fields = _fields(newer, older, struct.fields, twin, extra, renamed, release, path)
    return replace(struct, fields=fields)


def _uses(fields: tuple[Field, ...], name: str) -> bool:
    return any((field.element == name and not field.fields) or _uses(field.fields, name) for field in fields)
