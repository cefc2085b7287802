"""The metaclass of Structs whose fields users write as options."""

from __future__ import annotations

from typing import Any

import msgspec

from amends.core.wrong_calls import missing_option

__all__ = ["NamedOptions"]


class NamedOptions(msgspec.StructMeta):
    """
    The metaclass of Structs whose fields users write as options, such as `Policy`.

    >>> class Bounds(msgspec.Struct, metaclass=NamedOptions, kw_only=True):
    ...     attempts: int = 5
    >>> Bounds(max_attempts=3)
    Traceback (most recent call last):
    TypeError: Bounds() has no option 'max_attempts'; use attempts
    """

    def __call__(cls, *args: Any, **options: Any) -> Any:  # noqa: N805 - of a metaclass
        """Make a value."""
        try:
            return super().__call__(*args, **options)
        except TypeError:
            fields: tuple[str, ...] = cls.__struct_fields__
            wrong = next((option for option in options if option not in fields), None)
            if wrong is None:
                raise
            raise TypeError(missing_option(cls.__name__, wrong, fields)) from None
