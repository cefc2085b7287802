"""What importing costs: CPU, modules and resident memory, each in a fresh interpreter, in turn."""

from __future__ import annotations

import os
import subprocess
import sys
from statistics import median

PROBE = """
import sys
before = set(sys.modules)
{statement}
count = len(set(sys.modules) - before)
# Not ru_maxrss: that begins with the parent's.
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]
print(count, peak)
"""

STATEMENTS = {
    "nothing": "pass",
    "import json, dataclasses": "import json, dataclasses",
    "import amends": "import amends",
    "import msgspec": "import msgspec",
    "from amends import extract, decide, Fault": "from amends import extract, decide, Fault",
    "from amends import * (every name)": "from amends import *",
}


def main(rounds: int = 25) -> list[str]:
    results: dict[str, list[tuple[float, int, int]]] = {name: [] for name in STATEMENTS}
    for _ in range(rounds):
        for name, statement in STATEMENTS.items():
            results[name].append(_probe(statement))
    floor = median(cpu for cpu, _, _ in results["nothing"])
    base = median(cpu for cpu, _, _ in results["import json, dataclasses"]) - floor
    rows = [
        "| statement | CPU ms over a bare interpreter | against json, dataclasses | modules | resident MB |",
        "|---|---|---|---|---|",
    ]
    for name, runs in results.items():
        cpu = median(run[0] for run in runs) - floor
        rows.append(
            f"| `{name}` | {cpu:.1f} | {cpu / base:.2f} | {runs[0][1]} | {median(run[2] for run in runs) / 1024:.1f} |"
        )
    return [*rows, "", "Target: `import amends` takes at most 2 times `import json, dataclasses`."]


def _probe(statement: str) -> tuple[float, int, int]:
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    command = [sys.executable, "-I", "-c", PROBE.format(statement=statement)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    assert process.returncode == 0
    modules, resident = output.split()
    return (usage.ru_utime + usage.ru_stime) * 1000, int(modules), int(resident)
