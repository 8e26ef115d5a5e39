"""Markup in pieces. Plain text becomes inert wherever it is put into markup: escaped, and its controls spelled."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from kwire.wire.visible import clean

VOID = frozenset({"br", "hr", "img", "input", "link", "meta", "wbr"})
Attribute = str | int | float | bool | None


class Markup(str):
    """Text that is markup already. Only this module and constants of the code should make it."""

    __slots__ = ()


Content = str | int | float | None


EMPTY, LINE = Markup(""), Markup("\n")


def markup(content: Content) -> Markup:
    """Markup stays; text and numbers become inert; None is nothing."""
    if isinstance(content, Markup):
        return content
    return Markup("" if content is None else escape(clean(str(content))))


def joined(parts: Iterable[Content], between: Markup = EMPTY) -> Markup:
    """Parts in a row."""
    return Markup(markup(between).join(map(markup, parts)))


def element(tag: str, *content: Content, **attributes: Attribute) -> Markup:
    """An element. class_ and for_ stand for class and for, data_x for data-x; None and False leave an attribute out,
    True gives it no value."""
    given = "".join(_attribute(name, value) for name, value in attributes.items())
    if tag in VOID:
        return Markup(f"<{tag}{given}>")
    return Markup(f"<{tag}{given}>{''.join(map(markup, content))}</{tag}>")


def _attribute(name: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    shown = name.rstrip("_").replace("_", "-")
    return f" {shown}" if value is True else f' {shown}="{escape(clean(str(value)))}"'
