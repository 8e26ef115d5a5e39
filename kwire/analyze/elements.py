"""Which parts of an exchange succeeded and which failed: an error belongs to the topic, partition or group whose
element holds it; everything else in the request succeeded."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kwire.analyze.failures import failures_of

if TYPE_CHECKING:
    from kwire.session.exchange import Exchange

ALL = ""  # stands for everything that was asked


class ElementOutcomes(NamedTuple):
    """failed: error codes by the element that holds them, ALL where none does or where none went well; asked: the
    elements that the request is about, as "orders" and "orders-0", none where it names none."""

    failed: dict[str, int]
    asked: frozenset[str]

    @property
    def fine(self) -> bool:
        """Whether any of it went well."""
        return ALL not in self.failed and not (self.asked and self.asked <= self.failed.keys())

    def went_well(self, element: str) -> bool:
        """Whether an element that failed before was asked for and went well; ALL where any did."""
        if element in self.failed:
            return False
        return element == ALL or not self.asked or bool({element, element.rpartition("-")[0]} & self.asked)


def outcome_of(exchange: Exchange, usual: frozenset[int] = frozenset()) -> ElementOutcomes:
    """The outcomes of an exchange whose answer can be read. usual: error codes that are no failures."""
    failed: dict[str, int] = {}
    for one in failures_of(exchange):
        if one.code not in usual:
            failed.setdefault(one.subject, one.code)
    asked = asked_in(exchange)
    if not failed and exchange.error and exchange.error not in usual:
        failed[ALL] = exchange.error  # of a body that cannot be decoded
    if failed and asked and asked <= failed.keys() and len(codes := set(failed.values())) == 1:
        failed = {ALL: codes.pop()}
    return ElementOutcomes(failed, asked)


def asked_in(exchange: Exchange) -> frozenset[str]:
    """The elements that a request is about: partitions where it names them, else topics, else groups."""
    about = exchange.about
    named = [
        one for topic, parts in about.topics.items() for one in ([f"{topic}-{part}" for part in parts] or [topic])
    ]  # fmt: skip
    return frozenset(named or about.groups)
