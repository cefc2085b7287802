"""
Real tools with one harmless call of each to a service.

    python -m tests.audit.tools [tool …]      record their behaviour in tests/audit/recorded

`make soak` installs the tools and audits them; `make test` scores the recordings.
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
    # gh uses plain HTTP only for github.localhost, so the fixture is its proxy.
    "gh": Tool(
        "repo list",
        {"GH_HOST": "github.localhost", "GH_ENTERPRISE_TOKEN": "test", "HTTP_PROXY": "{url}", "NO_PROXY": ""},
    ),
    "git": Tool("ls-remote {url}/repo.git"),
    "http": Tool("--check-status --ignore-stdin {url}/x"),
    # kubectl waits as the server asks, for five times eleven requests: one call takes more than 100 s.
    "kubectl": Tool("--server {url} get pods", timeout=150),
}


def find_tool(tool: str) -> str:
    """Return the path where `make soak` installed the tool, or its path on PATH."""
    path = shutil.which(tool, path=str(Path(sys.prefix) / "tools" / "bin")) or shutil.which(tool)
    assert path is not None, f"{tool} is missing: python scripts/fetch_tools.py {sys.prefix}/tools"
    return path


def audit_tool(tool: str) -> Report:
    """Run `amends audit cli` on the tool and return its report."""
    call, env, timeout = TOOLS[tool]
    options = ["--output", "json", "--fixture", "--call", call, "--timeout", str(timeout)]
    for name, value in env.items():
        options += ["--env", f"{name}={value}"]
    command = [sys.executable, "-m", "amends", "audit", "cli", *options, "--", find_tool(tool)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=1200)
    return msgspec.json.decode(done.stdout, type=Report)


def make_portable(value: Any, tool: str) -> Any:
    """Replace the paths and addresses of this machine in the evidence."""
    if isinstance(value, dict):
        return {name: make_portable(item, tool) for name, item in value.items()}
    if isinstance(value, list):
        return [make_portable(item, tool) for item in value]
    if isinstance(value, str):
        for pattern, replacement in (
            (re.escape(find_tool(tool)), tool),
            (r"/tmp/amends-audit-\w+", "{home}"),
            (r"http://127\.0\.0\.1:\d+", "{url}"),
            (re.escape(str(Path(sys.prefix) / "tools" / "bin") + "/"), ""),
        ):
            value = re.sub(pattern, replacement, value)
    return value


def record(tool: str) -> None:
    """Audit a tool and save the evidence."""
    evidence = make_portable(msgspec.to_builtins(audit_tool(tool).evidence), tool)
    text = msgspec.json.format(msgspec.json.encode(evidence), indent=1)
    (RECORDED / f"{tool}.json").write_bytes(text + b"\n")
    report = score(msgspec.convert(evidence, Evidence))
    sys.stdout.write("\n".join(lines(report, lambda text, *_: text)) + "\n")


if __name__ == "__main__":
    for name in sys.argv[1:] or TOOLS:
        record(name)
