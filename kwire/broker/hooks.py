"""Hooks in Python: what they give is checked against the schema, and what goes wrong names the hook's line.

A hook runs in the broker's thread, far from the test that set it. So its failure ends the connection that it was asked
about, and is kept for Broker.check(), by which the test fails too.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kwire.broker.context import Body, Request
from kwire.codec.encode_checks import no_such_field
from kwire.codec.library import builtin_library
from kwire.errors import EncodeError, HookFailed

Hook = Callable[[Request], "Body | str | None"]


@dataclass(slots=True, eq=False)
class Control:
    """A hook in its place; remove() takes it away, and so does leaving a with block."""

    api: str
    hook: Hook
    _places: list[Control]  # of all hooks

    def remove(self) -> None:
        if self in self._places:
            self._places.remove(self)

    def __enter__(self) -> Control:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def ask(self, request: Request) -> Body | str | None:
        """What the hook says of a request. Raises HookFailed."""
        try:
            said: object = self.hook(request)
        except Exception as error:
            raise self.failed(f"raised {type(error).__name__}: {error}", error) from error
        if isinstance(said, dict):
            try:
                _check(request, said)
            except EncodeError as error:
                raise self.failed(f"gave no answer: {error}") from error
            return said
        if said is None or isinstance(said, str):
            return said
        raise self.failed(f"gave a {type(said).__name__}; None, a body or a rule's actions as text are answers")

    def failed(self, why: str, error: Exception | None = None) -> HookFailed:
        """error: what the hook itself raised."""
        return HookFailed(f"the hook on {self.api} at {_line(self.hook, error)} {why}")


def _line(hook: Hook, error: Exception | None) -> str:
    """The hook's line that raised, or where it begins."""
    code = getattr(hook, "__code__", None)
    if error is not None:
        frames = traceback.extract_tb(error.__traceback__)[1:]
        own = [frame for frame in frames if code is not None and frame.filename == code.co_filename]
        if own or frames:
            frame = (own or frames)[-1]
            return f"{_short(frame.filename)}:{frame.lineno}"
    return repr(hook) if code is None else f"{_short(code.co_filename)}:{code.co_firstlineno}"


def _short(filename: str) -> str:
    path = Path(filename)
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _check(request: Request, body: Body) -> None:
    """Whether the body can be the answer. Fields that only other versions have are left out. Raises EncodeError."""
    codec = builtin_library().codec(f"{request.api}Response", request.version)
    paths = {path for path, _ in codec.plan.message.walk()}
    for path, siblings in _named(body, ""):
        if path not in paths:
            known = [each.rpartition(".")[2] for each in paths if each.rpartition(".")[0] == siblings]
            raise EncodeError(codec.plan.title, path, no_such_field(codec.plan, path, sorted(known)))
    codec.encode_fitted(body)


def _named(body: Any, path: str) -> Iterator[tuple[str, str]]:
    """The paths of all fields of a body, each with the path of the struct around it."""
    for name, value in body.items() if isinstance(body, dict) else ():
        here = f"{path}.{name}" if path else str(name)
        if name != "_tagged":
            yield here, path
            for element in value if isinstance(value, list) else [value]:
                yield from _named(element, here)
