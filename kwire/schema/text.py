"""The text form of a definition: read it, write it.

A file is a page. Blocks start in the first column, what belongs to them is indented; inside fields, two more blanks
are one level deeper. Facts come from the importer, words are ours, and dump(parse(text)) == text for every file here.

    api 12 Heartbeat                    or: message OffsetCommitValue 1 (its kind stands in the head)
      area      classic group           head lines: a word, then its value
      releases  2.3 0-3, 2.4 0-4        from this release on these versions; 4.1 1-10/9: version 10 not yet stable
    about                               prose; paragraphs are separated by a blank line
    trips                               what people trip over
    errors                              NAME, then what it means here
    versions                            number, then what this version brought
    request 0-4 flexible 4+             a message; then its fields:
      Name    []string?1+  0+  tag 3  = null  topicName  error  secret  carrier  inflexible  was Old<4.4
        : a note on the field
        = 1 READ_COMMITTED  what this value means
        Inner  int32  0+                a struct's fields
    struct Cursor 0+                    a struct that the message above refers to by name
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache

from kwire.errors import SchemaError
from kwire.schema.model import (
    NONE,
    Definition,
    Field,
    Meaning,
    MessageSchema,
    RelatedError,
    Release,
    Renamed,
    Struct,
    Versions,
)

WIDTH = 118
HEAD = ("area", "kind", "since", "kips", "sender", "listeners", "was", "aka", "releases", "differs")
MESSAGES = ("request", "response", "fields")
FLAGS = ("error", "secret", "carrier", "inflexible")


# ---------------------------------------------------------------- reading


@dataclass(slots=True)
class TextBlock:
    line: int
    words: list[str]
    body: list[tuple[int, int, str]]  # line number, indent, text; blank lines have no text


def parse(text: str, where: str = "definition") -> Definition:
    """Reads a file's text. Raises SchemaError with the line that is wrong, or that begins the block that is."""
    return _definition(list(_blocks(text, where)), where)


@contextmanager
def _reading(where: str, line: int) -> Iterator[None]:
    """Whatever goes wrong inside is a SchemaError that names the line."""
    try:
        yield
    except (ValueError, IndexError, TypeError) as error:
        reason = "a word is missing" if isinstance(error, IndexError) else error
        raise SchemaError(f"{where}:{line}", f"cannot be read: {reason}") from error


def parse_head(line: str) -> tuple[str, int | None]:
    """Name and key from a file's first line alone: what an index needs."""
    words = line.split()
    if words[0] == "api":
        return words[2], int(words[1])
    return words[1], int(words[2]) if len(words) > 2 else None


