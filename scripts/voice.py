"""
Count mannered words in the project's prose and list the lines that have them.

    python scripts/voice.py                 # the figure per 1,000 words, and the lines
    python scripts/voice.py src/amends/http # one folder
    python scripts/voice.py --summary       # the figure per folder only

Prose is the text of Markdown files outside code, and the docstrings, comments and messages of Python files. A message
is a string literal with at least four words. `MANNERED` is the list of `MARKERS` in its inflected forms: words that
this code base once used seven times per 1,000 words and that comparable projects use 0.0 to 0.2 times. The second
figure, `wider`, adds words that are plain by themselves but were part of the same style; read those lines and decide.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]

MANNERED = re.compile(r"\b(somebody|nobody|whoever|anybody|stands|told|heard|words?)\b", re.IGNORECASE)
WIDER = re.compile(
    r"\b(stood|tells?|telling|hears?|hearing|sa(?:y|ys|id|ying)|whom|spoke|speaks?|vouch\w*|bur(?:y|ied|ies)|"
    r"bells?|errands?|front door|no more|nothing of|anew|handed|brought|brings?|knows nothing|everybody)\b",
    re.IGNORECASE,
)
# Terms of art that contain a counted word; `words` is an array of zsh in a completion script.
TERMS = re.compile(
    r"\bwords\[|\bshift \$\w+ words\b|"
    r"\b(words? (?:count|boundar\w+|list|size)|keywords?|passwords?|code words?|reserved words?)\b|"
    r"\b\d[\d,]* words\b|\bper 1,000 words\b",
    re.IGNORECASE,
)
WORD = re.compile(r"[A-Za-z][A-Za-z'’-]*")
GENERATED = ("docs/catalogue-", "src/amends/errors/adcp.py")
SELF = "scripts/voice.py"


class Line(NamedTuple):
    """One line of prose and where it is."""

    number: int
    text: str


def of_markdown(text: str) -> Iterator[Line]:
    """The lines outside code blocks, without inline code."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
            yield Line(number, re.sub(r"`[^`]*`", " ", line))


def of_python(text: str) -> Iterator[Line]:
    """Docstrings, comments, and string literals of at least four words."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield Line(token.start[0], token.string.lstrip("#"))
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        if len(WORD.findall(node.value)) < 4:
            continue
        for offset, line in enumerate(node.value.splitlines()):
            if not line.lstrip().startswith((">>>", "...")):
                yield Line(node.lineno + offset, re.sub(r"`[^`]*`", " ", line))


@cache
def prose(path: Path) -> list[Line]:
    """The prose of one file."""
    text = path.read_text(encoding="utf-8")
    return list(of_markdown(text) if path.suffix == ".md" else of_python(text))


def counted(path: Path, pattern: re.Pattern[str]) -> tuple[int, list[tuple[Line, list[str]]]]:
    """How many words a file's prose has, and the lines that match."""
    words, found = 0, []
    for line in prose(path):
        words += len(WORD.findall(line.text))
        hits = pattern.findall(TERMS.sub(" ", line.text))
        if hits:
            found.append((line, hits))
    return words, found


def tracked(places: list[str]) -> list[Path]:
    """The Python and Markdown files under `places` that git knows."""
    listed = subprocess.run(
        ["git", "ls-files", "--", *places], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    return [
        ROOT / name
        for name in listed
        if name.endswith((".py", ".md")) and name != SELF and not name.startswith(GENERATED)
    ]


def main() -> int:
    """Print the figures, and the lines unless `--summary` is given."""
    parser = argparse.ArgumentParser(description="Count mannered words per 1,000 words of prose.")
    parser.add_argument("places", nargs="*", default=["."], help="files or folders; default: everything")
    parser.add_argument("--summary", action="store_true", help="only the figures, by folder")
    parser.add_argument("--wider", action="store_true", help="list the wider pattern's lines too")
    args = parser.parse_args()
    totals: dict[str, list[int]] = {}
    for path in tracked(args.places):
        name = path.relative_to(ROOT)
        folder = "/".join(name.parts[:3] if name.parts[0] == "src" else name.parts[:2])
        folder = (
            folder if (ROOT / folder).is_dir() else (str(name.parent) if len(name.parts) > 1 else str(name))
        )
        words, strict = counted(path, MANNERED)
        _, wide = counted(path, WIDER)
        sums = totals.setdefault(folder, [0, 0, 0])
        sums[0] += words
        sums[1] += sum(len(hits) for _, hits in strict)
        sums[2] += sum(len(hits) for _, hits in wide)
        if not args.summary:
            for line, _ in sorted({*map(_plain, strict), *(map(_plain, wide) if args.wider else ())}):
                print(f"{name}:{line}: {_}")
    for folder, (words, strict_count, wide_count) in sorted(totals.items()):
        if args.summary and words:
            print(f"{1000 * strict_count / words:6.2f} {1000 * wide_count / words:6.2f} {words:7}  {folder}")
    words, strict_count, wide_count = (sum(column) for column in zip(*totals.values(), strict=True))
    print(
        f"{1000 * strict_count / max(words, 1):.2f} per 1,000 words ({strict_count} in {words}); "
        f"wider: {1000 * wide_count / max(words, 1):.2f}"
    )
    return 0


def _plain(found: tuple[Line, list[str]]) -> tuple[int, str]:
    line, _ = found
    return line.number, line.text.strip()


if __name__ == "__main__":
    raise SystemExit(main())
