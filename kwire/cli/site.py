"""kwire site: the reference and the guide as static pages, with a playground."""

from __future__ import annotations

from pathlib import Path

import click

from kwire.cli.options import library, schema_option
from kwire.errors import Exit, KwireError

MARK = "search-index.js"  # what tells a site's folder from others


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--pyodide", "place", metavar="DIR|URL", help="Pyodide, for the playground: a folder, copied, or an address."
)
@click.option("--force", is_flag=True, help="Write into a folder that holds other things than a site.")
@schema_option
def command(folder: Path, place: str | None, force: bool, schema: Path | None) -> int:
    """Writes the reference and the guide into DIR as pages for a browser: every API at every version, every error code,
    type and detector, a search, and a playground that decodes bytes in the page."""
    from kwire.site.bundle import pyodide_at
    from kwire.site.write import write_site

    if folder.is_dir() and any(folder.iterdir()) and not (folder / MARK).exists() and not force:
        raise KwireError(f"{folder}: holds something else than a site; --force writes into it")
    pyodide = pyodide_at(place)
    written = write_site(folder, library(schema), pyodide)
    print(f"{folder}: {written.pages:,} pages, {written.size / 1e6:.1f} MB", end="")
    print(f"; Pyodide {written.pyodide / 1e6:.1f} MB" if written.pyodide else "")
    if not pyodide.there:
        click.echo("kwire: no playground: --pyodide DIR|URL gives it Pyodide (npm's package pyodide)", err=True)
    return Exit.OK
