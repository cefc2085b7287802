"""Every file in examples/ runs on its own and prints what its last lines show."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


def expected(text):
    return "".join(line.removeprefix("# > ") + "\n" for line in text.splitlines() if line.startswith("# > "))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_it_prints_what_it_says(path, tmp_path):
    """From any folder, in a fresh interpreter, warnings being errors."""
    running = subprocess.Popen(
        [sys.executable, "-W", "error", "-X", "faulthandler", path],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        said, complained = running.communicate(timeout=250)
    except subprocess.TimeoutExpired:
        # Prints the stack of every thread.
        running.send_signal(signal.SIGABRT)
        said, complained = running.communicate()
    assert running.returncode == 0, said + complained
    assert expected(path.read_text())
    assert said == expected(path.read_text())
