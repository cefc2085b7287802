"""
What the bindings for agent frameworks do around a call of the model.

- A call that failed is made again within bounds: after the wait that a 429 names, after 503, overload, 500, and a stream that was cut before
  its first event. A model only computes, so a repeat costs time and money only. Used-up quota is not repeated.
- Another model is asked when one is out of quota, refuses for load, does not answer, or the context is too long for it (`fallback_models`).
- The retries of the framework's client are turned off on a copy, so that tries do not multiply. Where the user set a number, the
  model is left as it is, and its tries are counted.

A binding makes one `ModelCalls`, and passes every call to `acall`, `call` or `astream`.
"""

from __future__ import annotations

import copy
import inspect
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from amends.core.operation import Operation
from amends.core.policy import Policy
from amends.errors.base import FaultError
from amends.recovery import arecover, recover
from amends.recovery.failover import Failover, current_target
from amends.recovery.upstream import Upstream

__all__ = ["MODEL", "ModelCalls", "without_retries"]

T = TypeVar("T")
_MODEL_CALL = Operation(name="model", computes=True)

MODEL = Policy(attempts=4, max_wait=60.0)
"""Calls of a model in an agent: four tries and a minute of waiting."""
_SDK_DEFAULT = 2
"""Retries that the clients of OpenAI and Anthropic make if the user sets no number."""
_MAKING_CLIENTS = frozenset({"strands.models.openai", "strands.models.openai_responses"})
_MOST = 100
"""Models whose copies are kept."""


class ModelCalls:
    """
    The model calls of an agent.

    Args:
        policy: bounds the tries of a call; by default `MODEL`.
        fallbacks: models that are asked, in this order, when the agent's own cannot answer.

    >>> class Model:
    ...     def answer(self, question: str) -> str:
    ...         raise ConnectionRefusedError
    >>> class Second:
    ...     def answer(self, question: str) -> str:
    ...         return "17"
    >>> calls = ModelCalls(fallbacks=[Second()])
    >>> calls.call(Model(), lambda model: model.answer("?"))
    '17'
    """

    def __init__(self, policy: Policy | None = None, fallbacks: Sequence[object] = ()) -> None:
        if isinstance(fallbacks, str | bytes) or not isinstance(fallbacks, Sequence):
            raise TypeError(f"fallback_models is a list of models, not {type(fallbacks).__name__}")
        self.policy = MODEL if policy is None else policy
        self.fallbacks = tuple(fallbacks)
        self._known: OrderedDict[int, _Models] = OrderedDict()

    async def acall(self, model: Any, call: Callable[[Any], Awaitable[T]]) -> T:
        """
        Await `call(model)` with recovery, and return its result.

        Raises:
            Exception: what the framework raised last; our own error if no exception of the framework is behind it.

        """
        models = self._of(model)

        async def once() -> T:
            return await call(models.current())

        try:
            return await arecover(once, policy=models.policy, upstream=models.failover, operation=_MODEL_CALL)
        except FaultError as error:
            original = _original(error)
            raise original from original.__cause__

    def call(self, model: Any, call: Callable[[Any], T]) -> T:
        """Do the same as `acall`, for a plain function."""
        models = self._of(model)
        try:
            return recover(
                lambda: call(models.current()),
                policy=models.policy,
                upstream=models.failover,
                operation=_MODEL_CALL,
            )
        except FaultError as error:
            original = _original(error)
            raise original from original.__cause__

    async def astream(self, model: Any, call: Callable[[Any], AsyncIterator[T]]) -> AsyncIterator[T]:
        """Yield the events of `call(model)`. It is begun anew only if it failed before its first event."""

        async def begin(chosen: Any) -> tuple[AsyncIterator[T], list[T]]:
            events = call(chosen)
            if inspect.isawaitable(events):
                events = await events
            events = aiter(events)
            try:
                return events, [await anext(events)]
            except StopAsyncIteration:
                return events, []

        events, first = await self.acall(model, begin)
        for event in first:
            yield event
        async for event in events:
            yield event

    def recovered(
        self,
        model: T,
        *,
        plain: Sequence[str] = (),
        awaited: Sequence[str] = (),
        streams: Sequence[str] = (),
        method_of: Callable[[Any, str], Callable[..., Any]] = getattr,
    ) -> T:
        """
        Return a copy of a model whose methods are recovered, for frameworks that have no place around the call of a model.

        Args:
            model: the model; it is not changed.
            plain: its methods that return an answer.
            awaited: its methods that are awaited.
            streams: its methods that return events, or are awaited for them.
            method_of: returns a method of a model by its name, without the retries that the framework puts around it.

        """
        wrapped = copy.copy(model)

        def method(name: str) -> Callable[..., Any]:
            def call(*args: object, **kwargs: object) -> Any:
                return self.call(model, lambda chosen: method_of(chosen, name)(*args, **kwargs))

            return call

        def coroutine(name: str) -> Callable[..., Any]:
            async def call(*args: object, **kwargs: object) -> Any:
                return await self.acall(model, lambda chosen: method_of(chosen, name)(*args, **kwargs))

            return call

        def stream(name: str) -> Callable[..., Any]:
            async def call(*args: object, **kwargs: object) -> Any:
                return self.astream(model, lambda chosen: method_of(chosen, name)(*args, **kwargs))

            return call

        for names, make in ((plain, method), (awaited, coroutine), (streams, stream)):
            for name in names:
                if callable(getattr(model, name, None)):
                    _set(wrapped, name, make(name))
        return wrapped

    def _of(self, model: Any) -> _Models:
        known = self._known.get(id(model))
        if known is None or known.given is not model:
            known = self._known[id(model)] = _Models(model, self.fallbacks, self.policy)
            if len(self._known) > _MOST:
                self._known.popitem(last=False)
        return known


