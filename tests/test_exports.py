"""The public surface: every module says what it offers, and the front door is the design's list."""

import importlib
import pkgutil
import subprocess
import sys

import pytest

import amends

SECTION_9 = {
    *("Fault", "FaultError", "Recovery", "Decision", "Policy", "Operation", "Upstream"),
    *("extract", "decide", "encode", "decode", "translate", "losses", "for_llm"),
    *("from_exception", "from_upstream", "recover", "arecover"),
}


def public_modules():
    """Every module of the package whose name promises something, and that needs no extra to be imported."""
    found = ["amends"]
    for module in pkgutil.walk_packages(amends.__path__, "amends."):
        parts = module.name.split(".")
        if not any(part.startswith("_") for part in parts):
            found.append(module.name)
    return found


MODULES = public_modules()
NEEDS_MORE = ("amends.bindings.", "amends.testing_plugin", "amends.stores.nats", "amends.arcp")
"""Modules that stand on a framework; their own tests hold them."""


def test_the_front_door_is_the_designs_list():
    """Design 9, with State, which decide takes, `register`, and the version."""
    assert set(amends.__all__) == SECTION_9 | {"State", "__version__", "register"}


@pytest.mark.parametrize("name", sorted(SECTION_9 | {"State"}))
def test_every_name_is_there_and_is_the_same_everywhere(name):
    """A name at the front door is the object its home has, documented, and loaded once."""
    found = getattr(amends, name)
    assert found is getattr(importlib.import_module(f"amends.{amends._HOMES[name]}"), name)
    assert found is amends.__dict__[name]
    assert found.__doc__


def test_dir_shows_what_there_is():
    """Completion offers the lazy names before they are loaded."""
    assert dir(amends) == sorted(amends.__all__)
    script = "import amends; print(' '.join(dir(amends)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == sorted(amends.__all__)


def test_another_name_is_an_attribute_error():
    """As of any module."""
    with pytest.raises(AttributeError):
        amends.nonsense  # noqa: B018
    assert not hasattr(amends, "Recover")


def test_a_star_import_gives_everything():
    """`from amends import *` works: nothing optional stands behind it."""
    given: dict = {}
    exec("from amends import *", given)
    assert set(amends.__all__) <= set(given)


def test_the_version_is_one():
    """One place says it."""
    from importlib.metadata import version

    assert amends.__version__ == version("amends")


@pytest.mark.parametrize("name", [name for name in MODULES if not name.startswith(NEEDS_MORE)])
def test_every_public_module_says_what_it_offers(name):
    """House style 10: `__all__` in every public module, sorted by nothing but containing what exists."""
    module = importlib.import_module(name)
    assert module.__doc__, "a module opens with its theory"
    source = getattr(module, "__file__", "") or ""
    offered = getattr(module, "__all__", None)
    if offered is None:
        # A package that only groups its modules offers those.
        assert source.endswith("__init__.py")
        public = {key for key, value in vars(module).items() if not key.startswith("_")}
        assert all(
            isinstance(getattr(module, key), type(pkgutil)) or key == "annotations" for key in public
        ), public
        return
    assert len(set(offered)) == len(offered)
    assert all(hasattr(module, each) for each in offered)
