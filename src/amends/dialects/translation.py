"""Translate a fault into another vocabulary, and find the fields that its dialect cannot carry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from amends.core.crosswalk import source_row, transfer
from amends.core.fault import Fault, Origin, check_fault
from amends.core.wrong_calls import explains_wrong_calls
from amends.dialects import dialect as find_dialect

__all__ = ["losses", "translate"]


@explains_wrong_calls
def translate(fault: Fault, to: str) -> tuple[Fault, frozenset[str]]:
    """
    Return `fault` in the vocabulary `to` (http, cli, task, adcp, arcp), and the names of the fields lost there.

    The recovery class does not change, so a coarser code does not change the decision. If the target has no such code,
    `details` keeps the original under "translated_from".

    >>> translated, lost = translate(Fault(code="NOT_FOUND", message="No such order"), to="adcp")
    >>> translated.code, translated.details
    ('REFERENCE_NOT_FOUND', {'translated_from': {'vocabulary': 'everyday', 'code': 'NOT_FOUND'}})

    Raises:
        LookupError: if `to` is not one of the five.

    """
    check_fault("translate", fault)
    translated = transfer(fault, to)
    if to not in {fault.vocabulary, "http"}:
        translated = _with_message(translated)
    return translated, losses(translated, to)


def _with_message(fault: Fault) -> Fault:
    """Set a missing message to that of the code's row. Only S1 allows an error without a message."""
    errors = tuple(_with_message(part) for part in fault.errors)
    if fault.message and errors == fault.errors:
        return fault
    return replace(fault, message=fault.message or source_row(fault).message, errors=errors)


@explains_wrong_calls
def losses(fault: Fault, dialect: str) -> frozenset[str]:
    """
    Return the fields of `fault`, or of its parts, that are lost when it is written in a dialect and read again.

    Encodes and decodes the fault to find out. An empty field is not lost.

    >>> sorted(losses(Fault(code="TIMEOUT", vocabulary="task", retry_after=5), "task"))
    ['retry_after']
    """
    check_fault("losses", fault)
    module = find_dialect(dialect)
    # Encoded as if it had been received, so that redaction does not count as a loss.
    sent = replace(fault, origin=Origin(module.NAME))
    back: Fault | None = module.decode(module.encode(sent))
    if back is None:
        return frozenset(name for name in Fault.__struct_fields__ if _present(getattr(fault, name)))
    return frozenset(_missing(fault, back))


def _missing(sent: Fault, back: Fault) -> Iterator[str]:
    for name in Fault.__struct_fields__:
        before, after = getattr(sent, name), getattr(back, name)
        if name in _NOT_CARRIED or not _present(before):
            continue
        if name == "errors" and len(before) == len(after):
            # The parts were kept; compare the fields of each.
            for part, read in zip(before, after, strict=True):
                yield from _missing(part, read)
        elif _differ(before, after):
            yield name


def _differ(before: object, after: object) -> bool:
    """Whether a value changed. One that cannot be compared is not a JSON value, so it did."""
    try:
        return bool(before != after)
    except Exception:  # noqa: BLE001 - details may hold any object, and its __eq__ may raise
        return True


# The origin belongs to one hop, and a dialect implies its vocabulary.
_NOT_CARRIED = frozenset({"origin", "vocabulary", "raised", "in_doubt"})


def _present(value: Any) -> bool:
    return value is not None and value not in ("", (), {})
