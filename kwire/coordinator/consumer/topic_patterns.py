"""SubscribedTopicRegex: RE2 patterns over topic names, matched in time that grows with pattern times name.

The pattern comes from a stranger, so Python's backtracking `re` is no choice: `(a|a)*b` would hang it. A pattern is
read into a small automaton (Thompson's construction) whose live states are stepped together, letter by letter; its
size and the steps of a whole resolution are bounded. RE2's syntax is read as far as topic names (letters, digits,
`.`, `_`, `-`) can tell: literals, classes with \\d \\w \\s and [:alpha:], groups, |, * + ? {n,m} with or without a
second ?, ^ $ \\A \\z, (?i) and (?s), \\Q..\\E. What RE2 refuses (look-around, back references, possessive repeats) is
refused here; so is \\b, \\p{..} and more than 1,000 states, which RE2 takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

LONGEST: Final = 2_048  # letters of a pattern
MOST_STATES: Final = 1_000
MOST_PIECES: Final = 20_000  # pieces laid out, of which empty ones make no state
BUDGET: Final = 1_000_000  # steps for all names together, about a fifth of a second's work
NODE: Final = 2  # steps that a node costs which reads a letter, beside one a letter
MOST_KEPT: Final = 20_000  # places of a pattern from which a letter's way is kept
DEEPEST: Final = 50  # groups in groups

Test = Callable[[str], bool]

_CLASSES: Final[dict[str, Test]] = {
    "d": lambda letter: letter in "0123456789",
    "w": lambda letter: letter.isascii() and (letter.isalnum() or letter == "_"),
    "s": lambda letter: letter in " \t\n\r\f",
}
_NAMED: Final[dict[str, Test]] = {
    "alpha": lambda letter: letter.isascii() and letter.isalpha(),
    "digit": _CLASSES["d"],
    "alnum": lambda letter: letter.isascii() and letter.isalnum(),
    "upper": lambda letter: letter.isascii() and letter.isupper(),
    "lower": lambda letter: letter.isascii() and letter.islower(),
    "punct": lambda letter: letter.isascii() and letter.isprintable() and not letter.isalnum() and letter != " ",
    "word": _CLASSES["w"],
    "xdigit": lambda letter: letter in "0123456789abcdefABCDEF",
    "space": lambda letter: letter in " \t\n\r\f\v",
}
_CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}


class BadPattern(ValueError):
    """No pattern that RE2 takes, or one beyond the bounds; says why and where."""


@dataclass(slots=True)
class _Node:
    """kind: letter (test), split, start, end, accept. out: the next nodes."""

    kind: str
    out: list[int] = field(default_factory=list)
    test: Test | None = None


class TopicPattern:
    """A compiled pattern. Raises BadPattern.

    A set of nodes is a number, a bit for each: bits are joined and masked in one step however many there are.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._nodes, self._first = _Reader(text).read()
        self._moves: dict[tuple[int, str, bool], int] = {}
        self._reached: dict[tuple[bool, bool], list[int]] = {}
        self._reading: dict[str, int] = {}
        self._accept = 1  # _Reader lays the accepting node out first

    def matching(self, names: Iterable[str], budget: int = BUDGET) -> tuple[frozenset[str], int]:
        """The names that the pattern matches whole, and how much of the budget of steps is left: below 0 if it did not
        suffice for all of them."""
        found: set[str] = set()
        for name in names if budget >= 0 else ():
            matches, budget = self._matches(name, budget)
            if budget < 0:
                break
            if matches:
                found.add(name)
        return frozenset(found), budget

    def _matches(self, name: str, budget: int) -> tuple[bool, int]:
        """Whether it matches, and how much of the budget is left. Where a letter leads from some nodes is found once:
        the names of a cluster are much alike."""
        live, end, moves = self._from(True, not name)[self._first], len(name), self._moves
        for position, letter in enumerate(name, 1):
            place = live, letter, position == end
            onward = moves.get(place)
            if onward is None:
                if letter not in self._reading:
                    self._reading[letter] = self._readers(letter)
                    budget -= len(self._nodes)
                reading = live & self._reading[letter]
                budget -= NODE * reading.bit_count()
                if len(moves) >= MOST_KEPT:
                    moves.clear()
                onward = moves[place] = self._onward(reading, position == end)
            live = onward
            budget -= 1
            if not live or budget < 0:
                break
        return bool(live & self._accept), budget

    def _readers(self, letter: str) -> int:
        """The nodes that read this letter. Copies of a piece share its test, which is asked once."""
        asked: dict[Test, bool] = {}
        bits = 0
        for number, node in enumerate(self._nodes):
            test = node.test
            if test is None:
                continue
            if test not in asked:
                asked[test] = test(letter)
            bits |= asked[test] << number
        return bits

    def _onward(self, reading: int, last: bool) -> int:
        """Where these nodes lead when each has read its letter."""
        onward, nodes, reached = 0, self._nodes, self._from(False, last)
        while reading:
            lowest = reading & -reading
            onward |= reached[nodes[lowest.bit_length() - 1].out[0]]
            reading ^= lowest
        return onward

    def _from(self, first: bool, last: bool) -> list[int]:
        """From each node, all that can be reached without reading a letter: before the first one, behind the last.

        A node leads to those laid out before it, but for the loops of * and +: the rounds that these need are as many
        as the loops within loops."""
        if (first, last) not in self._reached:
            bits, changed = [1 << number for number in range(len(self._nodes))], True
            leading = [
                (number, node.out)
                for number, node in enumerate(self._nodes)
                if node.kind == "split" or (node.kind == "start" and first) or (node.kind == "end" and last)
            ]
            while changed:
                changed = False
                for number, out in leading:
                    more = bits[number]
                    for next_one in out:
                        more |= bits[next_one]
                    if more != bits[number]:
                        bits[number], changed = more, True
            self._reached[first, last] = bits
        return self._reached[first, last]


