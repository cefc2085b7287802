"""An application without a framework that reads its words itself, with us (BOUND) or without."""

import sys

import service

HELP = "usage: tool [--help] [--output text|json|problem] get URL"


def run():
    words = sys.argv[1:]
    if words == ["--help"]:
        print(HELP)
        return None
    if len(words) != 2 or words[0] != "get":
        if service.BOUND:
            from amends.errors.cli import UsageError

            raise UsageError("no such command or flag", suggestions=["See --help"])
        sys.exit(HELP)
    return service.fetch(words[1])


if service.BOUND:
    from amends.bindings.guard import guard

    guard(run)()
run()
