"""
Print the lowest versions that pyproject.toml declares, as constraints for pip: `make lowest`.

    python scripts/lowest_versions.py http server > constraints.txt
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
_BOUND = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*>=\s*([0-9][\w.]*)")


def lowest(extras: list[str]) -> list[str]:
    """
    Return a constraint for each dependency, of the package itself and of these extras.

    >>> any(line.startswith("msgspec==") for line in lowest([]))
    True

    Raises:
        KeyError: there is no such extra.
        ValueError: a dependency has no lower bound.

    """
    project = tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]
    found: dict[str, str] = {}
    for requirement in (
        *project["dependencies"],
        *(each for extra in extras for each in project["optional-dependencies"][extra]),
    ):
        bound = _BOUND.match(requirement)
        if bound is None:
            raise ValueError(f"{requirement!r} has no lower bound")
        # An extra may need a later version than another.
        found[bound[1]] = max(found.get(bound[1], "0"), bound[2], key=_numbers)
    return [f"{name}=={version}" for name, version in sorted(found.items())]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


if __name__ == "__main__":
    print("\n".join(lowest(sys.argv[1:])))
