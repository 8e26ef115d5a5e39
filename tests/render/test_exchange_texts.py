"""Lines of a whole batch say what lines of single exchanges say."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire.render.exchange_texts import ExchangeTexts
from kwire.render.exchanges import ExchangeLines
from kwire.render.lines import plain
from kwire.session.reading import Reading

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"
FILES = sorted(CAPTURES.glob("*.pcap*"))
START = 1_795_227_300_000_000_000


@pytest.mark.parametrize("path", FILES, ids=[path.name.split(".")[0] for path in FILES])
@pytest.mark.parametrize(("start", "verbose"), [(START, False), (None, True)])
def test_lines_are_those_of_single_exchanges(path: Path, start: int | None, verbose: bool) -> None:
    lines = ExchangeLines(160, start, False, verbose)
    texts, made, rows = ExchangeTexts(lines), 0, 0
    for batch in Reading([path], tracking=True).batches():
        for row, text in enumerate(texts.of(batch)):
            rows += 1
            if text is not None:
                made += 1
                assert text == "".join(f"{plain(line)}\n" for line in lines.lines(batch[row]))
    assert made > rows // 2 or path.name in ("notkafka.pcap", "tls.pcap")


def test_lines_of_several_files_name_them() -> None:
    paths = sorted((CAPTURES.parent / "captures").glob("evict-*.pcap*"))[:2]
    texts = ExchangeTexts(ExchangeLines(160, START, False))
    found = [text for batch in Reading(paths, tracking=True).batches() for text in texts.of(batch) if text]
    assert {text.split()[1].partition(":")[0] for text in found} == {path.name for path in paths}
