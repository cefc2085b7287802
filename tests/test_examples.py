"""Every file in examples/ runs on its own, and prints what its last lines say it prints."""

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
    done = subprocess.run(
        [sys.executable, "-W", "error", path],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert expected(path.read_text())
    assert done.stdout == expected(path.read_text())
