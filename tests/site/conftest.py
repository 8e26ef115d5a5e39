"""A whole site, written once."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire.codec.library import builtin_library
from kwire.site.bundle import Pyodide
from kwire.site.write import write_site


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its folder."""
    folder = tmp_path_factory.mktemp("site")
    write_site(folder, builtin_library(), Pyodide())
    return folder
