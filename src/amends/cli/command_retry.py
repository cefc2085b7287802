"""
Commands that may be repeated, and repeating them (C9).

    @operation(read_only=True)
    def show(name): ...

Only a command whose author says so is repeated by --retries: one that changes nothing, or one that sends an
idempotency key (`keyed`), which `amends.recovery.current_operation().key` tells it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from amends.core.operation import Operation

__all__ = ["Tries", "operation", "operation_of"]

F = TypeVar("F", bound=Callable[..., Any])
_MARK = "__amends_operation__"


def operation(*, read_only: bool = False, idempotent: bool = False, keyed: bool = False) -> Callable[[F], F]:
    """Declare that a command may be repeated: it changes nothing, may be done twice, or carries a key."""

    def mark(function: F) -> F:
        setattr(function, _MARK, {"read_only": read_only, "idempotent": idempotent, "keyed": keyed})
        return function

    return mark


def operation_of(function: Any, name: str) -> Operation | None:
    """What a command's function declares; None when it may not be repeated."""
    said = getattr(function, _MARK, None)
    if not said or not any(said.values()):
        return None
    from amends.core.operation import Operation

    return Operation(name=name, **said)


class Tries:
    """How often one invocation may run its command, and how often it did."""

    def __init__(self, retries: int) -> None:
        self.allowed = retries + 1
        self.made = 1

    def run(
        self, call: Callable[[], Any], function: Any, name: str, passing: Callable[[BaseException], bool]
    ) -> Any:
        """
        Run the command, repeated where `--retries` asked for it.

        Args:
            call: runs it once.
            function: what the author wrote, with the declaration.
            name: for telemetry.
            passing: which exceptions are no failures but ways to leave; they are never repeated.

        """
        if self.allowed == 1:
            return call()
        declared = operation_of(function, name)
        if declared is None:
            raise _refused(name)
        from amends.core.policy import Policy
        from amends.recovery import Attempt, recover

        def once() -> Any:
            try:
                return True, call()
            except Exception as exc:
                if passing(exc):
                    return False, exc
                raise

        history: list[Attempt] = []
        try:
            done, result = recover(
                once, policy=Policy(attempts=self.allowed, rules={}), operation=declared, history=history
            )
        finally:
            self.made = max(1, len(history))
        if not done:
            raise result
        return result


def _refused(name: str) -> Exception:
    from amends.cli.arguments import Mistake, mistaken

    return mistaken(
        [
            Mistake(
                "VALIDATION_ERROR",
                "--retries",
                f"{name} is not declared safe to repeat",
                ["Leave out --retries, and look at what happened before running it again"],
            )
        ]
    )
