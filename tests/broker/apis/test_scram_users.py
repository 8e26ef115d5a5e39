"""DescribeUserScramCredentials and AlterUserScramCredentials."""

from __future__ import annotations

from typing import Any

from kwire.broker.context import BrokerSettings


def test_scram_users_by_the_protocol(make_socketless: Any) -> None:
    socketless = make_socketless(BrokerSettings(super_users=("ANONYMOUS",)))
    secret = {"Salt": b"s" * 16, "SaltedPassword": b"p" * 32}

    def alter(*, drop: list[tuple[str, int]] = [], put: list[tuple[str, int, int]] = []) -> dict[str, int]:  # noqa: B006
        gone = [{"Name": name, "Mechanism": mechanism} for name, mechanism in drop]
        made = [{"Name": name, "Mechanism": number, "Iterations": times, **secret} for name, number, times in put]
        rows = socketless.ask("AlterUserScramCredentials", 0, {"Deletions": gone, "Upsertions": made})["Results"]
        return {row["User"]: row["ErrorCode"] for row in rows}

    def describe(*names: str) -> dict[str, tuple[int, list[int]]]:
        asked = {"Users": [{"Name": name} for name in names] or None}
        rows = socketless.ask("DescribeUserScramCredentials", 0, asked)["Results"]
        return {row["User"]: (row["ErrorCode"], [i["Iterations"] for i in row["CredentialInfos"]]) for row in rows}

    assert alter(put=[("ann", 1, 4096), ("ann", 2, 8192), ("bob", 1, 4096)]) == {"ann": 0, "bob": 0}
    assert describe() == {"ann": (0, [4096, 8192]), "bob": (0, [4096])}
    assert describe("bob", "carl", "ann", "ann") == {"bob": (0, [4096]), "carl": (91, []), "ann": (92, [])}
    assert alter(put=[("ann", 1, 4095), ("bob", 1, 16385), ("", 1, 4096), ("x", 3, 4096)]) == {
        "ann": 93, "bob": 93, "": 93, "x": 33,
    }  # fmt: skip
    assert alter(drop=[("ann", 1), ("bob", 2)]) == {"ann": 0, "bob": 91}
    assert alter(drop=[("ann", 2)], put=[("ann", 2, 4096)]) == {"ann": 92}
    assert describe() == {"ann": (0, [8192]), "bob": (0, [4096])}
