"""
The demo's command: `python -m amends.demo.services.cellar --at URL BOTTLES`.

It calls a service and reports the result as an envelope with an exit code.
"""

from __future__ import annotations

import argparse
import urllib.error
import urllib.request

from amends import extract
from amends.bindings.argparse import main
from amends.chain import relay
from amends.errors import ServiceUnavailableError

__all__ = ["parser", "reserve"]


def parser() -> argparse.ArgumentParser:
    """Return the command's parser."""
    cellar = argparse.ArgumentParser(prog="cellar", description="Reserve bottles of wine.")
    cellar.add_argument("--at", required=True, help="the address of the cellar's service")
    cellar.add_argument("bottles", type=int, help="how many bottles to reserve")
    return cellar


def reserve(args: argparse.Namespace) -> dict[str, object]:
    """Reserve bottles. A failure of the service is raised as the command's own."""
    request = urllib.request.Request(f"{args.at}/wine", data=b"{}", method="POST")  # noqa: S310 - loopback
    try:
        with urllib.request.urlopen(request, timeout=10):  # noqa: S310
            return {"bottles": args.bottles}
    except urllib.error.HTTPError as error:
        fault = extract(
            {"status": error.code, "headers": dict(error.headers), "body": error.read().decode()}, via="http"
        )
        raise relay(fault, own=True) if fault else ServiceUnavailableError() from None


if __name__ == "__main__":
    main(parser(), reserve)
