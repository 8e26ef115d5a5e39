"""From what people paste to bytes: raw bytes, hex, base64, literals of programming languages, dumps of other tools.

Each form is a reader that gives None for text that is not of the form; detection takes the first that fits, from the
most telling to the least. Text that looks like none is raw bytes. Where two forms fit, digits are read as hex before
base64, and as hex before a list of decimal numbers, unless the list stands in brackets. A text in which literals are
rare is prose or a program that mentions them: no dump, unless --input says so.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from kwire.cli.dumps import dump
from kwire.errors import KwireError

MAX_TEXT = 64 * 1024 * 1024  # longer input is not looked at as text


class Form(NamedTuple):
    """A form of input: its name for --input, and its reader, which gives None for text that is not of the form."""

    name: str
    what: str
    read: Callable[[str], bytes | None]


# ---------------------------------------------------------------- hex and base64

QUOTED = re.compile(r"""[xXhH]?(["'`])([^"'`]*)\1;?""")  # also X'00' of SQL and h'00' of CBOR
BUFFER = re.compile(r"<Buffer ([0-9a-f ]*)>")  # what Node prints
SEPARATORS = re.compile(r"[\s,;:_|-]+")


def _hex(text: str) -> bytes | None:
    """Digits in any grouping: 0000001f, 00 00 00 1f, 00:00-00_1f, 0x00,0x1f; also PostgreSQL's \\x0000001f."""
    tokens = _tokens(text)
    if tokens is None or any(len(token) % 2 for token in tokens):
        return None
    return bytes.fromhex("".join(tokens))


def _tokens(text: str) -> list[str] | None:
    """The runs of hex digits that text consists of; None when there is anything else in it."""
    bare = _bare(text)
    if re.search(r"(?:^|[\s,])-", bare):
        return None  # negative numbers
    bare = re.sub(r"\b0[xX]", " ", re.sub(r"^\\x(?=[0-9a-fA-F]{4,}$)", "", bare))
    tokens = [token for token in SEPARATORS.split(bare) if token]
    return tokens if tokens and all(re.fullmatch(r"[0-9a-fA-F]+", token) for token in tokens) else None


def _bare(text: str) -> str:
    """The text without the quotes around it."""
    stripped = text.strip()
    match = QUOTED.fullmatch(stripped) or BUFFER.fullmatch(stripped)
    return match.group(match.lastindex or 0) if match else stripped


def _base64(text: str) -> bytes | None:
    """Base64 and base64url, padded or not, in lines or not."""
    bare = "".join(line.strip() for line in _bare(text).split("\n")).rstrip("=")
    if len(bare) < 8 or len(bare) % 4 == 1 or not re.fullmatch(r"[A-Za-z0-9+/]+|[A-Za-z0-9_-]+", bare):
        return None
    try:
        return base64.b64decode(bare.replace("-", "+").replace("_", "/") + "=" * (-len(bare) % 4), validate=True)
    except binascii.Error:
        return None


# ---------------------------------------------------------------- literals

QUOTE = re.compile("[\"']")
STRING = re.compile(r"""(["'])((?:\\.|(?!\1)[^\\])*)\1""", re.DOTALL)
ESCAPE = re.compile(r"\\x([0-9a-fA-F]{2})|\\u00([0-9a-fA-F]{2})|\\([0-7]{1,3})|\\(\r?\n)|\\(.)|([^\\])", re.DOTALL)
SIMPLE = {"n": 10, "r": 13, "t": 9, "\\": 92, "'": 39, '"': 34, "a": 7, "b": 8, "f": 12, "v": 11, "e": 27}
ESCAPED = re.compile(r"\\x[0-9a-fA-F]{2}|\\[0-7]{1,3}|\\u00[0-9a-fA-F]{2}")


def _escapes(text: str) -> bytes | None:
    r"""\x00 literals of C, Python, Go, Rust, JavaScript and the shell, in quotes or bare; adjacent ones are joined."""
    strings = list(_strings(text))
    if not ESCAPED.search(text) and not re.match(r"""[bB](["']).*\1$""", text.strip(), re.DOTALL):
        return None
    body = "".join(strings) if strings else _joined(text.strip())
    if not strings and re.fullmatch(r"(?:\\x[0-9a-fA-F]{2}|[\s,])+", body):
        body = re.sub(r"[\s,]", "", body)
    out = bytearray()
    for match in ESCAPE.finditer(body):
        pair, point, octal, newline, simple, char = match.groups()
        if pair or point:
            out.append(int(pair or point, 16))
        elif octal:
            out.append(int(octal, 8) & 0xFF)
        elif simple:
            if simple not in SIMPLE:
                return None
            out.append(SIMPLE[simple])
        elif not newline:
            out += char.encode("utf-8")
    return bytes(out)


def _strings(text: str) -> Iterator[str]:
    """What stands in quotes. A quote that nothing closes leaves those of its kind behind it unclosed too: none of them
    is looked at again."""
    pos, unclosed = 0, ""
    while opening := QUOTE.search(text, pos):
        pos = opening.end()
        found = STRING.match(text, opening.start()) if opening[0] not in unclosed else None
        if found:
            yield found[2]
            pos = found.end()
        else:
            unclosed += opening[0] * (opening[0] not in unclosed)


def _uncommented(text: str) -> str:
    """The text without comments; behind the last end of one no other begins, only those of a line."""
    end = text.rfind("*/") + 2 if "*/" in text else 0
    return COMMENT.sub("", text[:end]) + LINE_COMMENT.sub("", text[end:])


def _joined(text: str) -> str:
    """The lines as one, without the blanks around them and the backslashes at their ends."""
    *lines, last = text.split("\n")
    ended = (line.removesuffix("\r").removesuffix("\\").strip() for line in lines)
    return "".join(ended) + last.strip()


NUMBER = r"-?(?:0[xX][0-9a-fA-F]{1,2}|\d{1,3})(?:_?u8|_?i8|[uUlL]|\.toByte\(\))?"
CAST = re.compile(r"\((?:byte|char|u?int8(?:_t)?|unsigned char|sbyte)\)\s*|\bbyte\s*\(\s*([^()]*)\)")
LIST = re.compile(rf"[\[({{<]\s*({NUMBER}(?:[\s,;]+{NUMBER})*)[\s,;]*[\])}}>]")
BARE_LIST = re.compile(rf"\s*{NUMBER}(?:[\s,;]+{NUMBER})+[\s,;]*")
PAIRS_LIST = re.compile(r"\[\s*([0-9a-fA-F]{2}(?:[\s,]+[0-9a-fA-F]{2})*)\s*\]")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*|#[^\n]*", re.DOTALL)
LINE_COMMENT = re.compile(r"//[^\n]*|#[^\n]*")


def _array(text: str) -> bytes | None:
    """Byte arrays of Java, Kotlin, Go, C, C#, Rust, JavaScript, Python, Erlang, JSON: the longest list of numbers."""
    plain = CAST.sub(lambda match: match.group(1) or "", _uncommented(text))
    pairs = PAIRS_LIST.search(plain)
    if pairs and re.search(r"\b0\d|[a-fA-F]", pairs.group(1)):
        return bytes.fromhex("".join(pairs.group(1).replace(",", " ").split()))  # [00 1f], as Go prints with %x
    lists = [re.sub(r"[,;]", " ", match.group(1)) for match in LIST.finditer(plain)]
    bare = BARE_LIST.fullmatch(plain)
    if not lists and not bare:
        return None
    best = max(reversed(lists), key=lambda found: len(found.split())) if lists else plain
    values = [_number(number) for number in re.findall(NUMBER, best)]
    return bytes(value & 0xFF for value in values) if all(-128 <= value <= 255 for value in values) else None


def _number(text: str) -> int:
    digits = re.match(r"(-?)(0[xX])?([0-9a-fA-F]+?)(?=_?[ui]8$|[uUlL]$|\.|$)", text)
    assert digits
    sign, base, number = digits.groups()
    return int(sign + number, 16 if base else 10)


# ---------------------------------------------------------------- detection

AROUND = 200  # characters that may stand around literals: a declaration, a prompt, a line of a log
RARE = 256  # characters for each escape, in which escapes are no more than mentioned
WORDS = re.compile(r"[_-]|(?<=[a-z])(?=[A-Z])")


def _is_prose(text: str, form: str, data: bytes) -> bool:
    """Whether the text is likelier words that look like the form in places than bytes that somebody wrote so."""
    if form == "array":
        room = len(re.sub(r"\s", "", COMMENT.sub("", text)))
        few = len(data) < 4 and "[" not in text and "{" not in text and "<" not in text
        return room > 16 * len(data) + AROUND or (few and not BARE_LIST.fullmatch(text))
    if form == "escapes":
        inside = sum(len(match.group(2)) for match in STRING.finditer(text))
        rare = len(text) > RARE * (1 + len(ESCAPED.findall(text)))
        return rare or (inside > 0 and len(text) - inside > inside + AROUND)
    if form == "base64":
        return all(re.fullmatch(r"[A-Z]?[a-z]+", word) for word in WORDS.split(_bare(text)))
    return False


FORMS = (
    Form("dump", "xxd, hexdump, od, Wireshark or tcpdump -x text", dump),
    Form("hex", "hex digits", _hex),
    Form("escapes", r"\x literals of C, Python, Go or a shell", _escapes),
    Form("array", "a byte array of Java, Go, C, Rust, JavaScript or Python", _array),
    Form("base64", "base64", _base64),
)
NAMES = ("auto", "raw", *(form.name for form in FORMS))


def to_bytes(given: bytes, form: str = "auto") -> tuple[bytes, str]:
    """The bytes that are meant, and the name of the form. Raises KwireError when they are not of the form that is said,
    and for hex digits of which one is missing."""
    text = _text(given) if form != "raw" else ""
    for candidate in FORMS if text.strip() else ():
        if form in ("auto", candidate.name):
            read = candidate.read(text)
            if read and not (form == "auto" and _is_prose(text, candidate.name, read)):
                return read, candidate.name
            if candidate.name == "hex":
                _complain(text)
    if form in ("auto", "raw") or not given:
        return given, "raw"
    raise KwireError(f"the input is not {next(known.what for known in FORMS if known.name == form)}")


def _text(given: bytes) -> str:
    """The input as text, also as PowerShell writes it; empty when it is none."""
    utf16 = given[:2] in (b"\xff\xfe", b"\xfe\xff")
    if len(given) > MAX_TEXT or (b"\0" in given and not utf16):
        return ""
    try:
        return given.decode("utf-16" if utf16 else "utf-8-sig")
    except UnicodeDecodeError:
        return ""


def _complain(text: str) -> None:
    tokens = _tokens(text)
    if tokens and len(tokens) == 1 and len(tokens[0]) >= 8:
        raise KwireError(f"hex digits come in pairs, and the input has {len(tokens[0]):,} of them")
