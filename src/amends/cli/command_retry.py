"""
Repeating a command that its author declared safe to repeat (C9).

    @operation(read_only=True)
    def show(name): ...

`--retries` repeats a command only if its function has this declaration: it changes nothing (`read_only`), may run twice
(`idempotent`), or sends an idempotency key (`keyed`). A keyed command reads its key from
`amends.recovery.current_operation().key`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from amends.core.validate import check_flag
from amends.core.wrong_calls import explains_wrong_calls

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amends.core.operation import Operation
    from amends.foreign.registry import Known

__all__ = ["CommandRetry", "operation", "operation_of"]

F = TypeVar("F", bound=Callable[..., object])
_ATTRIBUTE = "__amends_operation__"


@explains_wrong_calls
def operation(*, read_only: bool = False, idempotent: bool = False, keyed: bool = False) -> Callable[[F], F]:
    """
    Declare that a command may be repeated: it changes nothing, may run twice, or sends an idempotency key.

        @app.command()
        @operation(read_only=True)
        def show(order: str): ...
    """
    for name, value in (("read_only", read_only), ("idempotent", idempotent), ("keyed", keyed)):
        check_flag(name, value)

    def declare(function: F) -> F:
        if not callable(function):
            raise TypeError(f"operation() decorates a function, not {type(function).__name__}")
        setattr(function, _ATTRIBUTE, {"read_only": read_only, "idempotent": idempotent, "keyed": keyed})
        return function

    return declare


def operation_of(function: object, name: str) -> Operation | None:
    """Return the operation that a command's function declares, or None if it may not be repeated."""
    declared = getattr(function, _ATTRIBUTE, None)
    if not declared or not any(declared.values()):
        return None
    from amends.core.operation import Operation

    return Operation(name=name, **declared)


class CommandRetry:
    """Runs the command of one invocation up to `max_attempts` times and counts the attempts."""

    def __init__(self, retries: int, errors: Mapping[type[BaseException], Known] | None = None) -> None:
        self.max_attempts = retries + 1
        self.errors = errors
        self.attempts = 1
        self._function: object = None
        self._name = ""

    @property
    def declared(self) -> Operation | None:
        """What the author declared about the command that was run; None if it may not be repeated."""
        return operation_of(self._function, self._name)

    def run(
        self,
        call: Callable[[], object],
        function: object,
        name: str,
        is_exit: Callable[[BaseException], bool],
    ) -> Any:
        """
        Run the command, and repeat it as `--retries` allows.

        Args:
            call: runs it once.
            function: the author's function, which has the declaration.
            name: the operation's name in telemetry.
            is_exit: whether an exception leaves the command on purpose; such an exception is never retried.

        Raises:
            FaultError: if `--retries` was given and the function is not declared safe to repeat.

        """
        self._function, self._name = function, name
        if self.max_attempts == 1:
            return call()
        declared = self.declared
        if declared is None:
            raise _not_repeatable(name)
        from amends.core.policy import Policy
        from amends.errors.base import FaultError
        from amends.foreign.bugs import is_bug
        from amends.foreign.registry import registered_fault
        from amends.recovery import Attempt, recover

        def once() -> Any:
            try:
                return True, call()
            except Exception as exc:
                # A bug would fail the same way again (M7).
                if is_exit(exc) or is_bug(exc, errors=self.errors):
                    return False, exc
                fault = None if isinstance(exc, FaultError) else registered_fault(type(exc), self.errors)
                if fault is not None:
                    raise FaultError.from_fault(fault) from exc
                raise

        history: list[Attempt] = []
        try:
            returned, result = recover(
                once,
                policy=Policy(attempts=self.max_attempts, uncertain=1, rules={}),
                operation=declared,
                history=history,
            )
        finally:
            self.attempts = max(1, len(history))
        if not returned:
            raise result
        return result


def _not_repeatable(name: str) -> Exception:
    from amends.cli.arguments import Mistake, argument_error

    return argument_error(
        [
            Mistake(
                "VALIDATION_ERROR",
                "--retries",
                f"{name} is not declared safe to repeat",
                ["Remove --retries, and check what happened before you run it again"],
            )
        ]
    )
