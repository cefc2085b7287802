"""
Rehearse the programs and write the table: `python -m bench.rehearsals`.

    python -m bench.rehearsals --python .venv-rehearsals/bin/python --node .rehearsals-node --out docs/rehearsals.md
    python -m bench.rehearsals --only openai_sdk       # prints the rows of one program
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"
KINDS = ("refused", "rate", "quota", "html", "validation", "lost")
SERVICES = ("openai", "anthropic", "orders")
PYTHON = {
    "openai_sdk": ("OpenAI SDK", ("openai",)),
    "anthropic_sdk": ("Anthropic SDK", ("anthropic",)),
    "litellm_router": ("LiteLLM router", ("litellm",)),
    "langchain_agent": ("LangChain, retry middleware", ("langchain", "langchain-openai")),
    "openai_agents": ("OpenAI Agents", ("openai-agents",)),
    "pydantic_ai_agent": ("pydantic-ai", ("pydantic-ai-slim",)),
    "llama_index_agent": ("LlamaIndex", ("llama-index-core",)),
    "smolagents_agent": ("smolagents", ("smolagents",)),
    "strands_agent": ("Strands", ("strands-agents",)),
}
NODE = {"openai_sdk": ("npm openai", ("openai",)), "ai_sdk": ("npm ai", ("ai",))}
HEAD = (
    "",
    "",
    "handled",
    "harm",
    "duplicates",
    "exhausted asked again",
    "waits broken",
    "gave up",
    "leaks",
    "sent",
)


class Row(NamedTuple):
    """One line of the table."""

    name: str
    variant: str
    rows: list[dict]

    def cells(self) -> list[str]:
        """Return the cells."""
        sent = [row for row in self.rows if row.get("sent")]

        def count(rule: str) -> int:
            return sum(any(each["rule"] == rule for each in row.get("findings", ())) for row in sent)

        handled = sum(row.get("score") == 3 for row in sent)
        harm = sum(row.get("score") == 0 for row in sent)
        figures = [
            count(rule) for rule in ("duplicate", "exhausted-repeated", "wait-broken", "gave-up", "leaked")
        ]
        return [self.name, self.variant, *map(str, (handled, harm, *figures, len(sent)))]


def rehearse(command: list[str], python: str) -> list[dict]:
    """Rehearse a command and return the rows of its report; the check is that there is one order."""
    check = f"{sys.executable} {PROGRAMS / 'check.py'}"
    services = [word for name in SERVICES for word in ("--service", name)]
    kinds = [word for name in KINDS for word in ("--kind", name)]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        options = ["--seed", "7", "--check", check, "--timeout", "120", f"--report={report}"]
        done = subprocess.run(
            [python, "-m", "amends", "rehearse", *services, *kinds, *options, "--", *command],
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
        )
        if not report.exists():
            raise RuntimeError(f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        found = json.loads(report.read_text())
    if found.get("violations"):
        raise RuntimeError(f"{command}: {found['violations']}")
    return found["rows"]


def rows_of(name: str, variant: str, command: list[str], python: str):
    """Yield the row of a program; what cannot be rehearsed is reported and left out."""
    try:
        yield Row(name, variant, rehearse(command, python))
    except RuntimeError as error:
        print(f"left out: {name} {variant}: {error}", file=sys.stderr, flush=True)


def python_rows(python: str, only: str | None):
    """Yield the rows of the Python programs: plain, with amends, and plain behind the gateway."""
    for program, (name, _) in PYTHON.items():
        if only is None or program in only.split(","):
            script = str(PROGRAMS / f"{program}.py")
            for variant in ("plain", "amends"):
                yield from rows_of(name, variant, [python, script, variant], python)
    if only is None or "gateway" in only.split(","):
        for program in ("openai_sdk", "openai_agents"):
            script = str(PROGRAMS / f"{program}.py")
            behind = [sys.executable, str(PROGRAMS / "behind_gateway.py"), "--", python, script, "plain"]
            yield from rows_of(PYTHON[program][0], "gateway", behind, sys.executable)


def node_rows(folder: Path, only: str | None):
    """Yield the rows of the npm packages."""
    for program, (name, _) in NODE.items():
        if only is None or f"npm_{program}" in only.split(","):
            script = shutil.copy(PROGRAMS / f"{program}.mjs", folder)
            yield from rows_of(name, "plain", ["node", script], sys.executable)
            behind = [sys.executable, str(PROGRAMS / "behind_gateway.py"), "--", "node", script]
            yield from rows_of(name, "gateway", behind, sys.executable)


def versions(python: str, node: Path | None) -> str:
    """Return the versions as a sentence."""
    names = [name for _, packages in PYTHON.values() for name in packages]
    code = f"from importlib.metadata import version; print(', '.join(f'{{n}} {{version(n)}}' for n in {names!r}))"
    found = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    if node is not None:
        for _, packages in NODE.values():
            for name in packages:
                found += f", npm {name} {json.loads((node / 'node_modules' / name / 'package.json').read_text())['version']}"
    return found


def table(rows: list[Row]) -> str:
    """Return the table in Markdown."""
    lines = [f"| {' | '.join(HEAD)} |", f"|{'---|' * len(HEAD)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row.cells())} |" for row in rows)])


def main() -> None:
    """Run everything and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--node", type=Path)
    parser.add_argument("--only")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    rows = []
    for source in (python_rows(args.python, args.only), node_rows(args.node, args.only) if args.node else ()):
        for row in source:
            rows.append(row)
            print(
                " | ".join(row.cells()),
                [
                    (
                        f"{r['service']}/{r['kind']}",
                        r.get("score"),
                        [f["rule"] for f in r.get("findings", ())],
                    )
                    for r in row.rows
                ],
                flush=True,
            )
    if args.out:
        page = args.out.read_text()
        begin, end = "<!-- table -->", "<!-- end -->"
        head, tail = page.split(begin)[0], page.split(end)[1]
        made = f"{begin}\n{table(rows)}\n\nVersions: {versions(args.python, args.node)}.\n{end}"
        args.out.write_text(head + made + tail)


if __name__ == "__main__":
    main()
