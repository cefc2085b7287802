"""
Asking a command line things that cannot harm, and one call of the user's choosing against the fixture.

Without a fixture only the root is asked: for help, for its version, for a command and a flag that there are none of.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence

from amends.audit.evidence import Evidence, Observation
from amends.audit.fixture import RETRY_AFTER, SCENARIOS, Fixture, fixture
from amends.audit.sandbox import home
from amends.process.child import run_once
from amends.process.feed import Feed
from amends.process.finished import Finished

__all__ = ["observe"]

LIMIT = 64 * 1024
"""Bytes of each stream that are kept as evidence."""
_UNKNOWN_COMMAND, _UNKNOWN_FLAG, _NEAR_MISS = "amends-no-such-command", "--amends-no-such-flag", "--hlep"
# Tried in this order, and only where the help text has the flag.
_JSON_WAYS = (["--output", "json"], ["--json"], ["--format", "json"], ["-o", "json"])


def observe(
    command: Sequence[str],
    *,
    call: str | None = None,
    env: Mapping[str, str] | None = None,
    json_way: Sequence[str] | None = None,
    timeout: float = 30.0,
    network: str = "not enforced: not asked for",
) -> Evidence:
    """
    Run the probes.

    Args:
        command: the root of the command line: `tool`, or `python -m tool`.
        call: the words of one harmless call that asks a service, `{url}` standing for the fixture's address.
        env: variables for the command; `{url}` in their values, too.
        json_way: the words that make it speak JSON; looked for without them.
        timeout: seconds for one run.
        network: how the network was kept away.

    """
    asker = _Asker(list(command), dict(env or {}), timeout)
    found = [asker.ask("help", ["--help"]), asker.ask("version", ["--version"])]
    way = list(json_way) if json_way is not None else _way(asker, found[0])
    found += [
        asker.ask("unknown-command", [_UNKNOWN_COMMAND, *way]),
        asker.ask("unknown-flag", [_UNKNOWN_FLAG, *way]),
        asker.ask("near-miss", [_NEAR_MISS, *way]),
    ]
    if call is not None:
        with fixture() as service:
            for scenario in SCENARIOS:
                service.begin(scenario)
                words = shlex.split(call.replace("{url}", service.url))
                found.append(asker.ask(scenario, [*words, *way], service))
    return Evidence(
        command=list(command),
        observations=found,
        network=network,
        retry_after=RETRY_AFTER,
        json_way=way,
    )


def _way(asker: _Asker, help: Observation) -> list[str]:
    """The words that make it answer a mistake with JSON; none where nothing does."""
    for way in _JSON_WAYS:
        if way[0] in help.stdout + help.stderr:
            seen = asker.ask("unknown-command", [_UNKNOWN_COMMAND, *way])
            if isinstance(seen.document, dict):
                return list(way)
    return []


class _Asker:
    """Runs one probe after the other, each in a home of its own."""

    def __init__(self, command: list[str], env: dict[str, str], timeout: float) -> None:
        self.command, self.env, self.timeout = command, env, timeout

    def ask(self, probe: str, words: list[str], service: Fixture | None = None) -> Observation:
        url = "" if service is None else service.url
        variables = {name: value.replace("{url}", url) for name, value in self.env.items()}
        argv = [*self.command, *words]
        began = time.monotonic()
        with home(variables) as env:
            done = run_once(argv, env=env, cwd=env["HOME"], feed=Feed(b""), timeout=self.timeout, limit=LIMIT)
        return Observation(
            probe=probe,
            argv=argv,
            exit=done.exit if done.not_started is None else 127,
            signal=done.signal,
            timed_out=done.timed_out,
            stdout=_text(done, "stdout", url),
            stderr=_text(done, "stderr", url),
            seconds=round(time.monotonic() - began, 3),
            requests=[] if service is None else service.requests,
            fixture=service is not None,
        )


def _text(done: Finished, name: str, url: str) -> str:
    text: str = getattr(done, name)[: 2 * LIMIT].decode("utf-8", "replace")
    return text.replace(url, "{url}") if url else text
