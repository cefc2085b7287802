"""
Exit codes of the two published tables: from number to code, and from fault to number.

`v1` is the default (the CLI agent spec); `v2` is the newer table, in which several numbers have another meaning,
most importantly 7 and 9. So a reader uses a table only for a tool that printed the envelope or was declared conformant.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from amends.core.crosswalk import code_in, source_row
from amends.core.enums import Executed
from amends.core.fault import Fault
from amends.core.vocabulary import EVERYDAY, row_for, vocabulary

__all__ = ["DEFAULT_PROFILE", "PROFILES", "Exit", "exit_code"]

DEFAULT_PROFILE = "v1"


class Exit(msgspec.Struct, frozen=True):
    """The meaning of an exit code: a code of the cli vocabulary, and whether the command may have had its effect."""

    code: str
    executed: Executed


_NO, _MAYBE, _YES = Executed.NO, Executed.MAYBE, Executed.YES

# Made from the rows, which hold the numbers. If two codes share a number, it is read as the first of them.
_V1 = {
    **{
        row.exit: Exit(row.code, row.executed)
        for row in reversed(list(vocabulary("cli").rows.values()))
        if row.exit is not None
    },
    130: Exit("INTERNAL_ERROR", _MAYBE),
    143: Exit("INTERNAL_ERROR", _MAYBE),
}
_V2 = {
    1: Exit("INTERNAL_ERROR", _MAYBE),
    2: Exit("VALIDATION_ERROR", _NO),
    3: Exit("PARTIAL_FAILURE", _YES),
    4: Exit("PRECONDITION_FAILED", _NO),
    5: Exit("NOT_FOUND", _NO),
    6: Exit("CONFLICT", _NO),
    7: Exit("PERMISSION_DENIED", _NO),
    8: Exit("AUTH_REQUIRED", _NO),
    9: Exit("PAYMENT_REQUIRED", _NO),
    10: Exit("TIMEOUT", _MAYBE),
    11: Exit("RATE_LIMITED", _NO),
    12: Exit("SERVICE_UNAVAILABLE", _NO),
    13: Exit("REDIRECTED", _NO),
    130: Exit("INTERNAL_ERROR", _MAYBE),
    143: Exit("INTERNAL_ERROR", _MAYBE),
}

PROFILES: Mapping[str, Mapping[int, Exit]] = {"v1": _V1, "v2": _V2}

_WRITTEN = {
    name: {row.code: number for number, row in reversed(list(table.items()))}
    for name, table in PROFILES.items()
}


def exit_code(fault: Fault, profile: str = DEFAULT_PROFILE) -> int:
    """
    Return the exit code of `fault` in a profile. Never 0.

    A translated fault has the exit code of the code it was raised with, so that nothing is lost.

    Raises:
        LookupError: if the profile does not exist.

    """
    written = _WRITTEN.get(profile)
    if written is None:
        raise LookupError(f"no exit profile {profile!r}; there are {', '.join(PROFILES)}")
    row = source_row(fault)
    own = row.exit if row.exit is not None else row_for(EVERYDAY, row.everyday).exit
    if profile == DEFAULT_PROFILE or own == 130:
        return own or 1
    return written.get(row.code) or written.get(code_in("cli", row.everyday)) or 1
