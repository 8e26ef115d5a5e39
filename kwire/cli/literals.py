"""From what people paste to bytes: raw bytes, hex, base64, literals of programming languages, dumps of other tools.

Each form is a pattern for the whole text and a way to read it; detection takes the first that fits, from the most
telling to the least. Text that looks like none is raw bytes.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import NamedTuple

from kwire.errors import KwireError

MAX_TEXT = 64 * 1024 * 1024  # longer input is not looked at as text


class Form(NamedTuple):
    """A form of input: its name for --input, and its reader, which gives None for text that is not of the form."""

    name: str
    what: str
    read: Callable[[str], bytes | None]


# offset, then bytes in groups: xxd, hexdump -C, hexdump, od -tx1, Wireshark ("0000   16 03"), tcpdump -x ("0x0000:  4500")
DUMP_LINE = re.compile(r"^\s*(?:0x)?([0-9a-fA-F]{4,16}):?\s+((?:[0-9a-fA-F]{2,8} {1,3})*[0-9a-fA-F]{2,8})(?:\s{2,}.*|\s*\|.*)?\s*$")
DUMP_END = re.compile(r"^\s*(?:0x)?[0-9a-fA-F]{4,16}:?\s*$")


def _dump(text: str) -> bytes | None:
    out = bytearray()
    lines = [line for line in text.splitlines() if line.strip()]
    rows = [(line, DUMP_LINE.match(line)) for line in lines]
    found = [match for _, match in rows if match]
    if not found or len(found) < len(lines) / 2:
        return None
    for line, match in rows:
        if line.strip() == "*":
            return None  # hexdump -C leaves out repeated lines: bytes are missing
        if match is None:
            continue  # tcpdump's summary lines, and a closing offset
        offset = int(match.group(1), 16)
        groups = re.sub(r"\s+", " ", match.group(2)).split()
        raw = bytes.fromhex("".join(group for group in groups if len(group) % 2 == 0))
        if offset == 0 and out and len(found) > 1:
            pass  # a further packet of the same dump
        out += raw
    return bytes(out)


def _hex(text: str) -> bytes | None:
    bare = re.sub(r"[\s:,_-]|0x", "", text)
    if not re.fullmatch(r"(?:[0-9a-fA-F]{2})+", bare) or re.search(r"\b0x[0-9a-fA-F]\b", text):
        return None
    return bytes.fromhex(bare)


ESCAPE = re.compile(r"\\x([0-9a-fA-F]{2})|\\([0-7]{1,3})|\\(.)|([^\\])", re.DOTALL)
SIMPLE = {"n": 10, "r": 13, "t": 9, "\\": 92, "'": 39, '"': 34, "a": 7, "b": 8, "f": 12, "v": 11}


def _escapes(text: str) -> bytes | None:
    """\\x00 literals of C, Python, Go and the shell, in quotes or bare; adjacent ones are joined."""
    if not re.search(r"\\x[0-9a-fA-F]{2}", text):
        return None
    quoted = re.findall(r"""\$?b?(?P<q>["'])((?:\\.|(?!(?P=q))[^\\])*)(?P=q)""", text, re.DOTALL)
    body = "".join(inner for _, inner in quoted) if quoted else re.sub(r"\s+", "", text)
    out = bytearray()
    for match in ESCAPE.finditer(body):
        pair, octal, simple, char = match.groups()
        if pair is not None:
            out.append(int(pair, 16))
        elif octal is not None:
            out.append(int(octal, 8) & 0xFF)
        elif simple is not None:
            if simple not in SIMPLE:
                return None
            out.append(SIMPLE[simple])
        elif ord(char) > 255:
            return None
        else:
            out += char.encode("latin-1")
    return bytes(out)


NUMBER = re.compile(r"(?:\(byte\)\s*)?(-?(?:0x[0-9a-fA-F]{1,2}|\d{1,3}))")
ARRAY = re.compile(
    r"^[^\[{(]*?(?:\[\]\s*byte|byte\s*\[\]|\[\d*\]\s*u?int8|\w*)?\s*[\[{(]\s*((?:(?:\(byte\)\s*)?-?\w+\s*,?\s*)+)[\]})]+[;)]*\s*$",
    re.DOTALL,
)


def _array(text: str) -> bytes | None:
    """Byte arrays of Java, Go, C, Rust, JavaScript and Python: 0x00, 16, (byte) 0xff or -1, between brackets or bare."""
    body = re.sub(r"\[\]\s*byte|byte\s*\[\]|\[\d+\]\s*(?:byte|u8|uint8)|new\s+|Uint8Array|bytes|bytearray|byte\s+\w+\s*=", " ", text)
    inner = re.search(r"[\[{]([^\[\]{}]*)[\]}]", body)
    if inner is None and not re.fullmatch(r"[\s,;0-9a-fA-Fx()byte-]+", body):
        return None
    parts = [part.strip() for part in (inner.group(1) if inner else body).strip(" ;,\n").split(",") if part.strip()]
    if len(parts) < 2 and inner is None:
        return None
    out = bytearray()
    for part in parts:
        match = NUMBER.fullmatch(re.sub(r"\(byte\)|\bbyte\b", "", part).strip("() "))
        if match is None:
            return None
        value = int(match.group(1), 0) if "x" in match.group(1) else int(match.group(1))
        if not -128 <= value <= 255:
            return None
        out.append(value & 0xFF)
    return bytes(out) if out else None


def _base64(text: str) -> bytes | None:
    bare = re.sub(r"\s", "", text)
    if len(bare) < 8 or not re.fullmatch(r"[A-Za-z0-9+/_-]+={0,2}", bare):
        return None
    padded = bare.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(padded + "=" * (-len(padded) % 4), validate=True)
    except binascii.Error:
        return None


FORMS = (
    Form("dump", "xxd, hexdump -C, Wireshark or tcpdump -x text", _dump),
    Form("escapes", r"\x literals of C, Python, Go or a shell", _escapes),
    Form("hex", "hex digits", _hex),
    Form("array", "a byte array of Java, Go, C, Rust or Python", _array),
    Form("base64", "base64", _base64),
)
NAMES = ("auto", "raw", *(form.name for form in FORMS))


def to_bytes(given: bytes, form: str = "auto") -> tuple[bytes, str]:
    """The bytes that are meant, and the name of the form. Raises KwireError when they are not of the form that is said."""
    if form == "raw" or not given:
        return given, "raw"
    wanted = [candidate for candidate in FORMS if form in ("auto", candidate.name)]
    if len(given) <= MAX_TEXT:
        try:
            text = given.decode("ascii" if form == "auto" else "utf-8").strip("\ufeff")
        except UnicodeDecodeError:
            text = ""
        if text.strip() and "\0" not in text:
            for candidate in wanted:
                read = candidate.read(text)
                if read:
                    return read, candidate.name
    if form == "auto":
        return given, "raw"
    raise KwireError(f"the input is not {wanted[0].what}")
