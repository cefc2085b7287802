"""Values that a completion script asks for with `amends completion KIND`, because they are many or change."""

from __future__ import annotations

from collections.abc import Callable, Iterable

__all__ = ["VALUES"]


def _codes() -> Iterable[str]:
    """Every code, and the code words of every vendor as vendor:word."""
    from amends.core.vocabulary import names, vocabulary
    from amends.vendors.registry import names as service_names
    from amends.vendors.registry import vendor

    yield from sorted({code for name in names() for code in vocabulary(name).rows})
    for name in sorted(service_names()):
        yield from (f"{name}:{word}" for word in sorted({*vendor(name).words, *vendor(name).broad}))


def _jobs() -> Iterable[str]:
    """The jobs that this user submitted with --detach, the newest first."""
    from amends.commands.runtime.saved_sessions import saved_jobs

    return saved_jobs()


VALUES: dict[str, Callable[[], Iterable[str]]] = {"codes": _codes, "jobs": _jobs}