def _blocks(text: str, where: str) -> Iterator[TextBlock]:
    block: TextBlock | None = None
    for number, line in enumerate(text.split("\n"), 1):
        body = line.strip()
        if not body:
            if block:
                block.body.append((number, 0, ""))
        elif line[0] != " ":
            if block:
                yield block
            block = TextBlock(number, body.split(), [])
        elif block is None:
            raise SchemaError(f"{where}:{number}", "indented, but under no block")
        else:
            indent = len(line) - len(line.lstrip(" "))
            if indent % 2:
                raise SchemaError(f"{where}:{number}", "indented by an odd number of blanks")
            block.body.append((number, indent // 2, body))
    if block:
        yield block


def _definition(blocks: list[TextBlock], where: str) -> Definition:
    if not blocks or blocks[0].words[0] not in ("api", "message"):
        raise SchemaError(where, "does not begin with api or message")
    is_api = blocks[0].words[0] == "api"
    with _reading(where, blocks[0].line):
        name, key = parse_head(" ".join(blocks[0].words))
        head = _head(blocks[0], where)
        was = tuple(Renamed(*item.split("<")) for line in head.get("was", []) for item in line.split())
        releases = tuple(_release(item) for line in head.get("releases", []) for item in line.split(", ") if item)
    prose: dict[str, str] = {}
    errors: list[RelatedError] = []
    changes: list[tuple[int, str]] = []
    messages: list[MessageSchema] = []
    for block in blocks[1:]:
        word = block.words[0]
        with _reading(where, block.line):
            if word in ("about", "trips"):
                prose[word] = _prose(block)
            elif word == "errors":
                errors = [RelatedError(first, rest) for first, rest in _entries(block)]
            elif word == "versions":
                changes = [(int(first), rest) for first, rest in _entries(block)]
            elif word in MESSAGES:
                kind = head.get("kind", ["data"])[0] if word == "fields" else word
                messages.append(_message(block, name + word.capitalize() if is_api else name, kind, where))
            elif word == "struct":
                messages[-1] = _with_struct(messages[-1], block, where)
            else:
                raise SchemaError(f"{where}:{block.line}", f"no block is called {word}")
    if not messages:
        raise SchemaError(where, "has no messages")

    def only(word: str) -> str:
        return " ".join(head.get(word, []))

    return Definition(
        name=name,
        key=key,
        messages=tuple(messages),
        area=only("area"),
        since=only("since"),
        kips=only("kips"),
        sender=only("sender"),
        listeners=only("listeners"),
        was=was,
        aka=tuple(only("aka").split()),
        releases=releases,
        differs=tuple(head.get("differs", [])),
        errors=tuple(errors),
        about=prose.get("about", ""),
        trips=prose.get("trips", ""),
        changes=tuple(changes),
    )


def parse_response(text: str, where: str = "definition") -> MessageSchema:
    """An API's response alone, without the words: a fraction of the work, for whoever tries all APIs."""
    name, _ = parse_head(text.partition("\n")[0])
    at = text.find("\nresponse ")
    if at < 0:
        raise SchemaError(where, "has no response")
    block, *structs = _blocks(text[at + 1 :], where)
    with _reading(where, block.line):
        message = _message(block, f"{name}Response", "response", where)
        for struct in structs:
            message = _with_struct(message, struct, where)
    return message


def _message(block: TextBlock, name: str, kind: str, where: str) -> MessageSchema:
    versions = Versions.parse(block.words[1])
    flexible = Versions.parse(block.words[3]) if len(block.words) > 3 else NONE
    return MessageSchema(name, kind, versions, flexible, _fields(block, where))


def _with_struct(message: MessageSchema, block: TextBlock, where: str) -> MessageSchema:
    struct = Struct(block.words[1], Versions.parse(block.words[2]), _fields(block, where))
    return replace(message, structs=(*message.structs, struct))


def _head(block: TextBlock, where: str) -> dict[str, list[str]]:
    head: dict[str, list[str]] = {}
    word = ""
    for line, indent, text in block.body:
        if not text:
            continue
        if indent == 1:
            word, _, value = text.partition(" ")
            if word not in HEAD:
                raise SchemaError(f"{where}:{line}", f"no head line is called {word}")
            head.setdefault(word, []).append(value.strip())
        elif not word:
            raise SchemaError(f"{where}:{line}", "goes on with a head line, but there is none")
        else:
            head[word][-1] += " " + text
    return head


def _release(text: str) -> Release:
    release, versions, *_ = text.split()
    shown, _, stable = versions.partition("/")
    known = Versions.parse(shown)
    return Release(release, known, int(stable) if stable else known.high)


def _prose(block: TextBlock) -> str:
    paragraphs: list[list[str]] = [[]]
    for _, _, text in block.body:
        if text:
            paragraphs[-1].append(text)
        elif paragraphs[-1]:
            paragraphs.append([])
    return "\n\n".join(" ".join(lines) for lines in paragraphs if lines)


def _entries(block: TextBlock) -> list[tuple[str, str]]:
    """Lines of a word and a text; deeper lines go on with the text."""
    entries: list[tuple[str, str]] = []
    for _, indent, text in block.body:
        if indent == 1:
            first, _, rest = text.partition(" ")
            entries.append((first, rest.strip()))
        elif text:
            first, rest = entries[-1]
            entries[-1] = (first, f"{rest} {text}".strip())
    return entries


def _fields(block: TextBlock, where: str) -> tuple[Field, ...]:
    lines = [entry for entry in block.body if entry[2]]
    fields, rest = _level(lines, 0, 1, where)
    if rest < len(lines):
        raise SchemaError(f"{where}:{lines[rest][0]}", "indented deeper than its parent's fields")
    return fields


def _level(lines: list[tuple[int, int, str]], at: int, depth: int, where: str) -> tuple[tuple[Field, ...], int]:
    fields: list[Field] = []
    while at < len(lines) and lines[at][1] == depth:
        number, _, text = lines[at]
        at += 1
        notes: list[str] = []
        meanings: list[Meaning] = []
        while at < len(lines) and lines[at][1] == depth + 1 and lines[at][2][:2] in (": ", "= "):
            mark, body = lines[at][2][0], lines[at][2][2:].strip()
            if mark == ":":
                notes.append(body)
            else:
                with _reading(where, lines[at][0]):
                    value, name, *note = body.split(None, 2)
                    meanings.append(Meaning(int(value), name, note[0] if note else ""))
            at += 1
        inner, at = _level(lines, at, depth + 1, where)
        try:
            fields.append(_field(text, " ".join(notes), tuple(meanings), inner))
        except (ValueError, TypeError, StopIteration) as error:
            raise SchemaError(f"{where}:{number}", f"not a field: {text} ({error})") from error
    return tuple(fields), at


def _field(text: str, note: str, meanings: tuple[Meaning, ...], inner: tuple[Field, ...]) -> Field:
    name, kind, versions_text, *words = text.split()
    versions = _versions(versions_text)
    kind, mark, nullable_text = kind.partition("?")
    nullable = (_versions(nullable_text) if nullable_text else versions) if mark else NONE
    if not words:
        return Field(name, kind, versions, nullable, note=note, meanings=meanings, fields=inner)
    tagged, tag, default, entity = NONE, None, None, ""
    was: list[Renamed] = []
    flags: dict[str, bool] = {}
    rest = iter(words)
    for word in rest:
        if word == "tag":
            number, _, at = next(rest).partition("@")
            tag, tagged = int(number), _versions(at) if at else versions
        elif word == "=":
            default = next(rest)
            default = "" if default == '""' else default
        elif word == "was":
            was.append(Renamed(*next(rest).split("<")))
        elif word in FLAGS:
            flags[word] = True
        else:
            entity = word
    return Field(
        name, kind, versions, nullable, tagged, tag, default, entity,
        was=tuple(was), note=note, meanings=meanings, fields=inner, **flags,
    )  # fmt: skip


_versions = cache(Versions.parse)


# ---------------------------------------------------------------- writing


def dump(definition: Definition) -> str:
    """Writes the file's text; parse() gives the definition back."""
    key = "" if definition.key is None else f" {definition.key}"
    lines = [f"api{key} {definition.name}" if definition.is_api else f"message {definition.name}{key}"]
    kind = "" if definition.is_api else definition.messages[0].kind
    values = {
        "area": [definition.area],
        "kind": [kind],
        "since": [definition.since],
        "kips": [definition.kips],
        "sender": [definition.sender],
        "listeners": [definition.listeners],
        "was": [" ".join(f"{old.name}<{old.before}" for old in definition.was)],
        "aka": [" ".join(definition.aka)],
        "releases": [", ".join(_release_text(release) for release in definition.releases)],
        "differs": list(definition.differs),
    }
    for word in HEAD:
        for value in values[word]:
            if value:
                lines += _wrap(value, f"  {word:<10}", " " * 12)
    for word, prose in (("about", definition.about), ("trips", definition.trips)):
        if prose:
            paragraphs = ["\n".join(_wrap(paragraph, "  ", "  ")) for paragraph in prose.split("\n\n")]
            lines += ["", word, "\n\n".join(paragraphs)]
    if definition.errors:
        wide = max(len(error.name) for error in definition.errors) + 2
        lines += ["", "errors"]
        for error in definition.errors:
            lines += _wrap(error.note, f"  {error.name:<{wide}}", " " * (wide + 2 + wide % 2))
    if definition.changes:
        lines += ["", "versions"]
        for version, note in definition.changes:
            lines += _wrap(note, f"  {version:<4}", "      ")
    for message in definition.messages:
        word = message.kind if definition.is_api else "fields"
        flexible = f" flexible {message.flexible}" if message.flexible else ""
        lines += ["", f"{word} {message.versions}{flexible}"]
        lines += _field_lines(message.fields, 1)
        for struct in message.structs:
            lines += ["", f"struct {struct.name} {struct.versions}"]
            lines += _field_lines(struct.fields, 1)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _wrap(text: str, first: str, rest: str) -> list[str]:
    """Wraps without ever breaking a word; an empty text still gives its first line."""
    wrapped = textwrap.wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )
    return wrapped or [first.rstrip()]


def _release_text(release: Release) -> str:
    stable = "" if release.highest_stable == release.versions.high else f"/{release.highest_stable}"
    return f"{release.release} {release.versions}{stable}"


def _field_lines(fields: tuple[Field, ...], depth: int) -> list[str]:
    lines: list[str] = []
    pad = "  " * depth
    heads = [(field.name, _type_text(field), str(field.versions)) for field in fields]
    wide = [max((len(head[column]) for head in heads), default=0) for column in range(3)]
    for field, head in zip(fields, heads, strict=True):
        cells = "  ".join(f"{cell:<{width}}" for cell, width in zip(head, wide, strict=True))
        lines.append("  ".join([pad + cells, *_attributes(field)]))
        if field.note:
            lines += _wrap(field.note, f"{pad}  : ", f"{pad}  : ")
        for meaning in field.meanings:
            lines.append(f"{pad}  = {meaning.value} {meaning.name}  {meaning.note}")
        lines += _field_lines(field.fields, depth + 1)
    return lines


def _type_text(field: Field) -> str:
    if not field.nullable:
        return field.type
    return f"{field.type}?" if field.nullable == field.versions else f"{field.type}?{field.nullable}"


def _attributes(field: Field) -> Iterator[str]:
    if field.tag is not None:
        yield f"tag {field.tag}" + ("" if field.tagged == field.versions else f"@{field.tagged}")
    if field.default is not None:
        yield f"= {field.default or chr(34) * 2}"
    if field.entity:
        yield field.entity
    for flag in FLAGS:
        if getattr(field, flag):
            yield flag
    for old in field.was:
        yield f"was {old.name}<{old.before}"
