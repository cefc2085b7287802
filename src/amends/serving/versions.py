"""The versions of frameworks that a binding works with. The same numbers are in pyproject.toml; a test compares them."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

__all__ = ["require"]


def require(package: str, *, at_least: tuple[int, int], below: int, binding: str, extra: str) -> None:
    """
    Check the installed version of a framework.

    Args:
        package: the name of its distribution.
        at_least: the first version that the binding works with, as (major, minor).
        below: the first major version that it does not work with.
        binding: the module that needs the framework.
        extra: the extra of this package that installs the right version.

    Raises:
        ImportError: another version is installed; the message names both.

    """
    try:
        installed = version(package)
    except PackageNotFoundError:
        # A source tree without metadata.
        return
    parts = installed.split(".")
    try:
        found = int(parts[0]), int(parts[1]) if len(parts) > 1 and parts[1].isdecimal() else 0
    except ValueError:
        return
    if not at_least <= found < (below, 0):
        later = f"a later {at_least[0]}.x" if below == at_least[0] + 1 else f"later, before {below}"
        needed = f"{at_least[0]}.{at_least[1]} or {later}"
        raise ImportError(
            f"{binding} needs {package} {needed}; {installed} is installed: pip install 'amends[{extra}]'"
        )
