"""Bytes to plain values and back, as fast as pure Python gets: the plan compiled to Python functions.

The strategy: one function a message and version, everything inlined; adjacent fields of fixed size are joined into one
struct call; nested arrays become nested loops over local variables. The code checks little. A slice beyond the end is
silent, but every read after it fails and a message must end exactly where the bytes do; so bad bytes always end in an
exception, whatever kind, and then annotate.py, which is slow and exact, says what is wrong. Writing goes the same way:
the code takes a complete, well-typed message, and on any exception encode_checks.py finds the path and the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kwire.codec import annotate, encode_checks
from kwire.codec.code import compile_code
from kwire.codec.decode_code import DecodeWriter
from kwire.codec.encode_code import EncodeWriter
from kwire.codec.json_code import JsonWriter
from kwire.codec.plan import Plan

Message = dict[str, Any]
Decoder = Callable[[bytes, int], tuple[Message, int]]
Encoder = Callable[[Message], bytes]
JsonReader = Callable[[bytes, int], tuple[str, int]]


class Codec:
    """The compiled reader and writer of a plan, each made when it is first used.

    Text that is not UTF-8 is kept by surrogate escapes; only messages that hold such text take the slower code for it.
    """

    __slots__ = ("_decode", "_encode", "_escaping_decode", "_escaping_encode", "_fitting", "_json", "plan")

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._decode: Decoder | None = None
        self._encode: Encoder | None = None
        self._escaping_decode: Decoder | None = None
        self._json: JsonReader | None = None
        self._escaping_encode: Encoder | None = None
        self._fitting: Encoder | None = None

    def decode(self, data: bytes | bytearray | memoryview) -> Message:
        """The message; the whole of data must be used. Raises DecodeError."""
        raw = data if type(data) is bytes else bytes(data)
        try:
            message, pos = (self._decode or self._compile_decode())(raw, 0)
        except Exception as error:
            message, pos = self._decode_escaped(raw, 0, error)
        if pos != len(raw):
            raise annotate.decode_error(self.plan, raw)
        return message

    def decode_at(self, data: bytes, pos: int) -> tuple[Message, int]:
        """The message that begins at pos, and where it ends. Raises DecodeError, with an offset in data."""
        try:
            message, end = (self._decode or self._compile_decode())(data, pos)
        except Exception as error:
            message, end = self._decode_escaped(data, pos, error)
        if end > len(data):
            raise annotate.decode_error(self.plan, data, pos)
        return message, end

    def json_at(self, data: bytes, pos: int) -> tuple[str, int]:
        """The message that begins at pos as JSON, and where it ends. Raises DecodeError."""
        try:
            if self._json is None:
                self._json = compile_code(JsonWriter(False).write(self.plan.root), "decode", self.plan)
            text, end = self._json(data, pos)
        except Exception as error:
            text, end = self._json_escaped(data, pos, error)
        if end > len(data):
            raise annotate.decode_error(self.plan, data, pos)
        return text, end

    def _json_escaped(self, data: bytes, pos: int, error: Exception) -> tuple[str, int]:
        if not isinstance(error, UnicodeDecodeError):
            raise annotate.decode_error(self.plan, data, pos) from error
        try:
            made: JsonReader = compile_code(JsonWriter(True).write(self.plan.root), "decode", self.plan)
            return made(data, pos)
        except Exception as again:
            raise annotate.decode_error(self.plan, data, pos) from again

    def encode(self, message: Message) -> bytes:
        """The bytes. Missing fields get their defaults. Raises EncodeError with the path of what does not fit."""
        try:
            return (self._encode or self._compile_encode())(message)
        except Exception:
            # text with escapes, or a struct that lacks a field and has a tagged one: as long as a complete one
            try:
                if self._escaping_encode is None:
                    self._escaping_encode = compile_code(EncodeWriter(True).write(self.plan.root), "encode", self.plan)
                return self._escaping_encode(encode_checks.complete(self.plan, message))
            except Exception as error:
                raise encode_checks.encode_error(self.plan, message) from error

    def encode_fitted(self, message: Message) -> bytes:
        """As encode(), and fields that the version does not have are left out, at every depth. Raises EncodeError."""
        try:
            return (self._fitting or self._compile_fitting())(message)
        except Exception:
            return self.encode(encode_checks.fitted(self.plan.root, message))

    def _decode_escaped(self, data: bytes, pos: int, error: Exception) -> tuple[Message, int]:
        if not isinstance(error, UnicodeDecodeError):
            raise annotate.decode_error(self.plan, data, pos) from error
        try:
            if self._escaping_decode is None:
                self._escaping_decode = compile_code(DecodeWriter(True).write(self.plan.root), "decode", self.plan)
            return self._escaping_decode(data, pos)
        except Exception as again:
            raise annotate.decode_error(self.plan, data, pos) from again

    def _compile_decode(self) -> Decoder:
        made: Decoder = compile_code(DecodeWriter(False).write(self.plan.root), "decode", self.plan)
        self._decode = made
        return made

    def _compile_encode(self) -> Encoder:
        made: Encoder = compile_code(EncodeWriter(False).write(self.plan.root), "encode", self.plan)
        self._encode = made
        return made

    def _compile_fitting(self) -> Encoder:
        made: Encoder = compile_code(EncodeWriter(False, fitting=True).write(self.plan.root), "encode", self.plan)
        self._fitting = made
        return made
