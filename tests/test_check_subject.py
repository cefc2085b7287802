"""The commit-msg hook."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "check_subject.py"
spec = importlib.util.spec_from_file_location("check_subject", SCRIPT)
check_subject = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_subject)


@pytest.mark.parametrize(
    "message",
    [
        "Release the key when the handler did not run",
        "Flush the recorder\n\nIt lost its last lines.\n# a comment of git's",
        "Merge branch 'a very long name of a branch in another repository' into main and further",
    ],
)
def test_good_messages(message):
    """A short imperative subject with a blank line before the body has no mistakes."""
    assert check_subject.mistakes(message) == []


@pytest.mark.parametrize(
    ("message", "part"),
    [
        ("", "empty"),
        ("A" + "x" * 72, "73 characters"),
        ("Fix it.", "full stop"),
        ("fix it", "small letter"),
        ("Fixed it", "imperative"),
        ("Fixes it", "imperative"),
        ("Fix it\nbecause", "not blank"),
    ],
)
def test_mistakes_are_reported(message, part):
    """Each mistake is reported with a sentence."""
    assert any(part in mistake for mistake in check_subject.mistakes(message))


def test_the_hook_fails_on_a_mistake(tmp_path):
    """The hook exits 1, which stops the commit, and prints the mistake."""
    file = tmp_path / "message"
    file.write_text("fixed.")
    done = subprocess.run([sys.executable, SCRIPT, file], capture_output=True, text=True)
    assert done.returncode == 1
    assert "imperative" in done.stderr or "small letter" in done.stderr
