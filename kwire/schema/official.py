"""Reads Kafka's own message definitions, the JSON files inside its jars, as facts without words.

The files are JSON with // comments and a few commas too many. Descriptions in them are not read at all: kwire has
words of its own. Oddities that releases contain and that are taken as they are meant: a tagged field without "versions"
has them where it is tagged, a tag may be a string, "validVersions": "none" marks a message that the release no longer
speaks.
"""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kwire.errors import SchemaError
from kwire.schema.model import NONE, Field, MessageSchema, Struct, Versions

# strings and comments that nothing ends go to the end of the text, so that nobody looks for their ends twice
NOISE = re.compile(r'("(?:[^"\\]|\\.)*(?:"|\\?\Z))|//[^\n]*|/\*(?:.*?\*/|.*)|,(?=\s*[\]}])', re.DOTALL)
MAX_BYTES = 32 * 1024 * 1024  # of all definitions together; Kafka's are 0.7 MB
MAX_VERSION = 1000  # of a message; Kafka's newest is below 20
MAX_FIELDS = 10_000  # of a message; Kafka's largest has 60
RELEASE = re.compile(r"(\d+\.\d+)(?:\.\d+)*")


class Official(NamedTuple):
    """One official file: the message and what else it says. key: an API key, or a record's type number."""

    message: MessageSchema
    key: int | None
    listeners: tuple[str, ...]
    unstable: bool  # the newest version is still in work


class ReleaseSource(NamedTuple):
    """All definitions of one release; release is "4.4"."""

    release: str
    found: tuple[Official, ...]


def read(path: Path, release: str | None = None, otherwise: str | None = None) -> ReleaseSource:
    """Reads a jar, or a folder of .json files. The release is the one given, else that in a jar's name, else otherwise.

    Raises SchemaError when there is no definition, one cannot be read, or the release cannot be found out.
    """
    if not path.exists():
        raise SchemaError(str(path), "does not exist")
    try:
        texts = _jar_texts(path) if path.is_file() else _folder_texts(path)
    except (zipfile.BadZipFile, zlib.error, RuntimeError) as error:  # RuntimeError: a member with a password
        raise SchemaError(str(path), "is neither a folder nor a jar") from error
    found = []
    decoder = json.JSONDecoder()  # 2.8 has a file with text behind its object
    for name, text in sorted(texts.items()):
        try:
            raw, _ = decoder.raw_decode(NOISE.sub(lambda match: match.group(1) or "", text.decode()).strip())
            if isinstance(raw, dict) and "validVersions" in raw and "fields" in raw and not _untyped_key(raw):
                found.append(convert(raw))
        except KeyError as error:
            raise SchemaError(name, f"not a message definition: {error.args[0]} is missing") from error
        except RecursionError as error:
            raise SchemaError(
                name, "not a message definition: nested too deep, or a struct that holds itself"
            ) from error
        except (ValueError, TypeError, AttributeError) as error:
            raise SchemaError(name, f"not a message definition: {error}") from error
    if not found:
        raise SchemaError(str(path), "holds no message definitions")
    if release is None:
        tail = re.search(r"-([.\d]+)\.jar$", path.name)
        release = tail.group(1) if tail else otherwise
    if release is None:
        raise SchemaError(str(path), "does not tell its release; say it with --release")
    version = RELEASE.fullmatch(release)
    if not version:
        raise SchemaError(release, "is not a release such as 4.4")
    return ReleaseSource(version.group(1), tuple(found))


def _untyped_key(raw: Mapping[str, Any]) -> bool:
    """A key of 4.0's internal topics: its versions are record types. From 4.1 on the type is in apiKey."""
    return raw["name"].endswith("Key") and raw["type"] in ("data", "coordinator-key") and "apiKey" not in raw


def _jar_texts(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as jar:
        files = [info for info in jar.infolist() if info.filename.endswith(".json")]
        chosen = [info for info in files if "message/" in info.filename or "common/metadata/" in info.filename]
        _bound(path, sum(info.file_size for info in chosen))  # reading one gives no more than it says
        return {info.filename: jar.read(info) for info in chosen}


def _folder_texts(path: Path) -> dict[str, bytes]:
    files = list(path.glob("*.json"))
    _bound(path, sum(file.stat().st_size for file in files))
    return {file.name: file.read_bytes() for file in files}


def _bound(path: Path, size: int) -> None:
    if size > MAX_BYTES:
        raise SchemaError(str(path), f"holds {size:,} bytes of definitions; {MAX_BYTES:,} are the most that is read")


def convert(raw: Mapping[str, Any]) -> Official:
    """One parsed JSON file. Raises ValueError, KeyError, TypeError or AttributeError for what is not one."""
    versions = Versions.parse(raw["validVersions"])
    if versions.high > MAX_VERSION:
        raise ValueError(f"version {versions.high:,}; {MAX_VERSION:,} is the highest that is read")
    structs = tuple(
        Struct(item["name"], Versions.parse(item["versions"]), _fields(item["fields"]))
        for item in raw.get("commonStructs", [])
    )
    flexible = Versions.parse(raw.get("flexibleVersions"))
    message = MessageSchema(_name(raw["name"]), raw["type"], versions, flexible, _fields(raw["fields"]), structs)
    for number, (path, field) in enumerate(message.walk()):
        if number >= MAX_FIELDS:
            raise ValueError(f"more than {MAX_FIELDS:,} fields, structs within structs counted each time")
        if field.is_struct and not message.fields_of(field):
            raise ValueError(f"{path}: nothing says what {field.element} is")
    key = raw.get("apiKey")
    if not isinstance(key, int | None):
        raise ValueError(f"apiKey {key!r} is not a number")
    return Official(message, key, tuple(raw.get("listeners", ())), bool(raw.get("latestVersionUnstable")))


def _fields(raw: list[Mapping[str, Any]]) -> tuple[Field, ...]:
    return tuple(_field(item) for item in raw)


def _field(raw: Mapping[str, Any]) -> Field:
    tagged = Versions.parse(raw.get("taggedVersions"))
    versions = Versions.parse(raw["versions"]) if "versions" in raw else tagged
    kind = raw["type"]
    return Field(
        name=_name(raw["name"])[0].upper() + raw["name"][1:],
        type="[]" * kind.startswith("[]") + _name(kind.removeprefix("[]")),
        versions=versions,
        nullable=Versions.parse(raw.get("nullableVersions")).within(versions),
        tagged=tagged,
        tag=int(raw["tag"]) if tagged else None,
        default=None if raw.get("default") is None else _default(raw["default"]),
        entity=raw.get("entityType", ""),
        error=kind in ("int16", "[]int16") and bool(re.search(r"ErrorCodes?$", raw["name"])),
        inflexible="flexibleVersions" in raw and Versions.parse(raw["flexibleVersions"]) == NONE,
        fields=_fields(raw.get("fields", [])),
    )


def _name(text: str) -> str:
    """A name as it may stand in a text file and, in snake case, as a file's name. Raises ValueError."""
    if not text.isidentifier():
        raise ValueError(f"{text!r} is not a name")
    return text


def _default(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value).strip()
