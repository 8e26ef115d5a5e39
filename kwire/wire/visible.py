"""Text from the wire, made safe to show: controls are spelled, and no spreadsheet takes it for a formula."""

from __future__ import annotations

FORMULAS = "=+-@＝＋－＠"  # what spreadsheets read as the beginning of one
SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def clean(text: str) -> str:
    """Text from the wire, made safe to show: controls, escapes, bidirectional marks and the like are spelled."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _spelled(char) for char in text)


def cell(text: str) -> str:
    """The same for CSV: what a spreadsheet would take for a formula stands behind an apostrophe (as OWASP advises)."""
    shown = clean(text)
    return f"'{shown}" if shown.startswith(tuple(FORMULAS)) else shown


def _spelled(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is no UTF-8, kept by surrogateescape
        return f"\\x{code - 0xDC00:02x}"
    return SHORT.get(char) or (
        f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"
    )
