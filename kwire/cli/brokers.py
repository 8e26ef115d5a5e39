"""What commands that talk to a broker share: TLS, SASL, the client id, how long to wait."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from kwire.cli.keylogs import keylog_output, written
from kwire.cli.quantities import Duration
from kwire.errors import KwireError

if TYPE_CHECKING:
    from kwire.client.address import Address
    from kwire.client.security import Security
    from kwire.outputs import Output

Command = Callable[..., Any]
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
DAY = 86_400_000_000_000  # ns
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


class BrokerOptions(NamedTuple):
    """What broker_options gave. timeout: seconds."""

    security: Security
    client_id: str
    timeout: float


def reached(addresses: list[Address], timeout: float) -> Address:
    """The first of several addresses that takes a connection; why others do not goes to stderr. The only one, or the
    last, is not tried."""
    from kwire.client.connection import dial
    from kwire.errors import Failure

    *others, last = addresses
    for address in others:
        try:
            dial(address, timeout).close()
        except Failure as failure:
            print(f"kwire: {failure}", file=sys.stderr)
        else:
            return address
    return last


def broker_options(
    command: Command, patience: str = "How long to wait for a connection, and for an answer."
) -> Command:
    """The command gets them as link. patience: what --timeout is for."""
    options: list[Callable[[Command], Command]] = [
        click.option("--tls", is_flag=True, help="Speak TLS."),
        click.option("--ca", type=FILE, help="Believe the certificates that these sign (PEM); the system's otherwise."),
        click.option("--cert", type=FILE, help="The client's own certificate (PEM)."),
        click.option("--key", type=FILE, help="Its private key, when it is not in the same file."),
        keylog_output,
        click.option("--insecure", is_flag=True, help="TLS with any certificate, whatever name it bears."),
        click.option("--sasl", "mechanism", type=click.Choice(MECHANISMS, case_sensitive=False),
                     help="Log in, with --user and --password."),
        click.option("--user", "username", metavar="NAME", help="The user to log in as."),
        click.option("--password", metavar="TEXT|@FILE", envvar="KWIRE_PASSWORD", help="The password, or its file; "
                     "KWIRE_PASSWORD in the environment; else a terminal is asked."),
        click.option("--client-id", default="kwire", metavar="TEXT", show_default=True, help="How to call oneself."),
        click.option("--timeout", type=Duration(), default="10s", metavar="TIME", show_default=True,
                     help=patience),
    ]  # fmt: skip

    @wraps(command)
    def linked(
        *arguments: Any, tls: bool, ca: Path | None, cert: Path | None, key: Path | None, insecure: bool,
        keylog: Output | None, mechanism: str | None, username: str | None, password: str | None, client_id: str,
        timeout: int, **rest: Any,
    ) -> Any:  # fmt: skip
        from kwire.client.security import Security

        if not tls and (ca or cert or insecure):
            raise click.UsageError("--ca, --cert and --insecure belong to --tls")
        if key and not cert:
            raise click.UsageError("--key belongs to --cert")
        if mechanism is None and username is not None:
            raise click.UsageError("--user needs --sasl, which says how to log in")
        name, word = _credentials(username, password) if mechanism else ("", "")
        if not 0 < timeout <= DAY:
            raise click.UsageError("--timeout must be more than nothing, and at most a day")
        security = Security(tls, ca, cert, key, insecure, mechanism, name, word)
        try:
            with written(keylog, tls) as log:
                security = replace(security, keylog=log)
                return command(*arguments, link=BrokerOptions(security, client_id, timeout / 1e9), **rest)
        except KwireError as error:
            if not rest.get("show_secrets"):  # the reason may be the peer's words
                error.args = (security.echo.text(str(error)),)
            raise

    made: Command = linked
    for option in reversed(options):
        made = option(made)
    return made


def _credentials(username: str | None, password: str | None) -> tuple[str, str]:
    if not username:
        raise click.UsageError("--sasl needs --user")
    if password is None:
        if not sys.stdin.isatty():
            raise click.UsageError("--sasl needs --password, or KWIRE_PASSWORD in the environment")
        return username, str(click.prompt(f"password of {username}", hide_input=True, err=True))
    if password.startswith("@"):
        try:
            password = Path(password[1:]).read_text("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise click.UsageError(f"{password[1:]} is not UTF-8") from error
    return username, password
