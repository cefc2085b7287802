"""An argparse application, with the binding (BOUND) or without."""

import argparse

import service

parser = argparse.ArgumentParser()
commands = parser.add_subparsers(required=True)
get = commands.add_parser("get")
get.add_argument("url")


@service.reads
def run(args):
    return service.fetch(args.url)


get.set_defaults(function=run)


if service.BOUND:
    from amends.bindings.argparse import main

    main(parser, run)
run(parser.parse_args())
