"""ACLs, quotas, SCRAM credentials and delegation tokens are there again after a restart."""

from __future__ import annotations

import json
import stat
from pathlib import Path

from kwire.broker.acls import Acl
from kwire.broker.security import Credential
from kwire.broker.stored_rights import dump_rights
from kwire.testing import Broker

ACL = Acl(2, "t", 3, "User:a", "*", 3, 3)


def test_rights_come_back(tmp_path: Path) -> None:
    with Broker(data=tmp_path, users={"a": "secret"}) as broker:
        state = broker.server.state
        state.acls.add(ACL)
        state.quotas.change([("user", None), ("client-id", "c")], [("producer_byte_rate", 5.0, False)], False)
        state.users.keep("b", "SCRAM-SHA-256", Credential(b"salt", 4096, b"salted"))
        state.users.keep("a", "SCRAM-SHA-512", None)
        token = state.users.tokens.create("a", "a", ("b",), -1, state.clock.now() // 1_000_000)
        before = dump_rights(state)
    kept = tmp_path / "kwire.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    with Broker(data=tmp_path, users={"a": "secret"}) as broker:
        state = broker.server.state
        assert dump_rights(state) == before
        assert state.acls.all == {ACL: None}
        assert state.quotas.find([], False) == [((("client-id", "c"), ("user", None)), {"producer_byte_rate": 5.0})]
        assert state.users.salted("b", "SCRAM-SHA-256") == b"salted"
        assert state.users.iterations("a", "SCRAM-SHA-512") is None
        assert state.users.tokens.all[token.id] == token
        state.acls.delete([ACL])
    older = {key: rows for key, rows in json.loads(kept.read_text()).items() if key not in before}
    kept.write_text(json.dumps(older))
    with Broker(data=tmp_path) as broker:
        assert not any(dump_rights(broker.server.state).values())
