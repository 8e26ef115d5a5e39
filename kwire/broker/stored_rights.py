"""Who may do what, as rows of kwire.json: ACLs, quotas, SCRAM credentials, delegation tokens; in Kafka they are in the
metadata log. Salted passwords and tokens are secrets: the file is for its owner alone."""

from __future__ import annotations

from typing import Any

from kwire.broker.acls import Acl
from kwire.broker.core import BrokerCore
from kwire.broker.security import Credential
from kwire.broker.tokens import Token

Rows = list[list[Any]]


def dump_rights(state: BrokerCore) -> dict[str, Rows]:
    users = state.users
    return {
        "acls": [list(acl) for acl in state.acls.all],
        "quotas": [[list(entity), values] for entity, values in state.quotas.given.items()],
        "credentials": [
            [user, mechanism, given and [given.salt.hex(), given.iterations, given.salted.hex()]]
            for (user, mechanism), given in users.given.items()
        ],
        "tokens": [
            [each.id, each.hmac.hex(), each.owner, each.requester, each.renewers, each.issued, each.expires, each.ends]
            for each in users.tokens.all.values()
        ],
    }


def restore_rights(state: BrokerCore, found: dict[str, Rows]) -> None:
    """A folder of an earlier kwire has none of them."""
    for row in found.get("acls", ()):
        state.acls.all[Acl(*row)] = None
    for entity, values in found.get("quotas", ()):
        state.quotas.given[tuple((kind, name) for kind, name in entity)] = values
    users = state.users
    for user, mechanism, given in found.get("credentials", ()):
        salt, iterations, salted = given or ("", 0, "")
        kept = Credential(bytes.fromhex(salt), iterations, bytes.fromhex(salted)) if given else None
        users.keep(user, mechanism, kept)
    for name, mac, owner, requester, renewers, *times in found.get("tokens", ()):
        users.tokens.all[name] = Token(name, bytes.fromhex(mac), owner, requester, tuple(renewers), *times)
