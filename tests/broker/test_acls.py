"""Access control lists: which rule decides, and what filters find (Kafka's StandardAuthorizer)."""

from __future__ import annotations

import pytest

from kwire.broker.acls import (
    ALL,
    ALLOW,
    ALTER,
    ANY,
    CLUSTER,
    DENY,
    DESCRIBE,
    GROUP,
    LITERAL,
    MATCH,
    PREFIXED,
    READ,
    TOPIC,
    WRITE,
    Acl,
    AclFilter,
    Acls,
)  # fmt: skip
from kwire.broker.refused import Refused
from kwire.schema import codes

HOST = "127.0.0.1"


def acl(
    name: str = "t", *, pattern: int = LITERAL, user: str = "ann", host: str = "*", operation: int = READ,
    permission: int = ALLOW, kind: int = TOPIC,
) -> Acl:  # fmt: skip
    return Acl(kind, name, pattern, f"User:{user}", host, operation, permission)


def rules(*given: Acl) -> Acls:
    made = Acls(["root"])
    for each in given:
        made.add(each)
    return made


@pytest.mark.parametrize(
    ("given", "operation", "name", "may"),
    [
        ([], READ, "t", False),
        ([acl()], READ, "t", True),
        ([acl()], WRITE, "t", False),
        ([acl()], DESCRIBE, "t", True),
        ([acl(operation=DESCRIBE)], READ, "t", False),
        ([acl(operation=ALL)], WRITE, "t", True),
        ([acl()], READ, "u", False),
        ([acl("*")], READ, "u", True),
        ([acl("t", pattern=PREFIXED)], READ, "tea", True),
        ([acl("t", pattern=PREFIXED)], READ, "ot", False),
        ([acl(user="*")], READ, "t", True),
        ([acl(user="bob")], READ, "t", False),
        ([acl(host="10.0.0.1")], READ, "t", False),
        ([acl(host=HOST)], READ, "t", True),
        ([acl(), acl("*", permission=DENY)], READ, "t", False),
        ([acl(operation=ALL), acl(permission=DENY, operation=WRITE)], READ, "t", True),
        ([acl(operation=ALL), acl(permission=DENY, operation=READ)], DESCRIBE, "t", True),
        ([acl(kind=GROUP)], READ, "t", False),
    ],
)
def test_which_rule_decides(given: list[Acl], operation: int, name: str, may: bool) -> None:
    assert rules(*given).may("ann", HOST, operation, TOPIC, name) == may
    assert rules(*given).may("root", HOST, operation, TOPIC, name)
    assert Acls(None).may("ann", HOST, operation, TOPIC, name)


def test_who_has_not_logged_in_is_anonymous() -> None:
    assert rules(acl(user="ANONYMOUS")).may(None, HOST, READ, TOPIC, "t")


def test_a_right_on_some_topic() -> None:
    assert rules(acl(operation=WRITE)).may_somewhere("ann", HOST, WRITE, TOPIC)
    assert not rules(acl()).may_somewhere("ann", HOST, WRITE, TOPIC)
    denied = acl("*", operation=WRITE, permission=DENY)
    assert not rules(acl(operation=WRITE), denied).may_somewhere("ann", HOST, WRITE, TOPIC)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (AclFilter(ANY, None, ANY, None, None, ANY, ANY), 4),
        (AclFilter(TOPIC, "tea", LITERAL, None, None, ANY, ANY), 1),
        (AclFilter(TOPIC, "tea", MATCH, None, None, ANY, ANY), 3),
        (AclFilter(TOPIC, None, PREFIXED, None, None, ANY, ANY), 1),
        (AclFilter(ANY, None, ANY, "User:bob", None, ANY, ANY), 1),
        (AclFilter(ANY, None, ANY, None, None, ALTER, ANY), 1),
        (AclFilter(ANY, None, ANY, None, None, ANY, DENY), 0),
    ],
)
def test_filters(wanted: AclFilter, found: int) -> None:
    cluster = acl("kafka-cluster", kind=CLUSTER, operation=ALTER)
    given = rules(acl("tea"), acl("*", user="bob"), acl("t", pattern=PREFIXED), cluster)
    assert len(given.find(wanted)) == found
    given.delete(given.find(wanted))
    assert len(given.find(AclFilter(ANY, None, ANY, None, None, ANY, ANY))) == 4 - found


@pytest.mark.parametrize(
    "wrong",
    [acl(""), acl(kind=1), acl(kind=CLUSTER), acl(pattern=MATCH), acl(operation=1), acl(operation=99),
     acl(permission=1), acl()._replace(principal="ann")],
)  # fmt: skip
def test_rules_that_cannot_be(wrong: Acl) -> None:
    with pytest.raises(Refused) as refused:
        rules(wrong)
    assert refused.value.code == codes.INVALID_REQUEST
