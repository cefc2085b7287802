"""The sample application in argparse."""

import argparse

import bodies

from amends.bindings.argparse import main

parser = argparse.ArgumentParser(prog="sample")
parser.add_argument("--version", action="version", version="1.2.3")
commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)


def command(name, *arguments):
    subparser = commands.add_parser(name)
    for argument in arguments:
        subparser.add_argument(argument)
    subparser.set_defaults(function=getattr(bodies, name), names=arguments)
    return subparser


shown = command("show", "name")
shown.add_argument("--count", type=int, default=1)
shown.add_argument("--color", choices=["red", "green", "blue"], default="red")
shown.set_defaults(names=("name", "count", "color"))
for name, arguments in {
    "fail": ["kind"],
    "noise": [],
    "odd": ["kind"],
    "slow": ["path"],
    "big": [],
    "keyed": ["path"],
    "broken": ["kind", "path"],
    "later": ["path"],
    "upstream": ["url"],
    "recovered": ["url"],
}.items():
    command(name, *arguments)
for name in ("flaky", "flaky_later"):
    flaky = command(name, "path")
    flaky.add_argument("times", type=int)
    flaky.set_defaults(names=("path", "times"))


def run(args):
    return args.function(*(getattr(args, name) for name in args.names))


if __name__ == "__main__":
    main(parser, run)