# A piece of the pattern, still a tree, so that {n,m} can lay it out several times.
_Tree = tuple[str, "list[_Tree]", Test | None, int, int]  # kind, parts, test, least, most (-1: no end)


def _letter(test: Test) -> _Tree:
    return ("letter", [], test, 0, 0)


class _Reader:
    """Recursive descent over the text, then a layout of the tree from its end to its beginning."""

    def __init__(self, text: str) -> None:
        if len(text) > LONGEST:
            raise BadPattern(f"a pattern of {len(text):,} letters, {LONGEST:,} may be")
        self._text, self._at, self._depth = text, 0, 0
        self._fold = False
        self._pieces = 0
        self._nodes: list[_Node] = []

    def read(self) -> tuple[list[_Node], int]:
        tree = self._alternatives()
        if self._at < len(self._text):
            raise self._bad("a ) without its (")
        return self._nodes, self._lay(tree, self._node(_Node("accept")))

    def _bad(self, what: str) -> BadPattern:
        return BadPattern(f"{what} at letter {self._at}")

    def _peek(self, text: str) -> bool:
        return self._text.startswith(text, self._at)

    def _take(self, text: str) -> bool:
        if self._peek(text):
            self._at += len(text)
            return True
        return False

    def _next(self) -> str:
        if self._at >= len(self._text):
            raise self._bad("the pattern ends too early")
        self._at += 1
        return self._text[self._at - 1]

    def _alternatives(self) -> _Tree:
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._bad(f"more than {DEEPEST} groups in groups")
        fold = self._fold
        choices = [self._sequence()]
        while self._take("|"):
            choices.append(self._sequence())
        self._fold = fold  # (?i) holds to the end of its group
        self._depth -= 1
        return ("choice", choices, None, 0, 0)

    def _sequence(self) -> _Tree:
        parts: list[_Tree] = []
        while self._at < len(self._text) and not self._peek("|") and not self._peek(")"):
            parts.extend(self._repeated())
        return ("sequence", parts, None, 0, 0)

    def _repeated(self) -> list[_Tree]:
        if self._take("\\Q"):
            end = self._text.find("\\E", self._at)
            quoted = self._text[self._at : end if end >= 0 else len(self._text)]
            self._at += len(quoted) + (2 if end >= 0 else 0)
            return [self._literal(letter) for letter in quoted]
        if self._peek("*") or self._peek("+") or self._peek("?"):
            raise self._bad("nothing to repeat")
        piece = self._piece()
        counts = self._counts()
        if counts is None:
            return [piece]
        self._take("?")  # lazy or not: the same names match
        if self._peek("*") or self._peek("+") or self._peek("?") or self._counts() is not None:
            raise self._bad("a repeat of a repeat")
        return [("repeat", [piece], None, *counts)]

    def _counts(self) -> tuple[int, int] | None:
        if self._take("*"):
            return 0, -1
        if self._take("+"):
            return 1, -1
        if self._take("?"):
            return 0, 1
        end = self._text.find("}", self._at)
        if not self._peek("{") or end < 0:
            return None
        least, comma, most = self._text[self._at + 1 : end].partition(",")
        if not _is_number(least) or (most and not _is_number(most)):
            return None  # a brace like any letter, as RE2 has it
        low, high = int(least), (int(most) if most else -1) if comma else int(least)
        if max(low, high) > MOST_STATES or (0 <= high < low):
            raise self._bad(f"a repeat of {{{self._text[self._at + 1 : end]}}}")
        self._at = end + 1
        return low, high

    def _piece(self) -> _Tree:
        letter = self._next()
        match letter:
            case "(":
                return self._group()
            case "[":
                return _letter(self._folded(self._class()))
            case ".":
                return _letter(lambda each: each != "\n")
            case "^":
                return ("start", [], None, 0, 0)
            case "$":
                return ("end", [], None, 0, 0)
            case "\\":
                return self._escape()
            case _:
                return self._literal(letter)

    def _literal(self, letter: str) -> _Tree:
        return _letter(self._folded(letter.__eq__))

    def _folded(self, test: Test) -> Test:
        return (lambda each: test(each.lower()) or test(each.upper())) if self._fold else test

    def _group(self) -> _Tree:
        fold = self._fold
        if self._take("?"):
            if self._take("P<") or (self._peek("<") and not self._peek("<=") and not self._peek("<!")):
                name, close, _ = self._text[self._at :].lstrip("<").partition(">")
                if not close or not name.isidentifier():
                    raise self._bad("a group's name")
                self._at = self._text.index(">", self._at) + 1
            elif (rest := self._flags()) is not None:
                return rest
        tree = self._alternatives()
        if not self._take(")"):
            raise self._bad("a ( without its )")
        self._fold = fold
        return tree

    def _flags(self) -> _Tree | None:
        """(?flags) is an empty piece; after (?flags: the group follows (None)."""
        on = True
        while (letter := self._next()) not in ":)":
            if letter == "-" and on:
                on = False
            elif letter == "i":
                self._fold = on
            elif letter not in "msU":
                raise self._bad("a group that RE2 does not know")
        return ("sequence", [], None, 0, 0) if letter == ")" else None

    def _escape(self) -> _Tree:
        letter = self._next()
        if letter == "A":
            return ("start", [], None, 0, 0)
        if letter == "z":
            return ("end", [], None, 0, 0)
        return _letter(self._folded(self._escaped(letter)))

    def _escaped(self, letter: str) -> Test:
        if letter.lower() in _CLASSES:
            test = _CLASSES[letter.lower()]
            return test if letter.islower() else lambda each: not test(each)
        return self._escaped_letter(letter).__eq__

    def _escaped_letter(self, letter: str) -> str:
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if letter == "x":
            digits = self._text[self._at : self._at + 2]
            if len(digits) == 2 and all(_NAMED["xdigit"](each) for each in digits):
                self._at += 2
                return chr(int(digits, 16))
            raise self._bad("\\x without two digits")
        if letter.isascii() and letter.isalnum():
            raise self._bad(f"\\{letter}, which is not known")
        return letter

    def _class(self) -> Test:
        negated = self._take("^")
        tests: list[Test] = []
        while not self._peek("]") or not tests:
            tests.append(self._class_part())
        self._at += 1
        return lambda each: any(test(each) for test in tests) is not negated

    def _class_part(self) -> Test:
        if self._take("[:"):
            name, close, _ = self._text[self._at :].partition(":]")
            test = _NAMED.get(name.removeprefix("^"))
            if not close or test is None:
                raise self._bad("a class of that name")
            self._at += len(name) + 2
            return (lambda each: not test(each)) if name.startswith("^") else test
        low = self._next()
        if low == "\\":
            low = self._next()
            if low.lower() in _CLASSES:
                return self._escaped(low)
            low = self._escaped_letter(low)
        if not self._peek("-") or self._peek("-]"):
            return low.__eq__
        self._at += 1
        high = self._next()
        if high == "\\":
            high = self._escaped_letter(self._next())
        if high < low:
            raise self._bad(f"a range from {low} down to {high}")
        return lambda each: low <= each <= high

    def _node(self, node: _Node) -> int:
        if len(self._nodes) >= MOST_STATES:
            raise BadPattern(f"a pattern of more than {MOST_STATES:,} states")
        self._nodes.append(node)
        return len(self._nodes) - 1

    def _lay(self, tree: _Tree, after: int) -> int:
        """Lays the tree out before node `after`; the node to enter it by."""
        self._pieces += 1
        if self._pieces > MOST_PIECES:
            raise BadPattern(f"a pattern of more than {MOST_PIECES:,} pieces")
        kind, parts, test, least, most = tree
        match kind:
            case "choice":
                if len(parts) == 1:
                    return self._lay(parts[0], after)
                return self._node(_Node("split", [self._lay(part, after) for part in parts]))
            case "sequence":
                for part in reversed(parts):
                    after = self._lay(part, after)
                return after
            case "repeat":
                return self._lay_repeat(parts[0], after, least, most)
            case _:
                return self._node(_Node(kind, [after], test))

    def _lay_repeat(self, part: _Tree, after: int, least: int, most: int) -> int:
        if most < 0:
            loop = self._node(_Node("split", [after]))
            self._nodes[loop].out.append(self._lay(part, loop))
            after = loop
        for _ in range(most - least):
            after = self._node(_Node("split", [after, self._lay(part, after)]))
        for _ in range(least):
            after = self._lay(part, after)
        return after


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 4
