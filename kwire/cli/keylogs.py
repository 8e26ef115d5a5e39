"""--keylog: files with the secrets of TLS sessions, and the one that the environment names."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from kwire.capture.tls.keylog import KeyLog

VARIABLE = "SSLKEYLOGFILE"
keylog_option = click.option(
    "--keylog", "keylogs", type=click.Path(dir_okay=False), multiple=True, metavar="FILE",
    help=f"Secrets of TLS sessions (NSS key log), to read what is encrypted; repeatable. {VARIABLE} names one too; "
    "kwire explain keylog says how to get them.",
)  # fmt: skip


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
