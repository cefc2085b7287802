"""The parameters that a Click or Typer application declares, and the values they accept."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

__all__ = ["choices", "declared_values"]


def declared_values(command: object, arguments: Sequence[str], flag: str) -> Collection[str] | None:
    """
    Return the values that the application's own flag accepts (empty: any value), or None if it has no such flag.

    Only the command and the subcommands that `arguments` select are searched.
    """
    for each in _selected_commands(command, arguments):
        for param in getattr(each, "params", ()):
            if flag in (*getattr(param, "opts", ()), *getattr(param, "secondary_opts", ())):
                return choices(param)
    return None


def choices(param: object) -> list[str]:
    """Return the values a parameter accepts, or an empty list for any value. Typer 0.28 moved them to `type_descriptor`."""
    kind = getattr(param, "type", None) or getattr(param, "type_descriptor", None)
    return [str(getattr(choice, "value", choice)) for choice in getattr(kind, "choices", None) or ()]


def _selected_commands(command: object, arguments: Sequence[str]) -> Iterator[object]:
    """Yield the command and the subcommands that the arguments select. Lazily loaded subcommands are not loaded."""
    yield command
    for argument in arguments:
        subcommand = (getattr(command, "commands", None) or {}).get(argument)
        if subcommand is not None:
            yield subcommand
            command = subcommand
