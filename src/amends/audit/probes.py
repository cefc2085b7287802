"""
Runs harmless probes of a command line, and one call of the user's choice against the fixture.

Without a fixture only the root command runs: with --help, --version, an unknown command and an unknown flag.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from amends.audit.evidence import Evidence, Observation
from amends.audit.fixture import RETRY_AFTER, SCENARIOS, Fixture, fixture
from amends.audit.sandbox import home
from amends.core.text import decoded
from amends.core.wrong_calls import explains_wrong_calls
from amends.process.child import run_once
from amends.process.feed import Feed
from amends.process.finished import Finished

__all__ = ["observe"]

LIMIT = 64 * 1024
"""Bytes of each stream to keep as evidence."""
_UNKNOWN_COMMAND, _UNKNOWN_FLAG, _NEAR_MISS = "amends-no-such-command", "--amends-no-such-flag", "--hlep"
# Tried in this order, and only if the help text has the flag.
_JSON_FLAGS = (["--output", "json"], ["--json"], ["--format", "json"], ["-o", "json"])


@explains_wrong_calls
def observe(
    command: Sequence[str],
    *,
    call: str | None = None,
    env: Mapping[str, str] | None = None,
    json_flags: Sequence[str] | None = None,
    timeout: float = 30.0,
    network: str = "not enforced: not asked for",
) -> Evidence:
    """
    Run the probes and return the evidence.

        evidence = observe(["tool"], call="get 42", env={"TOOL_URL": "{url}"})
        print(score(evidence).because)

    Args:
        command: the root of the command line: `tool`, or `python -m tool`.
        call: the arguments of one harmless call to a service; `{url}` is replaced by the fixture's address.
        env: variables for the command; `{url}` is replaced in their values too.
        json_flags: the arguments that select JSON output; default: common flags are tried.
        timeout: seconds for one run.
        network: how the network was cut off.

    """
    command = absolute_paths(command)
    probes = _ProbeRunner(command, dict(env or {}), timeout)
    found = [probes.run("help", ["--help"]), probes.run("version", ["--version"])]
    flags = list(json_flags) if json_flags is not None else _find_json_flags(probes, found[0])
    found += [
        probes.run("unknown-command", [_UNKNOWN_COMMAND, *flags]),
        probes.run("unknown-flag", [_UNKNOWN_FLAG, *flags]),
        probes.run("near-miss", [_NEAR_MISS, *flags]),
    ]
    if call is not None:
        with fixture() as service:
            for scenario in SCENARIOS:
                service.begin(scenario)
                arguments = shlex.split(call.replace("{url}", service.url))
                found.append(probes.run(scenario, [*arguments, *flags], service))
    return Evidence(
        command=command,
        observations=found,
        network=network,
        retry_after=RETRY_AFTER,
        json_flags=flags,
    )


def absolute_paths(command: Sequence[str]) -> list[str]:
    """
    Return the command with absolute paths, because probes run in another directory: `python tool.py`, `./tool`.

    An argument counts as a path if the file exists, and if it has a directory or a suffix: `log` in `git log` has neither.
    """
    return [str(Path(each).absolute()) if _is_relative_file(each) else each for each in command]


def _is_relative_file(argument: str) -> bool:
    path = Path(argument)
    try:
        return (len(path.parts) > 1 or bool(path.suffix)) and not path.is_absolute() and path.is_file()
    except (OSError, ValueError):  # too long, or with a null character
        return False


def _find_json_flags(probes: _ProbeRunner, help: Observation) -> list[str]:
    """Return the flags with which the command reports a mistake as JSON; an empty list if none do."""
    for flags in _JSON_FLAGS:
        if flags[0] in help.stdout + help.stderr:
            observation = probes.run("unknown-command", [_UNKNOWN_COMMAND, *flags])
            if isinstance(observation.document, dict):
                return list(flags)
    return []


class _ProbeRunner:
    """Runs probes one after the other, each with a new empty home directory."""

    def __init__(self, command: list[str], env: dict[str, str], timeout: float) -> None:
        self.command, self.env, self.timeout = command, env, timeout

    def run(self, probe: str, arguments: list[str], service: Fixture | None = None) -> Observation:
        url = "" if service is None else service.url
        variables = {name: value.replace("{url}", url) for name, value in self.env.items()}
        argv = [*self.command, *arguments]
        started = time.monotonic()
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
            seconds=round(time.monotonic() - started, 3),
            requests=[] if service is None else service.requests,
            fixture=service is not None,
            written=done.out.size + done.err.size if done.truncated else None,
        )


def _text(done: Finished, name: str, url: str) -> str:
    text: str = decoded(getattr(done, name)[: 2 * LIMIT])
    return text.replace(url, "{url}") if url else text
