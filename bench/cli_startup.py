"""
What the binding adds to a Click application's start: CPU of whole processes, ours and plain Click in turn.

Also what a failure costs, and what the frameworks themselves cost, so that the difference can be judged.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median, quantiles

APP = """
import click
@click.group()
def app(): pass
@app.command()
@click.argument("name")
def show(name):
    {body}
    return {{"name": name}}
{main}
"""
RAISE = "from amends.errors import NotFoundError; raise NotFoundError('gone')"
BOUND = "from amends.bindings.click import main; main(app)"

VARIANTS = {
    "python -c pass": ("pass", []),
    "plain Click": (APP.format(body="pass", main="app()"), ["show", "bob"]),
    "with amends, text": (APP.format(body="pass", main=BOUND), ["show", "bob"]),
    "with amends, --output json": (APP.format(body="pass", main=BOUND), ["show", "bob", "--output", "json"]),
    "plain Click, a mistake": (APP.format(body="pass", main="app()"), ["show", "--nope"]),
    "with amends, a mistake as JSON": (
        APP.format(body="pass", main=BOUND),
        ["show", "--nope", "--output", "json"],
    ),
    "with amends, a raised error as JSON": (
        APP.format(body=RAISE, main=BOUND),
        ["show", "bob", "--output", "json"],
    ),
}
FLOOR = "plain Click"


def main(rounds: int = 41) -> list[str]:
    seen: dict[str, list[float]] = {name: [] for name in VARIANTS}
    with tempfile.TemporaryDirectory() as place:
        files = {}
        for number, (name, (source, _)) in enumerate(VARIANTS.items()):
            files[name] = Path(place) / f"app{number}.py"
            files[name].write_text(source)
        for turn in range(rounds + 2):
            order = list(VARIANTS) if turn % 2 else list(reversed(VARIANTS))
            for name in order:
                cost = _cpu([sys.executable, str(files[name]), *VARIANTS[name][1]])
                if turn >= 2:  # the first rounds write bytecode and warm caches
                    seen[name].append(cost)
    rows = ["| process | CPU ms | over plain Click, ms (middle half) |", "|---|---|---|"]
    for name, costs in seen.items():
        over = [ours - plain for ours, plain in zip(costs, seen[FLOOR], strict=True)]
        low, _, high = quantiles(over, n=4)
        rows.append(f"| {name} | {median(costs):.1f} | {median(over):+.1f} ({low:+.1f} to {high:+.1f}) |")
    return [*rows, "", "Target: a success takes at most 25 ms more than plain Click."]


def _cpu(argv: list[str]) -> float:
    """Milliseconds of CPU of one process."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return (usage.ru_utime + usage.ru_stime) * 1000


if __name__ == "__main__":
    print("\n".join(main()))
