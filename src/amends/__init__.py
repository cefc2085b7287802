"""
Failures as something an agent can act on.

A producer raises one typed error; it comes out right in every dialect. A consumer gets any of them back as one
`Fault`, knows what to do next, and can have it done within hard bounds.
"""

from __future__ import annotations

from importlib import import_module

from amends._version import __version__

# Type checkers take this name for true; importing it from typing would cost more than everything else here.
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
    from amends.recovery import Upstream, arecover, recover

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
    "decide",
    "decode",
    "encode",
    "extract",
    "for_llm",
    "from_exception",
    "from_upstream",
    "losses",
    "recover",
    "register",
    "translate",
]

# Each name is loaded when it is first asked for: importing the front door costs nothing, and a program that only
# decides never loads what decodes.
_HOMES = {
    "Decision": "core.decision",
    "Fault": "core.fault",
    "FaultError": "errors.base",
    "Operation": "core.operation",
    "Policy": "core.policy",
    "Recovery": "core.enums",
    "State": "core.decision",
    "Upstream": "recovery",
    "arecover": "recovery",
    "decide": "core.decision",
    "decode": "dialects",
    "encode": "dialects",
    "extract": "carriers.extraction",
    "for_llm": "core.fence",
    "from_exception": "foreign",
    "from_upstream": "foreign",
    "losses": "dialects.translation",
    "recover": "recovery",
    "register": "foreign.registry",
    "translate": "dialects.translation",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        # With the name and the module in it, Python says what was probably meant.
        raise AttributeError(
            f"module 'amends' has no attribute {name!r}", name=name, obj=import_module(__name__)
        )
    value = getattr(import_module(f"amends.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
