"""Writes the Python that turns a message's bytes into JSON text, without values in between.

The code is that of decode_code.py but for what becomes of a value: text as json.dumps writes it. uuids come in Kafka's
22 characters, bytes as base64.
"""

from __future__ import annotations

from binascii import b2a_base64
from json.encoder import encode_basestring_ascii
from typing import Any

from kwire.codec.decode_code import DecodeWriter
from kwire.codec.plan import Slot, StructPlan
from kwire.wire import uuids


class JsonWriter(DecodeWriter):
    """Writes json(b, p) -> (text, position)."""

    null = "'null'"

    def write(self, plan: StructPlan) -> JsonWriter:
        self.scope |= {"q": encode_basestring_ascii, "b64": _base64, "u": _uuid, "truth": ("false", "true")}
        self.scope |= {"number": _number, "tagged_text": _tagged_text}
        super().write(plan)
        return self

    def fixed(self, slot: Slot, value: str) -> str:
        form = {"uuid": "u({})", "bool": "truth[{}]", "float64": "number({})"}.get(slot.type)
        return form.format(value) if form else value

    def leaf(self, slot: Slot) -> str:
        return f"q(b[p:e].decode({self.utf8}))" if slot.type == "string" else "b64(b[p:e])"

    def item(self, slot: Slot, value: str) -> str:
        return f'"{slot.name}": {{{value}}}'

    def begun(self, items: list[str]) -> str:
        return "f'" + ", ".join(items) + "'"

    def made(self, struct: str) -> str:
        if struct.startswith("f'"):
            return "f'{{" + struct[2:-1] + "}}'"
        return f"'{{' + {struct}.removeprefix(', ') + '}}'"

    def tagged(self, out: str, slot: Slot, value: str) -> str:
        return f"{out}x[{slot.name!r}] = {value}"  # one that comes twice is overwritten, as in decoding

    def unknowns(self, out: str) -> str:
        return f"{out}x"

    def begin_tags(self, out: str) -> None:
        self.put(f"{out}x = {{}}")

    def end_tags(self, out: str) -> None:
        self.put(f"{out} += tagged_text({out}x)")

    def listed(self, slot: Slot, elements: str) -> str:
        if slot.struct or slot.type in ("string", "bytes", "records"):
            return f"'[' + ', '.join({elements}) + ']'"
        each = {"uuid": "[u(x.bytes) for x in {}]", "bool": "[truth[x] for x in {}]"}.get(slot.type, "map(str, {})")
        return f"'[' + ', '.join({each.format(elements)}) + ']'"


def _base64(data: bytes) -> str:
    return '"' + b2a_base64(data, newline=False).decode() + '"'


def _uuid(data: bytes) -> str:
    return f'"{uuids.text_of(data)}"'


def _number(value: float) -> str:
    import json

    return json.dumps(value)


def _tagged_text(found: dict[str, Any]) -> str:
    if "_tagged" in found:
        found["_tagged"] = "{" + ", ".join(f'"{tag}": {_base64(raw)}' for tag, raw in found["_tagged"].items()) + "}"
    return "".join(f', "{name}": {value}' for name, value in found.items())
