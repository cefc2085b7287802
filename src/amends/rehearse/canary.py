"""
Canaries: names that occur only inside a service, and must not reach a model or a user.

They are in what no service sends to a caller on purpose: the trace in the body of a 5xx answer, the comment of an error page, the
name of a machine in a header. They are ordinary names, which no redactor removes by their form.
"""

from __future__ import annotations

from random import Random

__all__ = ["canary"]

_FIRST = (
    "basalt",
    "cobalt",
    "juniper",
    "lantern",
    "marble",
    "ochre",
    "pewter",
    "quartz",
    "saffron",
    "walnut",
)
_SECOND = ("badger", "curlew", "dunnock", "gannet", "heron", "kestrel", "lapwing", "osprey", "plover", "wren")


def canary(dice: Random) -> str:
    """
    Return a new canary.

    >>> canary(Random(7))
    'ochre-dunnock-ledger-60'
    """
    return f"{dice.choice(_FIRST)}-{dice.choice(_SECOND)}-ledger-{dice.randrange(10, 100)}"
