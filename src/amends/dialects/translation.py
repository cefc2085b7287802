"""Saying a fault in another vocabulary, and what its dialect cannot carry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from amends.core.crosswalk import source_row, transfer
from amends.core.fault import Fault, Origin
from amends.core.validate import check_fault
from amends.dialects import dialect as find_dialect

__all__ = ["losses", "translate"]


def translate(fault: Fault, to: str) -> tuple[Fault, frozenset[str]]:
    """
    `fault` in the words of the vocabulary `to` (http, cli, task, adcp, arcp), and the names of what is lost there.

    The recovery class is carried over, so a coarser code never changes what is done. The original code survives in
    `details` under "translated_from" where the target has no word for it.

    >>> told, lost = translate(Fault(code="NOT_FOUND", message="No such order"), to="adcp")
    >>> told.code, told.details
    ('REFERENCE_NOT_FOUND', {'translated_from': {'vocabulary': 'everyday', 'code': 'NOT_FOUND'}})

    Raises:
        LookupError: for a vocabulary one cannot translate into.

    """
    check_fault("translate", fault)
    told = transfer(fault, to)
    if to not in {fault.vocabulary, "http"}:
        told = _worded(told)
    return told, losses(told, to)


def _worded(fault: Fault) -> Fault:
    """S1 may leave the detail out; the others have to say something, and what the code means is true."""
    errors = tuple(_worded(part) for part in fault.errors)
    if fault.message and errors == fault.errors:
        return fault
    return replace(fault, message=fault.message or source_row(fault).message, errors=errors)


def losses(fault: Fault, dialect: str) -> frozenset[str]:
    """
    The fields of `fault`, or of its parts, that do not come back when it is written in a dialect and read again.

    Found by doing it, so it cannot promise too much. Where a field is empty, nothing is lost.

    >>> sorted(losses(Fault(code="TIMEOUT", vocabulary="task", retry_after=5), "task"))
    ['retry_after']
    """
    check_fault("losses", fault)
    module = find_dialect(dialect)
    # As if passed on: what redaction takes out of our own texts is not a loss of the dialect.
    sent = replace(fault, origin=Origin(module.NAME))
    back: Fault | None = module.decode(module.encode(sent))
    if back is None:
        return frozenset(name for name in Fault.__struct_fields__ if _present(getattr(fault, name)))
    return frozenset(_missing(fault, back))


def _missing(sent: Fault, back: Fault) -> Iterator[str]:
    for name in Fault.__struct_fields__:
        before, after = getattr(sent, name), getattr(back, name)
        if name in _NOT_SAID or not _present(before):
            continue
        if name == "errors" and len(before) == len(after):
            # The parts are there; what each of them lost is named by its field.
            for part, read in zip(before, after, strict=True):
                yield from _missing(part, read)
        elif before != after:
            yield name


# Where it was found is about this hop, and whose word the code is goes without saying in its own dialect.
_NOT_SAID = frozenset({"origin", "vocabulary"})


def _present(value: Any) -> bool:
    return value is not None and value not in ("", (), {})
