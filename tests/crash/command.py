"""
The command that orders: `python -m tests.crash.command amends|plain FOLDER`.

With amends its failures are an envelope and an exit code (`amends.bindings.argparse.main`).
"""

import argparse
import sys

from tests.crash.instants import enter
from tests.crash.shop import Shop


def order(folder):
    enter(folder, "server")
    shop = Shop(folder)
    shop.order()
    shop.reach("after the record")
    print("ordered", flush=True)
    shop.reach("in the answer")


def main():
    kind, folder = sys.argv[1:]
    if kind == "plain":
        order(folder)
        return
    from amends.bindings.argparse import main

    main(argparse.ArgumentParser(prog="order"), lambda _: order(folder), [], piped="json")


if __name__ == "__main__":
    main()
