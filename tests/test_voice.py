"""scripts/voice.py: what it counts, and the figure of this repository."""

import importlib.util
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "scripts" / "voice.py"
spec = importlib.util.spec_from_file_location("voice", SCRIPT)
voice = importlib.util.module_from_spec(spec)
spec.loader.exec_module(voice)


def hits(path):
    return [hit for _, found in voice.counted(path, voice.MANNERED)[1] for hit in found]


def test_prose_is_counted_and_code_is_not(tmp_path):
    """Docstrings, comments and messages count; identifiers, inline code and code blocks do not."""
    python = tmp_path / "a.py"
    python.write_text('"""Nobody knows `whoever` here."""\nwhoever = 1  # told twice\nsay = "somebody"\n')
    assert sorted(hits(python)) == ["Nobody", "told"]
    page = tmp_path / "a.md"
    page.write_text(
        "Nobody calls `nobody()`.\n\n```\nnobody\n```\n\n    nobody\n\nThe password and keywords are fine.\n"
    )
    assert hits(page) == ["Nobody"]


def test_this_repository_is_below_the_limit():
    """Comparable projects have 0.0 to 0.2 per 1,000 words; the limit here is 0.5."""
    done = subprocess.run([sys.executable, SCRIPT, "--summary"], capture_output=True, text=True, check=True)
    figure = float(done.stdout.splitlines()[-1].split()[0])
    assert figure < 0.5, done.stdout
