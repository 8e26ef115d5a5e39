"""The process of a broker: what was made at the start is not gone over again, and the loop goes on."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import asyncio, gc
from kwire.broker.process import settle
async def run():
    settle(asyncio.get_running_loop())
    await asyncio.sleep(0)
    print(gc.get_freeze_count() > 1000, gc.isenabled())
asyncio.run(run())
"""


def test_what_is_there_is_left_alone() -> None:
    ran = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["True", "True"]
