"""Commands as capabilities, with real processes."""

import sys

from amends.tasks.remote.command import Command, CommandAgent
from tests.tasks.remote.orchestrated import SOON, orchestrated

ECHO = "import json,os,sys; print(json.dumps({'ok': True, 'data': [json.load(sys.stdin), os.environ['AMENDS_KEY'], sys.argv[1]]}))"
LIMITED = """
import json, pathlib, sys
seen = pathlib.Path(sys.argv[1])
first = not seen.exists()
seen.touch()
if first:
    print(json.dumps({"ok": False, "error": {"code": "RATE_LIMITED", "message": "slow down", "retryable": True, "retry_after_ms": 10}}))
    sys.exit(9)
print("plain text")
"""


async def test_commands(tmp_path):
    """Envelopes, plain output, a missing command, and a time-out."""
    python = sys.executable
    agent = CommandAgent(
        "tool-agent",
        {
            "echo": Command(argv=[python, "-c", ECHO, "{key}"], keyed=True),
            "limited": Command(argv=[python, "-c", LIMITED, str(tmp_path / "seen")], read_only=True),
            "json": Command(argv=[python, "-c", "print('[1, 2]')"], read_only=True),
            "missing": Command(argv=[str(tmp_path / "nothing")]),
            "hangs": Command(argv=[python, "-c", "import time; time.sleep(60)"], timeout=0.3),
        },
    )
    async with orchestrated(agent) as orchestrator:
        echoed = await orchestrator.run("echo", {"a": 1}, id="e")
        assert echoed.result == [{"a": 1}, "e/echo", "e/echo"]
        assert (await orchestrator.run("limited", retry_policy=SOON)).result == "plain text\n"
        assert (await orchestrator.run("json", deadline=30)).result == [1, 2]
        missing = await orchestrator.run("missing")
        assert missing.error.executed == "no"
        hung = await orchestrator.run("hangs")
        assert hung.error.code == "TIMEOUT"
        assert hung.error.executed == "maybe"
