"""Changes to attributes that are undone in the opposite order, and changes to modules that are imported later."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

__all__ = ["Patches"]

_ABSENT = object()


class Patches:
    """
    Replaces attributes of classes and modules, and puts back what was there.

    >>> class Client:
    ...     def send(self):
    ...         return "sent"
    >>> patches = Patches()
    >>> patches.set(Client, "send", lambda self: "intercepted")
    >>> Client().send()
    'intercepted'
    >>> patches.undo()
    >>> Client().send()
    'sent'
    """

    def __init__(self) -> None:
        self._undo: list[tuple[Any, str, object]] = []
        self._finder: _Finder | None = None

    def set(self, owner: Any, name: str, value: object) -> None:
        """Replace an attribute. One that was inherited is removed again at the end."""
        self._undo.append((owner, name, vars(owner).get(name, _ABSENT)))
        setattr(owner, name, value)

    def when_imported(self, name: str, change: Callable[[ModuleType], None]) -> None:
        """Call `change` with a module: now if it is imported, else as soon as it is."""
        if name in sys.modules:
            change(sys.modules[name])
            return
        if self._finder is None:
            self._finder = _Finder()
            sys.meta_path.insert(0, self._finder)
        self._finder.changes[name] = change

    def undo(self) -> None:
        """Put everything back."""
        if self._finder is not None:
            sys.meta_path.remove(self._finder)
            self._finder.changes.clear()
            self._finder = None
        while self._undo:
            owner, name, value = self._undo.pop()
            if value is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, value)


class _Finder(MetaPathFinder):
    """Finds modules as usual, and lets them be changed once they are loaded."""

    def __init__(self) -> None:
        self.changes: dict[str, Callable[[ModuleType], None]] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module that is to be changed."""
        if fullname not in self.changes:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self.changes.pop(fullname))
        return spec


class _Loader(Loader):
    """Loads a module with its own loader, and changes it."""

    def __init__(self, loader: Loader, change: Callable[[ModuleType], None]) -> None:
        self._loader = loader
        self._change = change

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Create the module as usual."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, with its own loader in its spec, and change it."""
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._change(module)
