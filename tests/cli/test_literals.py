"""Every form that people paste gives the bytes of the same frame; what is ambiguous is read as the docstring says."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kwire.cli.literals import NAMES, to_bytes
from kwire.errors import KwireError

FRAMES = Path(__file__).parents[2] / "fixtures" / "frames"
FRAME = (FRAMES / "ApiVersionsRequest.v0.bin").read_bytes()
HIGH = (FRAMES / "JoinGroupResponse.v9.bin").read_bytes()  # holds bytes above 127


def _each(form: str, separator: str = ", ") -> Callable[[bytes], str]:
    return lambda data: separator.join(form.format(byte) for byte in data)


def _signed(data: bytes) -> str:
    return ", ".join(str(byte - 256 if byte > 127 else byte) for byte in data)


def _rows(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def _shown(data: bytes) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\*/' else "." for byte in data)


def _wireshark_c(data: bytes) -> str:
    lines = (_each("0x{:02x}")(row) + ", /* " + _shown(row) + " */" for row in _rows(data, 8))
    return (
        f"/* Frame ({len(data)} bytes) */\nstatic const unsigned char pkt1[{len(data)}] = {{\n"
        + "\n".join(lines)
        + "\n};"
    )


def _escaped_lines(data: bytes) -> str:
    return " \\\n".join('"' + _each("\\x{:02x}", "")(row) + '"' for row in _rows(data, 16))


HEX: dict[str, Callable[[bytes], str]] = {
    "bare": bytes.hex,
    "upper case": lambda data: data.hex().upper(),
    "pairs": lambda data: data.hex(" "),
    "colons": lambda data: data.hex(":"),
    "hyphens": lambda data: data.hex("-").upper(),
    "words": lambda data: data.hex(" ", -2),
    "uneven groups": lambda data: f"{data[:4].hex()} {data[4:6].hex()} {data[6:].hex()}",
    "0x in front": lambda data: "0x" + data.hex(),
    "0x each": _each("0x{:02x}", " "),
    "0x and commas": _each("0x{:02X}", ","),
    "commas": _each("{:02x}", ","),
    "lines of xxd -p": lambda data: "\n".join(row.hex() for row in _rows(data, 30)) + "\n",
    "od -An": lambda data: "\n".join(" " + row.hex(" ") for row in _rows(data, 16)),
    "quotes": lambda data: f'"{data.hex()}"',
    "bytes.fromhex": lambda data: f"'{data.hex()}'",
    "SQL": lambda data: f"X'{data.hex()}'",
    "PostgreSQL": lambda data: "\\x" + data.hex(),
    "Node": lambda data: f"<Buffer {data.hex(' ')}>",
}
ESCAPES: dict[str, Callable[[bytes], str]] = {
    "Python": repr,
    "Python, named": lambda data: f"frame = {data!r}",
    "Python bytearray": lambda data: repr(bytearray(data)),
    "Python, several": lambda data: f"({data[:9]!r}\n {data[9:]!r})",
    "C": lambda data: 'char x[] = "' + _each("\\x{:02x}", "")(data) + '";',
    "C, octal": lambda data: '"' + _each("\\{:03o}", "")(data) + '"',
    "Wireshark": _escaped_lines,
    "Go": lambda data: '[]byte("' + _each("\\x{:02x}", "")(data) + '")',
    "Rust": lambda data: 'b"' + _each("\\x{:02x}", "")(data) + '"',
    "shell": lambda data: "$'" + _each("\\x{:02x}", "")(data) + "'",
    "bare": _each("\\x{:02x}", ""),
    "bare, in lines": lambda data: "\n".join(_each("\\x{:02x}", "")(row) for row in _rows(data, 7)),
    "JSON": lambda data: json.dumps(data.decode("latin-1")),
}
ARRAYS: dict[str, Callable[[bytes], str]] = {
    "Java": lambda data: "new byte[] {" + _each("(byte) 0x{:02x}")(data) + "};",
    "Java, one cast": lambda data: "byte[] x = {" + _signed(data) + "};",
    "Java, Arrays.toString": lambda data: f"[{_signed(data)}]",
    "Kotlin": lambda data: "byteArrayOf(" + _each("0x{:02x}.toByte()")(data) + ")",
    "Scala": lambda data: f"Array[Byte]({_signed(data)})",
    "C#": lambda data: "var x = new byte[] { " + _each("0x{:02X}")(data) + " };",
    "Go": lambda data: "[]byte{" + _each("0x{:x}")(data) + "}",
    "Go, sized": lambda data: f"x := [{len(data)}]byte{{" + _each("0x{:x}")(data) + ",\n}",
    "Go, printed": lambda data: "[" + _each("{}", " ")(data) + "]",
    "Go, printed as hex": lambda data: f"[{data.hex(' ')}]",
    "C": lambda data: f"unsigned char x[{len(data)}] = {{" + _each("0x{:02x}")(data) + "};",
    "C of Wireshark": _wireshark_c,
    "xxd -i": lambda data: (
        "unsigned char x[] = {\n  " + _each("0x{:02x}")(data) + f"\n}};\nunsigned int n = {len(data)};"
    ),
    "Rust": lambda data: f"let x: [u8; {len(data)}] = [" + _each("0x{:02x}")(data) + "];",
    "Rust, suffixes": lambda data: "vec![" + _each("{}_u8")(data) + "]",
    "JavaScript": lambda data: "new Uint8Array([" + _each("{}")(data) + "])",
    "JavaScript, printed": lambda data: f"Uint8Array({len(data)}) [\n  " + _each("{}")(data) + "\n]",
    "Python list": lambda data: f"bytes({list(data)})",
    "JSON": lambda data: json.dumps(list(data), indent=2),
    "JSON of Node": lambda data: json.dumps({"type": "Buffer", "data": list(data)}),
    "Erlang": lambda data: "<<" + _each("{}", ",")(data) + ">>",
    "bare numbers": _each("{}"),
}
BASE64: dict[str, Callable[[bytes], str]] = {
    "base64": lambda data: base64.b64encode(data).decode(),
    "no padding": lambda data: base64.b64encode(data).decode().rstrip("="),
    "base64url": lambda data: base64.urlsafe_b64encode(data).decode(),
    "in lines": lambda data: base64.encodebytes(data).decode(),
    "quotes": lambda data: f'"{base64.b64encode(data).decode()}"',
}
CASES = [
    pytest.param(form, write, id=f"{form}: {name}")
    for form, table in (("hex", HEX), ("escapes", ESCAPES), ("array", ARRAYS), ("base64", BASE64))
    for name, write in table.items()
]


@pytest.mark.parametrize("data", [FRAME, HIGH], ids=["low bytes", "high bytes"])
@pytest.mark.parametrize(("form", "write"), CASES)
def test_a_literal_gives_the_frame(form: str, write: Callable[[bytes], str], data: bytes) -> None:
    assert to_bytes(write(data).encode()) == (data, form)
    assert to_bytes(write(data).encode(), form)[0] == data


@pytest.mark.parametrize("path", sorted(FRAMES.glob("*.bin")), ids=lambda path: path.stem)
def test_a_real_frame_is_taken_as_it_is(path: Path) -> None:
    assert to_bytes(path.read_bytes()) == (path.read_bytes(), "raw")


@pytest.mark.parametrize(
    ("text", "data", "form"),
    [
        ("10, 20, 30", b"\x10\x20\x30", "hex"),
        ("[10, 20, 30]", b"\x0a\x14\x1e", "array"),
        ("0, 0, 0, 14", b"\x00\x00\x00\x0e", "array"),
        ("00, 00, 00, 14", b"\x00\x00\x00\x14", "hex"),
        ("0x0, 0x1b, 5", b"\x00\x1b\x05", "array"),
        ("-1, -128, 127", b"\xff\x80\x7f", "array"),
        ("[00 1b]", b"\x00\x1b", "array"),
        ("deadbeef", b"\xde\xad\xbe\xef", "hex"),
        ("deadbeefz9", base64.b64decode("deadbeefz9=="), "base64"),
        ("deadbeefzz", b"deadbeefzz", "raw"),
        ("0000001b 00 12 00 00", b"\x00\x00\x00\x1b\x00\x12\x00\x00", "hex"),
        ("0000 001b 0012 0000", b"\x00\x00\x00\x1b\x00\x12\x00\x00", "hex"),
        ("0000   00 00 00 1b", b"\x00\x00\x00\x1b", "dump"),
        (r"'\x00\x11ab'", b"\x00\x11ab", "escapes"),
        (r"\x00\x11ab cd", b"\x00\x11ab cd", "escapes"),
        (r"\x00 \x01", b"\x00\x01", "escapes"),
        ("b'GET'", b"GET", "escapes"),
        ("[1]byte{5}", b"\x05", "array"),
        ("byte[] b = {byte(0xff), 1}", b"\xff\x01", "array"),
        ("[300, 1]", b"[300, 1]", "raw"),
        ("ruok", b"ruok", "raw"),
        ("hello there", b"hello there", "raw"),
        ("HelloThere", b"HelloThere", "raw"),
        ("topic-orders_Eu", b"topic-orders_Eu", "raw"),
        ("as step (1) says", b"as step (1) says", "raw"),
        ("bytes((0, 0, 0, 1))", b"\x00\x00\x00\x01", "array"),
        ("got [0, 0, 0, 14] at " + 20 * "some ", b"\x00\x00\x00\x0e", "array"),
        ("of rows[0] " + 100 * "much ", b"of rows[0] " + 100 * b"much ", "raw"),
        ("what \\x00 means " + 100 * "much ", b"what \\x00 means " + 100 * b"much ", "raw"),
        ("print('\\x00') # " + 100 * "much ", b"print('\\x00') # " + 100 * b"much ", "raw"),
        ("GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", "raw"),
        ("{}", b"{}", "raw"),
        ("", b"", "raw"),
    ],
)
def test_what_could_be_several_forms(text: str, data: bytes, form: str) -> None:
    assert to_bytes(text.encode()) == (data, form)


@pytest.mark.parametrize(
    "given",
    [b"\xef\xbb\xbf0000001b", "0000001b".encode("utf-16"), "\ufeff0000001b".encode("utf-16-be"), b"0000001b\r\n"],
    ids=["UTF-8 mark", "UTF-16", "UTF-16 big-endian", "CRLF"],
)
def test_text_of_windows(given: bytes) -> None:
    assert to_bytes(given) == (b"\x00\x00\x00\x1b", "hex")


def test_bytes_with_a_zero_are_no_text() -> None:
    assert to_bytes(b"00 11\x00") == (b"00 11\x00", "raw")


@pytest.mark.parametrize(
    ("text", "form", "complaint"),
    [
        ("0000001", "hex", "the input is not hex digits"),
        ("00zz", "hex", "the input is not hex digits"),
        ("{}", "dump", "the input is not xxd, hexdump, od, Wireshark or tcpdump -x text"),
        ("00", "escapes", r"the input is not \x literals of C, Python, Go or a shell"),
        ("[1, 2", "array", "the input is not a byte array of Java, Go, C, Rust, JavaScript or Python"),
        ("!", "base64", "the input is not base64"),
        ("0000001b0", "auto", "hex digits come in pairs, and the input has 9 of them"),
        ("0000001b0", "hex", "hex digits come in pairs, and the input has 9 of them"),
    ],
)
def test_text_that_is_not_of_its_form_is_named(text: str, form: str, complaint: str) -> None:
    with pytest.raises(KwireError) as caught:
        to_bytes(text.encode(), form)
    assert str(caught.value) == complaint


def test_raw_is_raw_whatever_it_looks_like() -> None:
    assert to_bytes(b"0000001b", "raw") == (b"0000001b", "raw")


def test_the_names_of_the_forms() -> None:
    assert NAMES == ("auto", "raw", "dump", "hex", "escapes", "array", "base64")


@pytest.mark.parametrize("path", ["README.md", "pyproject.toml", "kwire/cli/main.py", "kwire/wire/varint.py"])
def test_text_that_mentions_bytes_is_no_dump(path: str) -> None:
    raw = (Path(__file__).parents[2] / path).read_bytes()
    assert to_bytes(raw) == (raw, "raw")


def test_a_text_is_told_from_bytes_and_counted_whole(kwire: Any) -> None:
    ran = kwire("decode", "README.md")
    size = (Path(__file__).parents[2] / "README.md").stat().st_size
    head, *advice = ran.text.splitlines()
    assert (head, ran.status) == (f"not Kafka: text · {size:,} bytes", 3)
    assert "  No dump of bytes is found in it" in advice[0]
    assert "--input" in " ".join(advice)
