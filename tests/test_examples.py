"""Every file in examples/ runs and prints the output in its last lines."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


def expected(text):
    return "".join(line.removeprefix("# > ") + "\n" for line in text.splitlines() if line.startswith("# > "))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_print_the_output_shown(path, tmp_path):
    """An example runs in any folder, in a new interpreter with warnings as errors."""
    running = subprocess.Popen(
        [sys.executable, "-W", "error", "-X", "faulthandler", path],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        stdout, stderr = running.communicate(timeout=250)
    except subprocess.TimeoutExpired:
        # Prints the stack of every thread.
        running.send_signal(signal.SIGABRT)
        stdout, stderr = running.communicate()
    assert running.returncode == 0, stdout + stderr
    assert expected(path.read_text())
    assert stdout == expected(path.read_text())
