"""--keylog: files with the secrets of TLS sessions, and the one that the environment names."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kwire.cli.outputs import output_option

if TYPE_CHECKING:
    from kwire.capture.tls.keylog import KeyLog
    from kwire.outputs import Output

VARIABLE = "SSLKEYLOGFILE"
keylog_option = click.option(
    "--keylog", "keylogs", type=click.Path(dir_okay=False), multiple=True, metavar="FILE",
    help=f"Secrets of TLS sessions (NSS key log), to read what is encrypted; repeatable. {VARIABLE} names one too; "
    "kwire explain keylog says how to get them.",
)  # fmt: skip

SECRETS = "write the sessions' secrets here (NSS key log): who has them reads what is said."
keylog_output = output_option(
    "--keylog", name="keylog", private=True, keeps=True, purpose=f"With --tls, {SECRETS}",
)  # fmt: skip
with_secrets = click.option(
    "--with-secrets", "secrets", is_flag=True,
    help="With -w as pcapng, also the secrets of the saved TLS connections: whoever has the file can decrypt them.",
)  # fmt: skip


@contextlib.contextmanager
def written(keylog: Output | None, tls: bool, options: str = "--tls") -> Iterator[Path | None]:
    """The file of an option keylog_output, which is there and belongs to its owner alone: OpenSSL adds the lines.
    Raises click.UsageError without TLS, which options turn on, OutputError, OSError."""
    if keylog is None:
        yield None
        return
    if not tls:
        raise click.UsageError(f"--keylog belongs to {options}")
    if not keylog.is_file:
        raise click.UsageError("--keylog needs a file")
    with keylog:
        keylog.place()
        yield keylog.path


def key_log(paths: tuple[str, ...], growing: bool = False) -> KeyLog:
    """The secrets of these files and of the one that the environment names, which is said on stderr. growing: packets
    come live, and keys after them. Raises OSError for a file that cannot be read."""
    from kwire.capture.tls.keylog import KeyLog

    named = os.environ.get(VARIABLE)
    chosen = list(paths)
    if named and named not in chosen and (growing or os.access(named, os.R_OK)):
        print(f"kwire: TLS keys from {named} ({VARIABLE})", file=sys.stderr)
        chosen.append(named)
    log = KeyLog.of(chosen, growing)
    if log.unread:
        lines = "a line is" if log.unread == 1 else f"{log.unread:,} lines are"
        print(f"kwire: {', '.join(chosen)}: {lines} not a key log's", file=sys.stderr)
    return log
