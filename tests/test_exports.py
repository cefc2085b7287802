"""Public names: every module has `__all__`, and the top-level package exports the names of the design."""

import importlib
import pkgutil
import subprocess
import sys

import pytest

import amends
from tests.each import each

SECTION_9 = {
    *("Fault", "FaultError", "Recovery", "Decision", "Policy", "Operation", "Upstream"),
    *("extract", "decide", "encode", "decode", "translate", "losses", "for_llm"),
    *("from_exception", "from_upstream", "recover", "arecover", "recover_stream", "arecover_stream"),
}


def public_modules():
    """Return the names of all public modules of the package."""
    found = ["amends"]
    for module in pkgutil.walk_packages(amends.__path__, "amends."):
        parts = module.name.split(".")
        if not any(part.startswith("_") for part in parts):
            found.append(module.name)
    return found


MODULES = public_modules()
NEEDS_EXTRA = (
    "amends.bindings.",
    "amends.testing_plugin",
    "amends.stores.nats",
    "amends.arcp",
    "amends.gateway",
    "amends.page",
)
"""Modules that need an extra or a framework; their own tests import them."""


def test_the_top_level_names():
    """Design 9: the package exports the names of the design, State, `register` and the version."""
    assert set(amends.__all__) == SECTION_9 | {
        "State",
        "__version__",
        "dashboard",
        "own",
        "record",
        "register",
    }


@pytest.mark.parametrize("name", sorted(SECTION_9 | {"State"}))
def test_every_top_level_name(name):
    """A top-level name is the object of its module, is cached, and has a docstring."""
    found = getattr(amends, name)
    assert found is getattr(importlib.import_module(f"amends.{amends._MODULES[name]}"), name)
    assert found is amends.__dict__[name]
    assert found.__doc__


def test_dir_lists_the_public_names():
    """`dir` lists the names before they are loaded."""
    assert dir(amends) == sorted(amends.__all__)
    script = "import amends; print(' '.join(dir(amends)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == sorted(amends.__all__)


def test_another_name_is_an_attribute_error():
    """An unknown name raises AttributeError."""
    with pytest.raises(AttributeError):
        amends.nonsense  # noqa: B018
    assert not hasattr(amends, "Recover")


def test_a_star_import_gives_everything():
    """`from amends import *` imports all public names."""
    given: dict = {}
    exec("from amends import *", given)
    assert set(amends.__all__) <= set(given)


def test_the_version():
    """`__version__` is the version of the distribution."""
    from importlib.metadata import version

    assert amends.__version__ == version("amends")


@each("name", [name for name in MODULES if not name.startswith(NEEDS_EXTRA)])
def test_every_public_module_has_all(name):
    """House style 10: every public module has a docstring and an `__all__` whose names exist."""
    module = importlib.import_module(name)
    assert module.__doc__, "a module starts with a docstring"
    source = getattr(module, "__file__", "") or ""
    exported = getattr(module, "__all__", None)
    if exported is None:
        # A package without names of its own exports only its modules.
        assert source.endswith("__init__.py")
        public = {key for key, value in vars(module).items() if not key.startswith("_")}
        assert all(
            isinstance(getattr(module, key), type(pkgutil)) or key == "annotations" for key in public
        ), public
        return
    assert len(set(exported)) == len(exported)
    assert all(hasattr(module, each) for each in exported)
