"""The completion script for fish, with descriptions: one `complete` line per candidate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from amends.commands.completion.candidates import Candidates

__all__ = ["script"]

_SCRIPT = """\
# Completion for amends. In ~/.config/fish/config.fish: amends completion fish | source
function __amends_at
    set -l at amends
    for argument in (commandline -opc)[2..]
        # Another command starts after --.
        test "$argument" = --; and return 1
        contains -- "$at $argument" {paths}; and set at "$at $argument"
    end
    test "$at" = "$argv"
end
function __amends_after_dashes
    contains -- -- (commandline -opc)
end
function __amends_other_command
    set -l typed (commandline -opc)
    set -l dashes (contains -i -- -- $typed)
    complete -C (string join ' ' -- (string escape -- $typed[(math $dashes + 1)..]) (commandline -ct))
end
complete -c amends -n __amends_after_dashes -f -a '(__amends_other_command)'
{lines}
"""


def script(commands: Iterable[Candidates]) -> str:
    """Return the script."""
    known = list(commands)
    paths = " ".join(f'"{command.path}"' for command in known)
    return _SCRIPT.format(paths=paths, lines="\n".join(line for command in known for line in _lines(command)))


def _lines(command: Candidates) -> Iterator[str]:
    here = f"complete -c amends -n '__amends_at {command.path}'"
    for argument, help in command.arguments.items():
        yield f"{here} -f -a {argument}{_description(help)}"
    if command.asked:
        yield f"{here} -f -a '({command.asking})'"
    for flag, help in command.flags.items():
        values = command.values.get(flag)
        # -r: the flag takes a value; -x: the value is not a file.
        takes = "" if values is None else f" -x -a '{' '.join(values)}'" if values else " -r"
        yield f"{here} -l {flag[2:]}{takes}{_description(help)}"


def _description(help: str) -> str:
    escaped = help.replace("\\", "\\\\").replace("'", "\\'")
    return f" -d '{escaped}'" if help else ""
