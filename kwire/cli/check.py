"""kwire check: whether a broker, or a client, does as Kafka does."""

from __future__ import annotations

import sys

import click

from kwire.cli.brokers import BrokerOptions, broker_options, reached
from kwire.cli.quantities import Duration
from kwire.errors import Exit


@click.command()
@click.argument("broker", required=False)
@click.option("--client", "command_line", metavar="COMMAND",
              help="Check that program instead; {broker} and {topic} in it are replaced.")  # fmt: skip
@click.option("--only", multiple=True, metavar="TEXT", help="Of a client, only troubles whose name holds that.")
@click.option("--run-time", type=Duration(), default="60s", metavar="TIME", show_default=True,
              help="How long a client may take each time.")  # fmt: skip
@click.option("--yes", is_flag=True, help="Ask also what may change something, with nothing in it.")
@click.option("--all", "everything", is_flag=True, help="All versions, not only those that differ.")
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", help="The output format.")
@broker_options
def command(
    broker: str | None, command_line: str | None, only: tuple[str, ...], run_time: int, yes: bool, everything: bool,
    output: str, link: BrokerOptions,
) -> Exit:  # fmt: skip
    """Checks BROKER (host:9092): every version of every API that it advertises answers in its layout, and what Kafka
    4.3 refuses is refused the same way. Or a client: it runs once undisturbed, then once for each fault, and
    its requests after the fault are compared with the Java client's.

    \b
    kwire check localhost:9092
    kwire check --client 'python my_client.py {broker} {topic}'

    The client should produce and consume some records with a group, for as long as a heartbeat or two, and end with
    status 0. Exit status 1 when something differs.
    """
    if (broker is None) == (command_line is None):
        raise click.UsageError("check takes a BROKER, or --client COMMAND")
    if command_line is not None:
        return _client(command_line, only, run_time / 1e9, output)
    assert broker is not None
    return _broker(broker, link, yes, everything, output)


def _broker(broker: str, link: BrokerOptions, yes: bool, everything: bool, output: str) -> Exit:
    from kwire.cli.output import show, width
    from kwire.client.address import Address
    from kwire.client.conformance import DIFFERS, Probe, advertised, refused
    from kwire.render.checks import broker_lines
    from kwire.render.jsonform import dumps

    probe = Probe(reached(Address.parse_all(broker), link.timeout), link.security, link.client_id, link.timeout)
    offered, wrong = list(advertised(probe, yes)), list(refused(probe))
    if output == "json":
        print(dumps({"advertised": [one._asdict() for one in offered], "refused": [one._asdict() for one in wrong]}))
    else:
        show(broker_lines([one.row() for one in offered], [one.row() for one in wrong], width(), everything))
    return Exit.MALFORMED if any(one.verdict == DIFFERS for one in (*offered, *wrong)) else Exit.OK


def _client(command_line: str, only: tuple[str, ...], run_time: float, output: str) -> Exit:
    from kwire.broker.client_check import FAILED, NOT_HANDLED, TROUBLES, judge, run
    from kwire.cli.output import show, width
    from kwire.render.checks import check_lines
    from kwire.render.jsonform import dumps

    chosen = [one for one in TROUBLES if not only or any(text.lower() in one.name.lower() for text in only)]
    if not chosen:
        raise click.UsageError(f"no trouble is called so; there are {'; '.join(one.name for one in TROUBLES)}")
    plain = run(command_line, None, run_time)
    if not plain.requests:
        raise click.ClickException(f"the client asked the broker nothing: {plain.words or 'it wrote nothing'}")
    if plain.status is None:
        print(f"kwire: the client does not end within {run_time:g} s and is ended", file=sys.stderr)
    elif plain.status:
        print(f"kwire: in peace too it ends with status {plain.status}: {plain.words}", file=sys.stderr)
    outcomes = []
    for at, trouble in enumerate(chosen, 1):
        if sys.stderr.isatty():
            print(f"kwire: {at} of {len(chosen)}: {trouble.name}", file=sys.stderr)
        outcomes.append(judge(trouble, plain, run(command_line, trouble.rule, run_time)))
    if output == "json":
        rows = [{"trouble": one.trouble.name, "verdict": one.verdict, "told": one.told} for one in outcomes]
        print(dumps(rows))
    else:
        show(check_lines("trouble", [(one.trouble.name, one.verdict, one.told) for one in outcomes], width()))
    return Exit.MALFORMED if any(one.verdict in (NOT_HANDLED, FAILED) for one in outcomes) else Exit.OK