class _Models:
    """A model with those that replace it, without the retries of their clients."""

    def __init__(self, given: Any, fallbacks: tuple[object, ...], policy: Policy) -> None:
        self.given = given
        copies = [without_retries(each) for each in (given, *fallbacks)]
        self._models = [each for each, _ in copies]
        tries = max(tries for _, tries in copies)
        attempts = policy.attempts
        counted = tries > 1 and attempts is not None
        self.policy = replace(policy, attempts=max(1, (attempts or 1) // tries)) if counted else policy
        self.failover = (
            Failover([Upstream(_name(each)) for each in self._models], too_long=1) if fallbacks else None
        )

    def current(self) -> Any:
        """Return the model that this call is for."""
        target = current_target()
        if self.failover is None or target is None or target not in self.failover.targets:
            return self._models[0]
        return self._models[self.failover.targets.index(target)]


def _name(model: object) -> str:
    for attribute in ("model_name", "model", "model_id"):
        name = getattr(model, attribute, None)
        if isinstance(name, str) and name:
            return name[:100]
    return type(model).__name__


def _original(error: FaultError) -> BaseException:
    """Return the exception of the framework behind a give-up: frameworks act on the classes of their own exceptions."""
    cause = error.__cause__
    return cause if isinstance(cause, Exception) else error


def without_retries(model: Any) -> tuple[Any, int]:
    """
    Return a copy of a model whose client does not repeat calls, and 1; or the model itself, and the tries that its client makes.

    The model itself is returned if the user set a number of retries.

    >>> without_retries("openai:small")
    ('openai:small', 1)
    """
    fields = getattr(type(model), "model_fields", None)
    chosen: object = None
    if isinstance(fields, Mapping) and "max_retries" in fields:
        chosen = getattr(model, "max_retries", None)
        if _is_chosen(model, chosen):
            return model, 1 + chosen if isinstance(chosen, int) else 1
    arguments = _arguments_of_openai(model)
    if arguments is not None and "max_retries" in arguments:
        given = arguments["max_retries"]
        return model, 1 + given if isinstance(given, int) else 1
    clients = {name: value for name, value in _attributes(model).items() if _client_of(value) is not None}
    numbers = {_client_of(value).max_retries for value in clients.values()}
    if chosen is None and numbers - {0, _SDK_DEFAULT}:
        return model, 1 + max(numbers)
    retryer = getattr(model, "retryer", None)  # smolagents
    if not clients and chosen is None and retryer is None and arguments is None:
        return model, 1
    try:
        copied = copy.copy(model)
        if chosen is not None:
            _set(copied, "max_retries", 0)
        for name, value in clients.items():
            _set(copied, name, _unretried(value))
        if arguments is not None:
            _set(copied, "client_args", {**arguments, "max_retries": 0})
        if getattr(retryer, "max_attempts", 1) != 1:
            once: Any = copy.copy(retryer)
            once.max_attempts = 1
            _set(copied, "retryer", once)
    except Exception:  # noqa: BLE001 - a model of any class; its own retries stay, and are counted
        return model, 1 + max(numbers, default=_SDK_DEFAULT)
    return copied, 1


def _is_chosen(model: Any, number: object) -> bool:
    """Return whether the user set the number of retries. A constructor of a framework passes its own default on as a value."""
    if "max_retries" not in getattr(model, "model_fields_set", ()):
        return False
    try:
        parameter = inspect.signature(type(model).__init__).parameters.get("max_retries")
    except (TypeError, ValueError):
        return True
    return parameter is None or parameter.default != number


def _arguments_of_openai(model: object) -> dict[str, object] | None:
    """Return the arguments with which a model of Strands makes a client of OpenAI for each call; None for other models."""
    arguments = getattr(model, "client_args", None)
    made = any(each.__module__ in _MAKING_CLIENTS for each in type(model).__mro__)
    return arguments if made and isinstance(arguments, dict) else None


def _attributes(model: object) -> dict[str, object]:
    """Return the attributes of an object, with the private ones of a pydantic model."""
    private = getattr(model, "__pydantic_private__", None)
    return {**getattr(model, "__dict__", {}), **(private if isinstance(private, dict) else {})}


def _client_of(value: object) -> Any:
    """Return the client of an SDK: the value itself, or the one of its resource."""
    for candidate in (value, getattr(value, "_client", None)):
        if (
            callable(getattr(candidate, "with_options", None))
            and type(getattr(candidate, "max_retries", None)) is int
        ):
            return candidate
    return None


def _unretried(value: Any) -> object:
    """Return a client without retries, or a copy of what holds one: a resource of an SDK, or a provider."""
    client = _client_of(value)
    changed = client.with_options(max_retries=0)
    if client is value:
        return changed
    if type(value).__module__.split(".")[1:2] == ["resources"]:
        # It takes its methods from its client when it is made.
        return type(value)(changed)
    holder = copy.copy(value)
    _set(holder, "_client", changed)
    return holder


def _set(model: object, name: str, value: object) -> None:
    private = getattr(model, "__pydantic_private__", None)
    if isinstance(private, dict) and name in private:
        object.__setattr__(model, "__pydantic_private__", {**private, name: value})
        return
    attributes = getattr(model, "__dict__", None)
    if isinstance(attributes, dict):
        attributes[name] = value
    else:
        object.__setattr__(model, name, value)
