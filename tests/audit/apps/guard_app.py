"""An application without a framework that parses its own arguments, with the binding (BOUND) or without."""

import sys

import service

HELP = "usage: tool [--help] [--output text|json|problem] get URL"


@service.reads
def run():
    arguments = sys.argv[1:]
    if arguments == ["--help"]:
        print(HELP)
        return None
    if len(arguments) != 2 or arguments[0] != "get":
        if service.BOUND:
            from amends.errors.cli import UsageError

            raise UsageError("no such command or flag", suggestions=["See --help"])
        sys.exit(HELP)
    return service.fetch(arguments[1])


if service.BOUND:
    from amends.bindings.guard import guard

    guard(run)()
run()
