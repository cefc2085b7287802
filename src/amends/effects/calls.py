"""What `once` knows about a function: its name in the ledger, how its calls get their keys, and how they are verified."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from functools import cached_property

from amends.durable.keys import CALL_LIMIT
from amends.effects.arguments import (
    NoCanonicalForm,
    canonical_arguments,
    derived_key,
    digest,
    key_text,
    row_name,
)
from amends.effects.durations import seconds
from amends.effects.flow import Request
from amends.effects.outcomes import return_type
from amends.effects.records import SHOWN, EffectRecord
from amends.effects.similar import Similar
from amends.errors import ValidationError
from amends.recovery.effect_context import current_scope

__all__ = ["AGAIN", "Tool"]

AGAIN = "again"
"""The keyword of a call that is meant as another one."""
_LONGEST_REASON = 200


class Tool:
    """A function or another call with its options."""

    def __init__(
        self,
        name: str,
        *,
        key: Callable[..., object] | str | Collection[str] | None = None,
        verify: Callable[..., object] | None = None,
        expires_in: float | timedelta = 172800.0,
        similar: Similar | float | timedelta | None = None,
        ignore: Collection[str] = (),
        direct: bool = False,
        function: Callable[..., object] | None = None,
        scope: str | None = None,
        transaction: str | None = None,
        timeout: float | timedelta | None = None,
    ) -> None:
        self.transaction = transaction
        self.name, self.verify, self.direct = name, verify, direct
        self.expires_in = seconds("expires_in", expires_in)
        self.call_limit = CALL_LIMIT if timeout is None else seconds("timeout", timeout)
        self.similar = Similar.of(similar)
        self.ignore = frozenset([ignore] if isinstance(ignore, str) else ignore)
        if transaction is not None:
            self.ignore |= {transaction}
        self.scope = scope
        self._key = key
        self._function = function
        self._named = (key,) if isinstance(key, str) else () if key is None or callable(key) else tuple(key)
        self._signature = None if function is None else _signature(function)
        self._plain = _plain_names(self._signature)
        self._check()

    def _check(self) -> None:
        if self.verify is not None and not callable(self.verify):
            raise TypeError(f"verify is a function, not {type(self.verify).__name__}")
        if self._key is not None and not callable(self._key) and not self._named:
            raise ValueError(
                "key names at least one argument; leave it out to derive the key from all arguments"
            )
        if self._signature is None:
            return
        known = self._signature.parameters
        takes_any = any(each.kind is each.VAR_KEYWORD for each in known.values())
        for each in (*self._named, *self.ignore):
            if each not in known and not takes_any:
                raise ValueError(
                    f"{self.name} has no argument {each!r}; it takes {', '.join(known) or 'none'}"
                )

    @cached_property
    def returns(self) -> object:
        """The type that the function declares to return."""
        return None if self._function is None else return_type(self._function)

    @cached_property
    def takes_again(self) -> bool:
        """Whether the function has an argument of its own with this name."""
        return self._signature is not None and AGAIN in self._signature.parameters

    def connection(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> object:
        """Return the argument whose transaction the record is written in."""
        if self._signature is None or self.transaction is None:
            return None
        return self._signature.bind(*args, **kwargs).arguments.get(self.transaction)

    def request(
        self,
        args: tuple[object, ...],
        kwargs: Mapping[str, object],
        *,
        now: Callable[[], float],
        wait: float,
        again: object = None,
        key: str | None = None,
        scope: str | None = None,
    ) -> Request:
        """
        Return one call with its key.

        Raises:
            TypeError: the arguments do not fit the function, or the key cannot be made from them.
            ValidationError: `again` is given for a call whose key the author chose, or the given key is empty.

        """
        chosen_key: object = key
        if key is not None and not (isinstance(chosen_key, str) and chosen_key):
            raise ValidationError("the key is a text that identifies the effect, and not empty", field="key")
        given = self._arguments(args, kwargs)
        chosen = key is not None or self._key is not None
        scope = scope if scope is not None else self.scope if self.scope is not None else current_scope()
        counted = {name: value for name, value in given.items() if name not in self.ignore}
        try:
            arguments = canonical_arguments(counted, strict=not chosen)
        except NoCanonicalForm as error:
            raise TypeError(
                f"the key of {self.name} cannot be derived from {error}: name the arguments that identify the effect "
                f'with key="..." or leave this one out with ignore="..."'
            ) from None
        if key is None and self._key is not None:
            key = self._author_key(args, kwargs, given)
        text = derived_key(scope, self.name, arguments) if key is None else key
        return Request(
            name=row_name(self.name, text),
            fresh=EffectRecord(
                state="running",
                fingerprint=digest(arguments),
                tool=self.name,
                scope=_storable(scope),
                arguments=arguments[:SHOWN].decode("utf-8", "replace"),
                derived=not chosen,
                started=now(),
            ),
            expires_in=self.expires_in,
            has_verify=self.verify is not None,
            returns=self.returns,
            again=self._reason(again, chosen),
            direct=self.direct,
            similar=self.similar,
            arguments=arguments if self.similar else b"",
            wait=wait,
            call_limit=self.call_limit,
            now=now,
        )

    def _reason(self, again: object, chosen: bool) -> str | None:
        if again is None:
            return None
        if not isinstance(again, str) or not again.strip():
            raise ValidationError(
                'again is the reason, as text: again="the customer ordered a second one"', field=AGAIN
            )
        if chosen and self.similar is None:
            raise ValidationError(
                f"{self.name} runs once per key, so again is not possible: use another key", field=AGAIN
            )
        return _storable(again.strip()[:_LONGEST_REASON])

    def _arguments(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> dict[str, object]:
        """Return the arguments by name, with defaults, without the object of a method."""
        if self._signature is None:
            return dict(kwargs)
        if self._plain is not None and len(args) <= len(self._plain):
            # `bind` takes 15 µs, a third of the whole overhead on a memory store.
            plain = {**dict(zip(self._plain, args, strict=False)), **kwargs}
            if len(plain) == len(args) + len(kwargs) == len(self._plain) and plain.keys() == set(self._plain):
                return plain
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        first = next(iter(given), None)
        if first in {"self", "cls"}:
            del given[first]
        for name, parameter in self._signature.parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD and not given.keys() & given.get(name, {}).keys():
                given.update(given.pop(name, {}))
        return given

    def _author_key(
        self, args: tuple[object, ...], kwargs: Mapping[str, object], given: Mapping[str, object]
    ) -> str:
        if callable(self._key):
            value = self._key(*args, **kwargs)
        else:
            values = [given.get(name) for name in self._named]
            value = values[0] if len(values) == 1 else values
        try:
            return key_text(value)
        except NoCanonicalForm as error:
            raise TypeError(
                f"the key of {self.name} is text, a number or a tuple of these, not {error}"
            ) from None


def _storable(text: str) -> str:
    """Return a text with lone surrogates written as escapes: a store refuses them."""
    return text.encode("utf-8", "backslashreplace").decode()


def _signature(function: Callable[..., object]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _plain_names(signature: inspect.Signature | None) -> tuple[str, ...] | None:
    """Return the names of the arguments if each can be given by position or name, and there is no object of a method."""
    found = () if signature is None else tuple(signature.parameters.values())
    if signature is None or any(each.kind is not each.POSITIONAL_OR_KEYWORD for each in found):
        return None
    names = tuple(each.name for each in found)
    return None if names[:1] in {("self",), ("cls",)} else names
