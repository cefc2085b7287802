"""
`amends decode --jsonl` over 100 MB and 1 GB of lines: its rate against a bare msgspec decode + encode loop, and
whether its memory stays flat.

The lines are S4's RATE_LIMITED result and one error of every other dialect, in equal shares.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from amends.commands.samples import SAMPLES
from bench.extraction import RESULT

BARE = """
import sys, msgspec
decode, encode = msgspec.json.decode, msgspec.json.encode
write = sys.stdout.buffer.write
for line in sys.stdin.buffer:
    write(encode(decode(line)) + b"\\n")
"""


def lines() -> bytes:
    """One line of each dialect."""
    others = [response for _, via, _, response in SAMPLES if via != "mcp"]
    return b"".join(msgspec.json.encode(item) + b"\n" for item in (RESULT, *others))


def main(megabytes: int = 100) -> list[str]:
    one = lines()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "lines.jsonl"
        _fill(source, one, megabytes)
        ours = [sys.executable, "-m", "amends", "decode", "--jsonl"]
        bare = [sys.executable, "-c", BARE]
        rates = [(_run(ours, source)[0], _run(bare, source)[0]) for _ in range(3)]
        ratios = sorted(b / a for a, b in rates)
        _, small = _run(ours, source)
        _fill(source, one, megabytes * 10)
        _, large = _run(ours, source)
    seconds = min(a for a, _ in rates)
    return [
        (
            f"- {megabytes} MB in {seconds:.1f} s of CPU ({megabytes / seconds:.0f} MB/s); the rate is "
            f"{ratios[1]:.2f} of the bare loop's (want ≥ 0.10; runs {', '.join(f'{r:.2f}' for r in ratios)})"
        ),
        f"- peak memory {small} MB over {megabytes} MB, {large} MB over {megabytes * 10} MB (want the same)",
    ]


def _fill(path: Path, one: bytes, megabytes: int) -> None:
    block = one * (1_000_000 // len(one) + 1)
    with path.open("wb") as file:
        written = 0
        while written < megabytes * 1_000_000:
            written += file.write(block)


def _run(command: list[str], source: Path) -> tuple[float, int]:
    """CPU seconds and peak megabytes of a command over a file."""
    with source.open("rb") as stdin, open(os.devnull, "wb") as sink:
        process = subprocess.Popen(command, stdin=stdin, stdout=sink)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss // 1024


if __name__ == "__main__":
    begin = time.monotonic()
    print("\n".join(main()), f"{time.monotonic() - begin:.0f} s")
