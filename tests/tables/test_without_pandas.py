"""Commands do not wait for pandas, and who wants it still gets it."""

from __future__ import annotations

import subprocess
import sys

import pytest

AFTER = """
import sys
from kwire.tables.without_pandas import load
{before}
load()
import pyarrow as pa
print("pandas" in sys.modules, len(sys.meta_path))
print(pa.table({{"n": [1, 2]}}).to_pandas()["n"].tolist(), pa.array(__import__("pandas").Series([3, 4])).to_pylist())
"""


@pytest.mark.parametrize(("before", "there"), [("", "False"), ("import pandas", "True")], ids=["without", "with"])
def test_arrow_is_loaded_without_pandas(before: str, there: str) -> None:
    pytest.importorskip("pandas")
    done = subprocess.run([sys.executable, "-c", AFTER.format(before=before)], capture_output=True, text=True)
    first, second = done.stdout.splitlines()
    assert first.split()[0] == there
    assert second == "[1, 2] [3, 4]"
