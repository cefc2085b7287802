"""
The command: `python -m amends.demo.services.cellar --at URL reserve BOTTLES`.

A command line like many: it asks a service, and tells how that went by an envelope and an exit code.
"""

from __future__ import annotations

import argparse
import urllib.error
import urllib.request
from typing import Any

from amends import FaultError, extract
from amends.bindings.argparse import main
from amends.errors import ServiceUnavailableError

__all__ = ["parser", "reserve"]


def parser() -> argparse.ArgumentParser:
    """Its arguments."""
    found = argparse.ArgumentParser(prog="cellar", description="Set bottles aside.")
    found.add_argument("--at", required=True, help="where the cellar's service is")
    found.add_argument("bottles", type=int)
    return found


def reserve(args: argparse.Namespace) -> dict[str, Any]:
    """Set bottles aside; what the service refuses is told in the command's own dialect."""
    request = urllib.request.Request(f"{args.at}/wine", data=b"{}", method="POST")  # noqa: S310 - loopback
    try:
        with urllib.request.urlopen(request, timeout=10):  # noqa: S310
            return {"bottles": args.bottles}
    except urllib.error.HTTPError as error:
        fault = extract(
            {"status": error.code, "headers": dict(error.headers), "body": error.read().decode()}, via="http"
        )
        raise FaultError.from_fault(fault) if fault else ServiceUnavailableError() from None


if __name__ == "__main__":
    main(parser(), reserve)
