"""DescribeUserScramCredentials (50) and AlterUserScramCredentials (51): who may log in with SCRAM, from now on."""

from __future__ import annotations

from collections import Counter

from kwire.broker.apis import Api
from kwire.broker.context import Body, Request
from kwire.broker.refused import Refused
from kwire.broker.security import ITERATIONS, Credential
from kwire.broker.state import BrokerState
from kwire.payloads.scram import HASHES
from kwire.schema import codes
from kwire.schema.model import Versions

MECHANISMS = dict(enumerate(HASHES, 1))
MOST_ITERATIONS = 16_384
MOST_USERS = 10_000


def describe(request: Request, state: BrokerState) -> Body:
    asked = [each["Name"] for each in request.body["Users"] or []]
    twice = {name for name, times in Counter(asked).items() if times > 1}
    return {
        "ErrorCode": codes.NONE,
        "Results": [_described(name, name in twice, state) for name in dict.fromkeys(asked or state.users.names())],
    }


def _described(name: str, twice: bool, state: BrokerState) -> Body:
    found = {number: state.users.iterations(name, mechanism) for number, mechanism in MECHANISMS.items()}
    infos = [{"Mechanism": number, "Iterations": times} for number, times in found.items() if times]
    row: Body = {"User": name, "ErrorCode": codes.NONE, "ErrorMessage": None, "CredentialInfos": infos}
    if twice:
        why = f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
        return {**row, "ErrorCode": codes.DUPLICATE_RESOURCE, "ErrorMessage": why, "CredentialInfos": []}
    if not infos:
        why = f"Attempt to describe a user credential that does not exist: {name}"
        return {**row, "ErrorCode": codes.RESOURCE_NOT_FOUND, "ErrorMessage": why}
    return row


def alter(request: Request, state: BrokerState) -> Body:
    """All that is asked of one user is done, or none of it."""
    body = request.body
    changes = [*body["Deletions"], *body["Upsertions"]]
    times = Counter(change["Name"] for change in changes)
    results = []
    for name in times:
        row: Body = {"User": name, "ErrorCode": codes.NONE, "ErrorMessage": None}
        mine = [change for change in changes if change["Name"] == name]
        try:
            if len({change["Mechanism"] for change in mine}) < len(mine):
                raise Refused(codes.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")
            for change in mine:
                _check(change, state)
        except Refused as refused:
            row["ErrorCode"], row["ErrorMessage"] = refused.code, refused.why
        else:
            for change in mine:
                state.users.keep(name, MECHANISMS[change["Mechanism"]], _credential(change))
        results.append(row)
    return {"Results": results}


def _credential(change: Body) -> Credential | None:
    """The credential of an upsertion, None for a deletion."""
    if "Iterations" not in change:
        return None
    return Credential(change["Salt"], change["Iterations"], change["SaltedPassword"])


def _check(change: Body, state: BrokerState) -> None:
    name, mechanism = change["Name"], MECHANISMS.get(change["Mechanism"])
    if not name:
        raise Refused(codes.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if mechanism is None:
        raise Refused(codes.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    iterations = change.get("Iterations")
    if iterations is None:
        if state.users.iterations(name, mechanism) is None:
            raise Refused(codes.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
        return
    if not ITERATIONS <= iterations <= MOST_ITERATIONS:
        what = "Too few" if iterations < ITERATIONS else "Too many"
        raise Refused(codes.UNACCEPTABLE_CREDENTIAL, f"{what} iterations: {ITERATIONS} to {MOST_ITERATIONS} will do")
    if state.users.iterations(name, mechanism) is None and len(state.users.names()) >= MOST_USERS:
        raise Refused(codes.POLICY_VIOLATION, f"this broker keeps at most {MOST_USERS} users")


APIS = (
    Api("DescribeUserScramCredentials", Versions(0, 0), describe),
    Api("AlterUserScramCredentials", Versions(0, 0), alter),
)
