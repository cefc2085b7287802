"""An argparse application, with the binding (BOUND) or without."""

import argparse

import service

parser = argparse.ArgumentParser()
commands = parser.add_subparsers(required=True)
commands.add_parser("get").add_argument("url")


def run(args):
    return service.fetch(args.url)


if service.BOUND:
    from amends.bindings.argparse import main

    main(parser, run)
run(parser.parse_args())
