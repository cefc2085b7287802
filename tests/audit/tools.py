"""
Real tools, and the one harmless call of each that asks a service.

    python -m tests.audit.tools [tool …]      record what they do now into tests/audit/recorded

`make soak` brings the tools and audits them live; `make test` scores what was recorded.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from amends.audit import Evidence, Report, score
from amends.audit.views import lines

RECORDED = Path(__file__).parent / "recorded"


class Tool(NamedTuple):
    call: str
    env: dict[str, str] = {}
    timeout: float = 30


TOOLS = {
    "aws": Tool(
        "--endpoint-url {url} dynamodb list-tables",
        {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"},
        timeout=75,
    ),
    "curl": Tool("-sS -f {url}/x"),
    # It speaks plain HTTP to one host alone, the developers' own; a proxy takes that host's place.
    "gh": Tool(
        "repo list",
        {"GH_HOST": "github.localhost", "GH_ENTERPRISE_TOKEN": "test", "HTTP_PROXY": "{url}", "NO_PROXY": ""},
    ),
    "git": Tool("ls-remote {url}/repo.git"),
    "http": Tool("--check-status --ignore-stdin {url}/x"),
    # It waits as asked for, five times eleven requests: an answer takes more than 100 s.
    "kubectl": Tool("--server {url} get pods", timeout=150),
}


def found(tool: str) -> str:
    """Where `make soak` put it, or where it is on PATH."""
    path = shutil.which(tool, path=str(Path(sys.prefix) / "tools" / "bin")) or shutil.which(tool)
    assert path is not None, f"{tool} is missing: python scripts/fetch_tools.py {sys.prefix}/tools"
    return path


def audited(tool: str) -> Report:
    """What `amends audit cli` says of the tool now, in a network of its own where that is permitted."""
    call, env, timeout = TOOLS[tool]
    words = ["--output", "json", "--fixture", "--call", call, "--timeout", str(timeout)]
    for name, value in env.items():
        words += ["--env", f"{name}={value}"]
    command = [sys.executable, "-m", "amends", "audit", "cli", *words, "--", found(tool)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=1200)
    return msgspec.json.decode(done.stdout, type=Report)


def portable(value: Any, tool: str) -> Any:
    """Evidence without the places of the machine it was made on."""
    if isinstance(value, dict):
        return {name: portable(item, tool) for name, item in value.items()}
    if isinstance(value, list):
        return [portable(item, tool) for item in value]
    if isinstance(value, str):
        for pattern, word in (
            (re.escape(found(tool)), tool),
            (r"/tmp/amends-audit-\w+", "{home}"),
            (r"http://127\.0\.0\.1:\d+", "{url}"),
            (re.escape(str(Path(sys.prefix) / "tools" / "bin") + "/"), ""),
        ):
            value = re.sub(pattern, word, value)
    return value


def record(tool: str) -> None:
    """Look once, and keep what was seen."""
    evidence = portable(msgspec.to_builtins(audited(tool).evidence), tool)
    text = msgspec.json.format(msgspec.json.encode(evidence), indent=1)
    (RECORDED / f"{tool}.json").write_bytes(text + b"\n")
    report = score(msgspec.convert(evidence, Evidence))
    sys.stdout.write("\n".join(lines(report, lambda text, *_: text)) + "\n")


if __name__ == "__main__":
    for name in sys.argv[1:] or TOOLS:
        record(name)
