"""Access control lists and what they decide, as Kafka's StandardAuthorizer does.

Super users may do everything. Else a DENY that fits forbids, then an ALLOW that fits permits, and what no ACL speaks of
is forbidden. An ALLOW to read, write, delete or alter allows to describe too, one to alter configurations to read them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from kwire.broker.refused import Refused
from kwire.schema import codes

ANY, MATCH, LITERAL, PREFIXED = 1, 2, 3, 4  # pattern types; ANY and MATCH in filters only
TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID, DELEGATION_TOKEN, USER = range(2, 8)  # resource types
ALL, READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE = range(2, 9)  # operations
CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = range(9, 13)
CREATE_TOKENS, DESCRIBE_TOKENS = 13, 14
DENY, ALLOW = 2, 3
THE_CLUSTER, WILDCARD, EVERYONE = "kafka-cluster", "*", "User:*"
ANONYMOUS = "ANONYMOUS"  # who has not logged in
IMPLIED = {DESCRIBE: (READ, WRITE, DELETE, ALTER), DESCRIBE_CONFIGS: (ALTER_CONFIGS,)}
LAST_OPERATION = 15
MOST = 10_000  # ACLs that are kept


class Acl(NamedTuple):
    """One rule, by the numbers of the protocol."""

    type: int
    name: str
    pattern: int
    principal: str
    host: str
    operation: int
    permission: int

    def covers(self, kind: int, name: str) -> bool:
        """Whether it speaks of this resource."""
        if self.type != kind:
            return False
        if self.pattern == PREFIXED:
            return name.startswith(self.name)
        return self.name in (name, WILDCARD)


class AclFilter(NamedTuple):
    """What DescribeAcls and DeleteAcls look for; None and ANY fit all."""

    type: int
    name: str | None
    pattern: int
    principal: str | None
    host: str | None
    operation: int
    permission: int

    def fits(self, acl: Acl) -> bool:
        return (
            self.type in (ANY, acl.type)
            and self.operation in (ANY, acl.operation)
            and self.permission in (ANY, acl.permission)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self._fits_name(acl)
        )

    def _fits_name(self, acl: Acl) -> bool:
        if self.pattern not in (ANY, MATCH, acl.pattern):
            return False
        if self.name is None:
            return True
        return acl.covers(acl.type, self.name) if self.pattern == MATCH else acl.name == self.name


class Acls:
    """The rules of a cluster. supers: names of users; None: there is no authorizer, and everybody may do everything.
    open: what no ACL speaks of is permitted (allow.everyone.if.no.acl.found)."""

    def __init__(self, supers: Iterable[str] | None, open: bool = False) -> None:
        self.on = supers is not None
        self._open = open
        self._supers = frozenset(supers or ())
        self.all: dict[Acl, None] = {}

    def find(self, wanted: AclFilter) -> list[Acl]:
        return [acl for acl in self.all if wanted.fits(acl)]

    def add(self, acl: Acl) -> None:
        """Raises Refused for a rule that cannot be."""
        for wrong, why in WRONG:
            if wrong(acl):
                raise Refused(codes.INVALID_REQUEST, why)
        if len(self.all) >= MOST and acl not in self.all:
            raise Refused(codes.POLICY_VIOLATION, f"this broker keeps at most {MOST} ACLs")
        self.all[acl] = None

    def delete(self, acls: Iterable[Acl]) -> None:
        for acl in acls:
            self.all.pop(acl, None)

    def may(self, user: str | None, host: str, operation: int, kind: int, name: str) -> bool:
        """Whether the user, None for one who has not logged in, may do that with the resource."""
        user = user or ANONYMOUS
        if not self.on or user in self._supers:
            return True
        there = [acl for acl in self.all if acl.covers(kind, name)]
        if not there:
            return self._open
        about = [acl for acl in there if self._concerns(acl, user, host)]
        if any(acl.permission == DENY and acl.operation in (ALL, operation) for acl in about):
            return False
        enough = (ALL, operation, *IMPLIED.get(operation, ()))
        return any(acl.permission == ALLOW and acl.operation in enough for acl in about)

    def may_somewhere(self, user: str | None, host: str, operation: int, kind: int) -> bool:
        """Whether there is a resource of that kind with which the user may do so (KIP-679), DENYs of all apart."""
        user = user or ANONYMOUS
        if not self.on or user in self._supers:
            return True
        about = [acl for acl in self.all if acl.type == kind and acl.operation in (ALL, operation)]
        about = [acl for acl in about if self._concerns(acl, user, host)]
        denied = any(acl.permission == DENY and (acl.pattern, acl.name) == (LITERAL, WILDCARD) for acl in about)
        return not denied and (self._open or any(acl.permission == ALLOW for acl in about))

    @staticmethod
    def _concerns(acl: Acl, user: str, host: str) -> bool:
        return acl.principal in (f"User:{user}", EVERYONE) and acl.host in (host, WILDCARD)


WRONG: tuple[tuple[Callable[[Acl], bool], str], ...] = (
    (lambda acl: not acl.name, "Resource name should not be empty"),
    (lambda acl: acl.type not in range(TOPIC, USER + 1), "Invalid resource type"),
    (lambda acl: acl.type == CLUSTER and acl.name != THE_CLUSTER, "The only valid name for the CLUSTER resource is "
     "kafka-cluster"),
    (lambda acl: acl.pattern not in (LITERAL, PREFIXED), "Invalid pattern type"),
    (lambda acl: acl.operation not in range(ALL, LAST_OPERATION + 1), "Invalid operation"),
    (lambda acl: acl.permission not in (DENY, ALLOW), "Invalid permission type"),
    (lambda acl: ":" not in acl.principal, "Could not parse principal (no colon is present separating the principal "
     "type from the principal name)"),
)  # fmt: skip
