"""
Every measurement, each section in one run.

    python -m bench                       all of them, printed and written to docs/benchmarks.md
    python -m bench extraction            some of them, printed only
    python -m bench --write extraction    some of them, in place of their sections in docs/benchmarks.md
"""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from pathlib import Path

SECTIONS = {
    "extraction": "Extraction",
    "imports": "Import time",
    "jsonl": "A stream of failures through `amends decode --jsonl`",
    "overhead": "A successful call under recovery",
    "hints": "The first wait after unusual hints, compared with other libraries",
    "stores": "Stores",
    "http": "HTTP",
    "http_client": "A successful HTTP call with recovery",
    "mcp_calls": "MCP tool calls, guarded and with recovery",
    "chains": "Calls at the last service of a chain",
    "arcp": "ARCP: an echo job over WebSocket",
    "arcp_durable": "ARCP: durable jobs on SQLite",
    "cluster": "ARCP: nodes on NATS",
    "a2a": "A2A",
    "a2a_interop": "A2A with adcp 9.2",
    "cli_startup": "Starting a command line",
    "tasks": "Durable tasks",
    "gateway": "The gateway",
    "effects": "The ledger of effects",
    "agents": "Agents that read failures",
}
HERE = Path(__file__).resolve().parent.parent
PAGE = HERE / "docs" / "benchmarks.md"


def machine() -> str:
    """The machine, without its name."""
    cpu = "unknown CPU"
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [
            line.partition(":")[2].strip()
            for line in info.read_text().splitlines()
            if line.startswith("model name")
        ]
        cpu = f"{len(models)} × {models[0]}" if models else cpu
    return f"{cpu}, {platform.system()} {platform.machine()}, Python {platform.python_version()}"


def section(name: str) -> list[str]:
    """One section in a process of its own: what another imported would be counted as its children's memory."""
    code = f"from bench.{name} import main; print('\\n'.join(main()))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=HERE, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout.rstrip().splitlines()


def written(measured: dict[str, list[str]]) -> str:
    """Return the page with these sections replaced and the others unchanged."""
    page = PAGE.read_text() if PAGE.exists() else ""
    kept = dict(re.findall(r"^## (.*)\n\n((?:(?!^## ).*\n)*)", page, re.MULTILINE))
    for name, lines in measured.items():
        kept[SECTIONS[name]] = "\n".join(lines) + "\n"
    # The search finds every word in these tables; other pages come first.
    parts = [
        "---\nsearch:\n  boost: 0.3\n---\n",
        "# Benchmarks",
        "",
        f"Each section is one run on: {machine()}. Unless stated otherwise, figures are medians of CPU time from interleaved",
        "runs. Compare the ratios; absolute figures depend on the machine.",
        "",
    ]
    parts += [f"## {title}\n\n{kept[title].rstrip()}\n" for title in SECTIONS.values() if title in kept]
    return "\n".join(parts)


def main() -> int:
    """Measure what was asked for."""
    asked = sys.argv[1:]
    chosen = [name for name in asked if name in SECTIONS] or list(SECTIONS)
    measured = {}
    for name in chosen:
        print(f"\n## {SECTIONS[name]}\n", flush=True)
        measured[name] = section(name)
        print("\n".join(measured[name]), flush=True)
        if "--write" in asked or len(chosen) == len(SECTIONS):
            PAGE.write_text(written(measured))
    return 0


if __name__ == "__main__":
    sys.exit(main())
