"""The command of the audited samples: one call to a service, without error handling."""

import os
import urllib.request


def fetch(url):
    with urllib.request.urlopen(url, timeout=1) as response:
        return response.read().decode()


BOUND = bool(os.environ.get("BOUND"))
if BOUND:
    import amends

    amends.own("http://127.0.0.1:*")  # the command belongs to the service that it calls


def reads(function):
    """Declare that a command only reads."""
    if not BOUND:
        return function
    from amends.bindings.click import operation

    return operation(read_only=True)(function)
