"""
Failures an agent can act on.

A producer raises a typed error, and amends encodes it for HTTP, command lines, tasks, AdCP and ARCP. A consumer reads any
of these formats into a `Fault`, decides what to do next (`decide`), and can let `recover` do it within hard limits.
"""

from __future__ import annotations

from importlib import import_module
from os import environ

from amends._version import __version__

# Type checkers treat this name as true. Importing it from typing would take longer than the rest of this module.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amends.carriers.extraction import extract
    from amends.core.decision import Decision, State, decide
    from amends.core.enums import Recovery
    from amends.core.fault import Fault
    from amends.core.fence import for_llm
    from amends.core.operation import Operation
    from amends.core.policy import Policy
    from amends.dialects import decode, encode
    from amends.dialects.translation import losses, translate
    from amends.errors.base import FaultError
    from amends.foreign import from_exception, from_upstream
    from amends.foreign.registry import register
    from amends.foreign.trust import own
    from amends.page import dashboard
    from amends.recorder import record
    from amends.recovery import Upstream, arecover, arecover_stream, recover, recover_stream

__all__ = [
    "Decision",
    "Fault",
    "FaultError",
    "Operation",
    "Policy",
    "Recovery",
    "State",
    "Upstream",
    "__version__",
    "arecover",
    "arecover_stream",
    "dashboard",
    "decide",
    "decode",
    "encode",
    "extract",
    "for_llm",
    "from_exception",
    "from_upstream",
    "losses",
    "own",
    "record",
    "recover",
    "recover_stream",
    "register",
    "translate",
]

# The module of each public name. A name is imported at its first use, so `import amends` is cheap and a program that
# only calls `decide` does not load the decoders.
_MODULES = {
    "Decision": "core.decision",
    "Fault": "core.fault",
    "FaultError": "errors.base",
    "Operation": "core.operation",
    "Policy": "core.policy",
    "Recovery": "core.enums",
    "State": "core.decision",
    "Upstream": "recovery",
    "arecover": "recovery",
    "arecover_stream": "recovery",
    "dashboard": "page",
    "decide": "core.decision",
    "decode": "dialects",
    "encode": "dialects",
    "extract": "carriers.extraction",
    "for_llm": "core.fence",
    "from_exception": "foreign",
    "from_upstream": "foreign",
    "losses": "dialects.translation",
    "own": "foreign.trust",
    "record": "recorder",
    "recover": "recovery",
    "recover_stream": "recovery",
    "register": "foreign.registry",
    "translate": "dialects.translation",
}


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        # With `name` and `obj` set, Python's traceback suggests the nearest name.
        raise AttributeError(
            f"module 'amends' has no attribute {name!r}", name=name, obj=import_module(__name__)
        )
    value = getattr(import_module(f"amends.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


if environ.get("AMENDS_RECORD"):
    from amends.core.recording import start_at_first_failure

    start_at_first_failure(lambda: import_module("amends.recorder").record(environ["AMENDS_RECORD"]))
