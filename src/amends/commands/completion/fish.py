"""Completion for fish, with what each word is for: a line for each thing that may be typed, and where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from amends.commands.completion.places import Place

__all__ = ["script"]

_SCRIPT = """\
# Completion for amends. In ~/.config/fish/config.fish: amends completion fish | source
function __amends_at
    set -l at amends
    for word in (commandline -opc)[2..]
        # Another command begins here.
        test "$word" = --; and return 1
        contains -- "$at $word" {paths}; and set at "$at $word"
    end
    test "$at" = "$argv"
end
function __amends_behind
    contains -- -- (commandline -opc)
end
function __amends_other
    set -l typed (commandline -opc)
    set -l dashes (contains -i -- -- $typed)
    complete -C (string join ' ' -- (string escape -- $typed[(math $dashes + 1)..]) (commandline -ct))
end
complete -c amends -n __amends_behind -f -a '(__amends_other)'
{lines}
"""


def script(places: Iterable[Place]) -> str:
    """The whole of it."""
    known = list(places)
    paths = " ".join(f'"{place.path}"' for place in known)
    return _SCRIPT.format(paths=paths, lines="\n".join(line for place in known for line in _lines(place)))


def _lines(place: Place) -> Iterator[str]:
    here = f"complete -c amends -n '__amends_at {place.path}'"
    for word, about in place.words.items():
        yield f"{here} -f -a {word}{_about(about)}"
    for flag, about in place.flags.items():
        values = place.values.get(flag)
        # -r: something follows; -x: and no file.
        takes = "" if values is None else f" -x -a '{' '.join(values)}'" if values else " -r"
        yield f"{here} -l {flag[2:]}{takes}{_about(about)}"


def _about(words: str) -> str:
    escaped = words.replace("\\", "\\\\").replace("'", "\\'")
    return f" -d '{escaped}'" if words else ""
