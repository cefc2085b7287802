"""
`Failover`: several services that can do the same work, in order of preference.

    answer = recover(ask, prompt, upstream=Failover([Upstream("primary"), Upstream("second")]), operation=Operation(computes=True))

`operation_flow` asks for a target before every call (`choose`), and after a failure whether another target may be called
(`after`). The bounds of the operation, its attempts, waits and deadline, cover the calls to all targets.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any
from urllib.parse import urlsplit

import msgspec

from amends.core.fault import Fault
from amends.core.named_options import NamedOptions
from amends.core.vocabulary import row_for
from amends.core.wrong_calls import explains_wrong_calls
from amends.recovery.classify import Signal, signal_of
from amends.recovery.scope import SCOPE
from amends.recovery.upstream import Upstream

__all__ = ["Failover", "Target", "current_target"]

OUT_OF_QUOTA, LONGEST = 60.0, 3600.0
"""Seconds for which a target that is out of quota is not called, if it names no time, and the longest time. Longer: a renewed
quota is used later; shorter: more calls that are refused."""
_MOST_TARGETS = 100


class Target(msgspec.Struct, frozen=True, metaclass=NamedOptions):
    """
    One of the services of a `Failover`.

    >>> Target(Upstream("second"), rewrite=lambda request: {**request, "model": "small"}).name
    'second'
    """

    upstream: Upstream
    """Its state. Events and the history name the target by the name of this Upstream."""
    call: Callable[..., Any] | None = None
    """The function that calls it; None: the function that was given to `recover`."""
    rewrite: Callable[[Any], Any] | None = None
    """Returns the request for this target: it gets and replaces the first argument of the call."""

    @property
    def name(self) -> str:
        """The name of its Upstream."""
        return self.upstream.name


def current_target() -> Target | None:
    """
    Return the target that this code calls, if it runs in a call of a `Failover`.

        def ask(prompt):
            return client.post(current_target().upstream.address + "/chat", json={"prompt": prompt})
    """
    scope = SCOPE.get()
    target = None if scope is None else scope.target
    return target if isinstance(target, Target) else None


class Failover:
    """
    Services that can do the same work. Give it as `upstream=`, and keep it: it knows which of them are in trouble.

    The next target is called when one is held back, is out of quota, refuses for load or does not answer; but only if nothing may
    have happened, or the operation is declared as `read_only` or `computes`. A target is preferred again as soon as it
    has recovered.

    >>> from amends import Operation, recover
    >>> from amends.errors import RateLimitedError
    >>> from amends.testing import Script
    >>> first, second = Script(RateLimitedError("busy", retry_after=30)), Script("from the second", "again")
    >>> models = Failover([first, second])
    >>> recover(first, "prompt", upstream=models, operation=Operation(computes=True))
    'from the second'
    >>> recover(first, "prompt", upstream=models, operation=Operation(computes=True)), first.count
    ('again', 1)
    """

    @explains_wrong_calls
    def __init__(
        self,
        targets: Iterable[Upstream | Target | Callable[..., Any]],
        *,
        too_long: int | None = None,
        refused: int | None = None,
    ) -> None:
        """
        Args:
            targets: an `Upstream` (the call of `recover` is made, and `current_target()` says which one it is for), a function to
                call instead, or a `Target`. The first is preferred.
            too_long: the number of the target, from 0, that takes requests whose context is too long for another one.
            refused: the number of the target that takes requests whose content another one refused.

        Raises:
            TypeError, ValueError: for a wrong target or number; the message says what to write.

        """
        listed: object = targets
        if isinstance(listed, str | bytes) or not isinstance(listed, Iterable):
            raise TypeError('targets is a list, as in Failover([Upstream("primary"), Upstream("second")])')
        self.targets = tuple(_target(number, each) for number, each in enumerate(targets))
        if not 1 <= len(self.targets) <= _MOST_TARGETS:
            raise ValueError(f"targets are 1 to {_MOST_TARGETS} services, not {len(self.targets)}")
        for name, index in (("too_long", too_long), ("refused", refused)):
            known = isinstance(index, int) and not isinstance(index, bool) and 0 <= index < len(self.targets)
            if index is not None and not known:
                raise ValueError(f"{name} is the number of a target, 0 to {len(self.targets) - 1}")
        self._named = {"CONTEXT_TOO_LONG": too_long, "CONTENT_REFUSED": refused}
        self._out_until = [0.0] * len(self.targets)

    def __repr__(self) -> str:
        return f"Failover([{', '.join(repr(each.name) for each in self.targets)}])"

    def __deepcopy__(self, memo: object) -> Failover:
        # A copy of a client calls the same services, so it shares what is known about them.
        return self

    def choose(self, now: float, failed: Collection[int] = (), only: int | None = None) -> int:
        """
        Return the number of the target to call.

        That is the first that can be called at once, and has not failed in this operation; else the first that can be called at
        once; else the one that will be next. `only`: the request can be done by this one only.
        """
        if only is not None:
            return only
        ready = [number for number in range(len(self.targets)) if self.ready(number, now)]
        if ready:
            return next((number for number in ready if number not in failed), ready[0])
        return min(range(len(self.targets)), key=lambda number: self._ready_in(number, now))

    def ready(self, number: int, now: float) -> bool:
        """Return whether a call to this target may be sent at once."""
        return now >= self._out_until[number] and self.targets[number].upstream.ready(now)

    def _ready_in(self, number: int, now: float) -> float:
        return max(self._out_until[number] - now, self.targets[number].upstream.resumes_in(now))

    def after(
        self, number: int, fault: Fault, failed: Collection[int], now: float, *, may_move: bool
    ) -> tuple[int, bool] | None:
        """
        Return the number of the target to call after a failure of target `number`, or None to stay with what was decided.

        The second value says whether only that target can do the request. `failed`: the targets that failed in this operation,
        with this one; `may_move`: a call of another service is safe.
        """
        everyday = row_for(fault.vocabulary, fault.code, fault.status).everyday or fault.code
        if everyday == "QUOTA_EXCEEDED":
            wait = (
                fault.retry_after if fault.retry_after is not None and fault.retry_after > 0 else OUT_OF_QUOTA
            )
            self._out_until[number] = now + min(wait, LONGEST)
        if not may_move:
            return None
        named = self._named.get(fault.code, self._named.get(everyday))
        if named is not None:
            return None if named in failed else (named, True)
        troubled = everyday == "QUOTA_EXCEEDED" or signal_of(fault) not in {Signal.WELL, Signal.NOTHING}
        if not troubled:
            return None
        others = (each for each in range(len(self.targets)) if each not in failed and self.ready(each, now))
        found = next(others, None)
        return None if found is None else (found, False)

    def address_for(self, number: int, url: str) -> str:
        """
        Return a URL with the base address of this target in place of the one that it has.

        >>> models = Failover([Upstream("a", address="https://a.example/v1"), Upstream("b", address="https://b.example")])
        >>> models.address_for(1, "https://a.example/v1/chat?stream=1")
        'https://b.example/chat?stream=1'

        Raises:
            ValueError: if the target has no address, or the URL is none of a target.

        """
        base = self.targets[number].upstream.address
        if base is None:
            raise ValueError(
                f"{self.targets[number].name} has no address: write Upstream(…, address='https://…')"
            )
        parts = urlsplit(url)
        if not parts.scheme:
            return f"{base.rstrip('/')}/{url.lstrip('/')}"
        for each in self.targets:
            old = None if each.upstream.address is None else each.upstream.address.rstrip("/")
            if old is not None and (url == old or url.startswith((f"{old}/", f"{old}?"))):
                return base.rstrip("/") + url[len(old) :]
        raise ValueError("the request's URL begins with the address of no target")


def _target(number: int, given: object) -> Target:
    if isinstance(given, Target):
        if not isinstance(given.upstream, Upstream):
            raise TypeError(f"target {number} needs an Upstream: Target(Upstream('second'), …)")
        for name, function in (("call", given.call), ("rewrite", given.rewrite)):
            if function is not None and not callable(function):
                raise TypeError(f"{name} of target {number} is a function, not {type(function).__name__}")
        return given
    if isinstance(given, Upstream):
        return Target(given)
    if callable(given):
        return Target(Upstream(getattr(given, "__qualname__", f"target {number}")), call=given)
    raise TypeError(f"target {number} is an Upstream, a function or a Target, not {type(given).__name__}")
