"""The sample application in argparse."""

import argparse

import bodies

from amends.bindings.argparse import main

parser = argparse.ArgumentParser(prog="sample")
parser.add_argument("--version", action="version", version="1.2.3")
commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)


def command(name, *words):
    below = commands.add_parser(name)
    for word in words:
        below.add_argument(word)
    below.set_defaults(function=getattr(bodies, name), words=words)
    return below


shown = command("show", "name")
shown.add_argument("--count", type=int, default=1)
shown.add_argument("--color", choices=["red", "green", "blue"], default="red")
shown.set_defaults(words=("name", "count", "color"))
for name, words in {
    "fail": ["kind"],
    "noise": [],
    "odd": ["kind"],
    "slow": ["path"],
    "big": [],
    "keyed": ["path"],
    "upstream": ["url"],
    "recovered": ["url"],
}.items():
    command(name, *words)
flaky = command("flaky", "path")
flaky.add_argument("times", type=int)
flaky.set_defaults(words=("path", "times"))


def run(args):
    return args.function(*(getattr(args, word) for word in args.words))


if __name__ == "__main__":
    main(parser, run)
