"""Tables of a report: cells, what they are sorted by, commands, and labels for narrow windows."""

from __future__ import annotations

from kwire.render.html.markup import element
from kwire.render.report.sheets import LETTERS, TALL, Cell, Column, Sheet, SheetRow

COLUMNS = [Column("topic"), Column("bytes", True)]


def test_a_row() -> None:
    rows = [SheetRow([Cell("<b>"), Cell("1.2 kB", 1234, "--errors", "error")], "kwire read x.pcap --topic '<b>'")]
    made = Sheet("topics", "Topics", COLUMNS, rows).markup
    assert '<th scope="row">&lt;b&gt;</th>' in made
    assert '<td class="n error" data-v="1234" data-m="--errors">1.2 kB</td>' in made
    assert '<td class="cmd"><code>kwire read x.pcap --topic &#x27;&lt;b&gt;&#x27;</code></td>' in made


def test_what_is_left_out_is_told() -> None:
    made = Sheet(
        "topics", "Topics", COLUMNS, [SheetRow([Cell("a"), Cell("1", 1)])], 7, "kwire stats x.pcap --all"
    ).markup
    assert "1 of 7" in made
    assert "<code>kwire stats x.pcap --all</code>" in made


def test_long_texts_are_cut_and_markup_is_not() -> None:
    whole = element("i", "x" * 1000)
    made = Sheet("t", "T", COLUMNS, [SheetRow([Cell("y" * 1000), Cell(whole)])]).markup
    assert "y" * (LETTERS - 1) + "…" in made
    assert whole in made


def test_columns_have_their_names_where_rows_are_cards() -> None:
    sheet = Sheet("topics", "Topics", COLUMNS, [])
    assert '#topics td:nth-child(2)::before { content: "bytes" }' in sheet.style


def test_a_tall_table_scrolls_in_a_box_that_keys_reach() -> None:
    rows = [SheetRow([Cell(f"topic-{at}"), Cell("1", 1)]) for at in range(TALL + 1)]
    assert Sheet("topics", "Topics", COLUMNS, rows[:-1]).markup.startswith("<table")
    made = Sheet("topics", "Topics", COLUMNS, rows).markup
    assert made.startswith('<div class="tall" tabindex="0" role="region" aria-label="Topics"><table')
    assert made.count("<tr>") == TALL + 2
