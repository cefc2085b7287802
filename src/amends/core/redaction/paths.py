"""File paths, recognised by root, suffix or folder; routes and JSON Pointers are not paths."""

from __future__ import annotations

import re
from functools import cache

from amends.core.redaction.rule import words

__all__ = ["CODE_SUFFIXES", "ROOTS", "judge_absolute", "judge_relative", "judge_root"]

CODE_SUFFIXES = (
    r"py|pyc|pyi|pyx|js|mjs|cjs|jsx|ts|tsx|java|kt|kts|scala|groovy|class|jar|war|go|rb|erb|rs|php|phtml|cs|fs|vb|cshtml"
    r"|cpp|cc|cxx|c|h|hpp|m|swift|ex|exs|erl|clj|hs|lua|pl|pm|r|jl|sql|sh|bash|zsh|ps1|bat|cmd|vue|svelte|jinja|j2|tmpl"
)
_FILE_SUFFIXES = (
    rf"{CODE_SUFFIXES}|log|conf|cfg|cnf|ini|toml|yaml|yml|env|properties|db|sqlite|sqlite3|duckdb|sock|socket|pid|lock"
    r"|pem|key|crt|cer|p12|pfx|jks|kdbx|so|dll|dylib|exe|bin|dat|bak|tar|gz|tgz|zip|bz2|xz|parquet|h5|csv|pkl|npy|tf"
    r"|tfstate|tfvars|service|plist|rdb|wal|swp|tmp|img|iso|whl|egg"
)
_TREES = words(
    "site-packages dist-packages node_modules __pycache__ venv virtualenv public_html htdocs wwwroot secrets "
    "x86_64-linux-gnu bin lib64"
)
# Roots that only occur in file paths, and those a JSON Pointer or a route may begin with too.
ROOTS = "etc|usr|var|opt|srv|tmp|proc|sys|mnt|root|sbin|lib64|nix|cygdrive|boot|Users|Volumes|Applications|Library"
_SHARED_ROOTS = words("home private snap workspace workspaces secrets System app")
# Names of resources begin with these: "projects/shop/secrets/db-main".
_RESOURCES = words("projects organizations folders accounts tenants namespaces")
_DEVICES = words(
    "null zero random urandom shm tty stdin stdout stderr sda sdb nvme0n1 secrets lock user docker"
)
# "vercel/next.js" is a name; "src/lib/next.js" is a file.
_ENDS_OF_NAMES = words("js ts r m c h so key bin env csv zip")


def _quoted_end(match: re.Match[str]) -> int:
    """Return where a path ends: at the closing quote of a quoted path (it may contain spaces), else at the match's end."""
    text, start, end = match.string, match.start(), match.end()
    opening = text[start - 1 : start] if start else ""
    if opening and opening in "\"'`":
        closing = text.find(opening, start, start + 300)
        if closing >= end and "\n" not in text[start:closing]:
            return closing
    while end > start and text[end - 1] in ".:":
        end -= 1
    return end


@cache
def _file() -> re.Pattern[str]:
    return re.compile(rf"\.(?:{_FILE_SUFFIXES})(?:\.\d+)*\Z", re.IGNORECASE)


def judge_root(match: re.Match[str]) -> tuple[int, int] | None:
    """A path below a root that only occurs in file paths."""
    return match.start(), _quoted_end(match)


def judge_absolute(match: re.Match[str]) -> tuple[int, int] | None:
    """An absolute path with an unknown root: a file, or a route?"""
    segments = match[0].rstrip(".:").split("/")[1:]
    indexed = any(segment.isdigit() for segment in segments)
    hidden = any(
        segment.startswith(".") and segment not in {".", "..", ".well-known"} for segment in segments
    )
    if (
        hidden
        or (len(segments) > 1 and _file().search(segments[-1]))
        or (not _TREES.isdisjoint(segments[:-1]) and not _is_version(segments[0]))
        or (segments[0] in _SHARED_ROOTS and len(segments) > 1 and not indexed)
        or (segments[0] in {"run", "dev"} and len(segments) > 1 and segments[1] in _DEVICES)
    ):
        return match.start(), _quoted_end(match)
    return None


def _is_version(segment: str) -> bool:
    """Whether a route begins with it: "/v1/secrets/db-main/versions/3"."""
    return segment[:1] == "v" and segment[1:].isdigit()


def judge_relative(match: re.Match[str]) -> tuple[int, int] | None:
    """A relative path: a file, or the name of a project, a media type, a choice."""
    path = match[0].rstrip(".:")
    segments = path.split("/")
    suffix = segments[-1].rpartition(".")[2]
    deep = len(segments) > 2 or suffix not in _ENDS_OF_NAMES
    hidden = path.startswith(".")
    in_tree = segments[0] not in _RESOURCES and not _TREES.isdisjoint(segments[:-1])
    if hidden or (deep and _file().search(segments[-1])) or in_tree:
        return match.start(), match.start() + len(path)
    return None
