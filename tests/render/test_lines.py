"""Lines: text made safe to show, wrapping, tables."""

from __future__ import annotations

import pytest

from kwire.render.colors import COLORS
from kwire.render.lines import STYLES, Piece, Shortener, clean, joined, paragraph, plain, quoted, table


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("orders-1 über 日本", "orders-1 über 日本"),
        ("a\nb\rc\td", "a\\nb\\rc\\td"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("\x00\x07\x7f\x9b", "\\x00\\x07\\x7f\\x9b"),
        ("\u202egnp\u2066", "\\u202egnp\\u2066"),
        ("a\u200bb\u2028c\ufeff", "a\\u200bb\\u2028c\\ufeff"),
        ("\U000e0041", "\\U000e0041"),
        ("\udc80\udcff", "\\x80\\xff"),
        ("[bold]x[/bold] :smile:", "[bold]x[/bold] :smile:"),
    ],
)
def test_what_could_act_is_spelled(text: str, shown: str) -> None:
    assert clean(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"), [("", '""'), ('say "x"', '"say \\"x\\""'), ("a\\n", '"a\\\\n"'), ("a\n", '"a\\n"')]
)
def test_quotes_tell_what_was_there(text: str, shown: str) -> None:
    assert quoted(text) == shown


def test_plain_drops_styles_and_what_trails() -> None:
    assert plain([("a", "title"), ("  b  ", ""), ("   ", "dim")]) == "a  b"


def test_paragraphs_are_wrapped_and_keep_a_line_between_them() -> None:
    text = "one two three four\n\nfive-six seven"
    assert [plain(line) for line in paragraph(text, 14, "  ")] == [
        "  one two",
        "  three four",
        "",
        "  five-six",
        "  seven",
    ]


def test_a_paragraph_may_hang() -> None:
    lines = paragraph("one two three four", 14, "  area  ", "dim", hang="        ")
    assert lines == [
        [("  area  one", "dim")],
        [("        two", "dim")],
        [("        three", "dim")],
        [("        four", "dim")],
    ]


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (80, ["HeartbeatRequest v3 · 96 bytes · client id me"]),
        (45, ["HeartbeatRequest v3 · 96 bytes · client id me"]),
        (44, ["HeartbeatRequest v3 · 96 bytes", "  client id me"]),
        (20, ["HeartbeatRequest v3", "  96 bytes", "  client id me"]),
        (25, ["HeartbeatRequest v3", "  96 bytes · client id me"]),
    ],
)
def test_parts_are_joined_as_far_as_they_fit(width: int, lines: list[str]) -> None:
    parts = [("HeartbeatRequest v3", "title"), ("96 bytes", "dim"), ("client id me", "dim")]
    assert [plain(line) for line in joined(parts, width)] == lines


ROWS: list[list[Piece]] = [
    [("1", "dim"), ("SHORT", "name"), ("a few words", "")],
    [("27", "dim"), ("A_LONGER_NAME", "name"), ("words that go on for a while and do not fit the line", "")],
]


def test_a_table_wraps_its_last_column() -> None:
    assert [plain(line) for line in table(["key", "name", "meaning"], ROWS, 60, frozenset({0}))] == [
        "key  name           meaning",
        "  1  SHORT          a few words",
        " 27  A_LONGER_NAME  words that go on for a while and do not",
        "                    fit the line",
    ]


def test_a_narrow_table_puts_its_last_column_beneath() -> None:
    assert [plain(line) for line in table(["key", "name", "meaning"], ROWS, 40)] == [
        "key  name",
        "     meaning",
        "1    SHORT",
        "     a few words",
        "27   A_LONGER_NAME",
        "     words that go on for a while and do",
        "     not fit the line",
    ]


def test_a_narrow_table_stays_in_columns_when_all_fits() -> None:
    assert [plain(line) for line in table(["key", "name", "meaning"], ROWS[:1], 30)] == [
        "key  name   meaning",
        "1    SHORT  a few words",
    ]


def test_a_table_without_rows_is_its_head() -> None:
    assert [plain(line) for line in table(["key", "name"], [], 40)] == ["key  name"]


def test_every_style_has_a_color_in_documents_but_names_which_are_as_text_is() -> None:
    assert set(STYLES) - set(COLORS) == {"name"}
    assert set(COLORS) <= set(STYLES)


def test_names_are_cut_in_their_middle_so_that_two_stay_different() -> None:
    short = Shortener().short
    assert short("billing-consumer-1", 11) == "billi…mer-1"
    assert short("billing-consumer-2", 11) == "billi…mer-2"
    assert short("billing-producer-1", 11) == "billi…cer-1"
    assert short("billing-container-1", 11) == "billi…ner-1"
    assert short("billing-customer-1", 11) not in ("billi…mer-1", "billing-customer-1")
    assert short("billing-consumer-1", 11) == "billi…mer-1"
    assert short("cart", 11) == "cart"


def test_a_cut_moves_to_where_names_differ() -> None:
    short = Shortener().short
    assert short("127.0.0.1:38638>127.0.0.1:9092#1", 14) == "127.0.…:9092#1"
    assert short("127.0.0.1:45990>127.0.0.1:9092#1", 14) == "127.0.0.1:4…#1"


def test_a_name_that_no_cut_tells_from_others_stays_whole() -> None:
    short = Shortener().short
    shown = [short(f"aaaaaaaa{number}bbbbbbbb", 5) for number in range(10)]
    assert shown[0] == "aa…bb"
    assert len(set(shown)) == 10
    assert "aaaaaaaa9bbbbbbbb" in shown


def test_a_name_without_end_is_cut_and_not_kept() -> None:
    shortener = Shortener()
    shown = {shortener.short(f"{number}{'x' * 30_000}", 9) for number in range(100)}
    assert max(map(len, shown)) == 9
    assert not shortener._names
