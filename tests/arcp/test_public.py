"""The public names: every module has `__all__`, and the package loads its names lazily and without extras."""

import importlib
import pkgutil
import subprocess
import sys

import pytest

import amends.arcp
import amends.commands.runtime
from tests.each import each

OURS = ("client", "leases", "transports", "wire")
MODULES = [
    "amends.arcp",
    *(
        module.name
        for name in OURS
        for module in pkgutil.walk_packages(
            importlib.import_module(f"amends.arcp.{name}").__path__, f"amends.arcp.{name}."
        )
    ),
    *(f"amends.arcp.{name}" for name in OURS),
    *(
        module.name
        for module in pkgutil.iter_modules(amends.commands.runtime.__path__, "amends.commands.runtime.")
    ),
]


@each("name", MODULES)
def test_every_module_has_all(name):
    """House style 10."""
    module = importlib.import_module(name)
    assert module.__doc__
    assert len(set(module.__all__)) == len(module.__all__)
    assert all(hasattr(module, each) for each in module.__all__)


def test_names_of_the_package():
    """Names are loaded on first use from the module that defines them; the package has no other names."""
    for name in amends.arcp.__all__:
        found = getattr(amends.arcp, name)
        assert found is getattr(importlib.import_module(found.__module__), name)
        assert found.__module__.startswith("amends.arcp.")
        assert found.__doc__
    assert set(dir(amends.arcp)) == set(amends.arcp.__all__)
    with pytest.raises(AttributeError):
        amends.arcp.nonsense  # noqa: B018


def test_importing_loads_nothing_optional():
    """Importing the package loads neither asyncio nor websockets nor msgspec."""
    script = "import sys, amends.arcp; print([name for name in sys.modules if name in ('asyncio', 'websockets', 'msgspec')])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
