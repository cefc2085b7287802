"""
Check a commit message: subject at most 72 characters, imperative, no full stop; a blank line before the body.

    python scripts/check_subject.py .git/COMMIT_EDITMSG

Git runs it as the commit-msg hook (`make hooks`).
"""

from __future__ import annotations

import sys
from pathlib import Path

LONGEST = 72
SKIPPED = ("Merge ", "Revert ", "fixup! ", "squash! ")
# Third person and past tense of common verbs end like this; an imperative verb seldom does.
ENDINGS = ("ed", "ing", "es")
IMPERATIVES = frozenset(
    {"Embed", "Feed", "Need", "Speed", "Seed", "Bring", "String", "Ping", "Process", "Address"}
)


def mistakes(message: str) -> list[str]:
    """Return what is wrong with a commit message; empty when nothing is."""
    lines = [line for line in message.splitlines() if not line.startswith("#")]
    subject = lines[0].strip() if lines else ""
    if subject.startswith(SKIPPED):
        return []
    found = []
    if not subject:
        found.append("the subject is empty")
    if len(subject) > LONGEST:
        found.append(f"the subject has {len(subject)} characters, at most {LONGEST} are allowed")
    if subject.endswith("."):
        found.append("the subject ends with a full stop")
    first = subject.partition(" ")[0]
    if first[:1].islower():
        found.append("the subject begins with a small letter")
    if first.endswith(ENDINGS) and first not in IMPERATIVES:
        found.append(f"the subject begins with {first!r}: use the imperative (Add, Fix, Remove)")
    if len(lines) > 1 and lines[1].strip():
        found.append("the second line is not blank")
    return found


def main() -> int:
    """Print the mistakes of the message in the file named on the command line."""
    found = mistakes(Path(sys.argv[1]).read_text(encoding="utf-8"))
    for mistake in found:
        print(f"commit message: {mistake}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
