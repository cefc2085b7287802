"""Pure packages import no socket, asyncio or framework, and importing amends is cheap."""

import pkgutil
import subprocess
import sys

import pytest

import amends
import amends.carriers
import amends.core
import amends.core.vocabularies
import amends.dialects

IMPURE = (
    *(
        "asyncio",
        "socket",
        "ssl",
        "_socket",
        "_ssl",
        "http.client",
        "http.server",
        "urllib.request",
        "select",
    ),
    *(
        "selectors",
        "subprocess",
        "random",
        "pydantic",
        "httpx",
        "httpx2",
        "requests",
        "aiohttp",
        "mcp",
        "a2a",
    ),
    *(
        "starlette",
        "fastapi",
        "flask",
        "django",
        "click",
        "typer",
        "rich",
        "opentelemetry",
        "websockets",
        "nats",
    ),
)
PURE_NAMES = (
    *("Decision", "Fault", "FaultError", "Operation", "Policy", "Recovery", "State"),
    *("decide", "decode", "encode", "extract", "for_llm", "losses", "translate"),
)


def loaded(code):
    """Return the modules that a new interpreter has loaded after running `code`."""
    script = f"import sys\n{code}\nprint('\\n'.join(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


BASE = loaded("pass")
WITH_MSGSPEC = BASE | loaded("import msgspec")
"""msgspec imports uuid, which on some platforms imports a C module of the socket library."""


def third_party(names):
    """Return the top-level packages that are neither amends nor in the standard library."""
    tops = {name.partition(".")[0] for name in names - BASE}
    return {top for top in tops if top not in sys.stdlib_module_names and top != "amends"}


def modules_of(package):
    """Return all modules of a package."""
    return [module.name for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")] or [
        package.__name__
    ]


@pytest.mark.parametrize(
    "package", [amends.core, amends.dialects, amends.carriers], ids=lambda package: package.__name__
)
def test_pure_packages_load_nothing_impure(package):
    """Design 2: no module of core, dialects and carriers imports an impure module."""
    names = loaded("\n".join(f"import {name}" for name in modules_of(package)))
    assert {name for name in IMPURE if name in names - WITH_MSGSPEC} == set()
    assert third_party(names) <= {"msgspec", "typing_extensions"}


def test_msgspec_itself_is_harmless():
    """The modules that msgspec imports are subtracted in these tests, so they must be harmless."""
    assert not {"asyncio", "socket", "ssl", "http.client", "pydantic"} & WITH_MSGSPEC


def test_importing_amends_loads_nothing_else():
    """Issue 2: `import amends` loads no other module of amends, no msgspec, and no impure module."""
    names = loaded("import amends") - BASE
    assert third_party(names) == set()
    assert {name for name in names if name.startswith("amends")} == {"amends", "amends._version"}
    assert {name for name in (*IMPURE, "http", "typing", "json", "dataclasses") if name in names} == set()


def test_reading_the_pure_names_loads_only_msgspec():
    """Design 10: the pure names load no third-party package but msgspec, which may import typing_extensions."""
    names = loaded("import amends\n" + "\n".join(f"amends.{name}" for name in PURE_NAMES))
    assert third_party(names) <= {"msgspec", "typing_extensions"}
    assert {name for name in IMPURE if name in names - WITH_MSGSPEC} == set()
    assert not {"asyncio", "socket", "ssl", "http.client", "pydantic"} & names


def test_calling_the_pure_names_loads_nothing_impure():
    """Extracting, decoding, encoding, translating and deciding load no impure module, except for parsing dates."""
    code = """
import amends
fault = amends.extract({"status": 429, "headers": {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, "body": "{}"})
for name in ("problem", "envelope", "task", "adcp", "arcp"):
    amends.decode(amends.encode(amends.Fault(code="TIMEOUT", message="It took too long"), name), name)
for name in ("http", "cli", "task", "adcp", "arcp"):
    amends.translate(fault, name)
amends.decide(fault)
amends.for_llm(fault)
"""
    names = loaded(code)
    # HTTP dates are parsed by email.utils, which imports socket; see the next test.
    assert third_party(names) <= {"msgspec", "typing_extensions"}
    assert {name for name in ("asyncio", "ssl", "http.client", "pydantic") if name in names - BASE} == set()


def test_extracting_an_adcp_error_loads_nothing_impure():
    """A response without a date needs no impure module."""
    code = """
import amends
amends.decide(amends.extract(b'{"isError": true, "structuredContent": {"adcp_error": {"code": "RATE_LIMITED"}}}'))
"""
    assert {name for name in IMPURE if name in loaded(code) - WITH_MSGSPEC} == set()


@pytest.mark.parametrize("name", ["httpx", "requests", "aiohttp", "mcp", "fastmcp"])
def test_clients_do_not_load_the_ledger(name):
    """A client asks for the key of a running effect; the ledger and its stores are loaded with a ledger."""
    found = loaded(f"import amends.bindings.{name}")
    heavy = ("amends.effects", "amends.stores", "amends.durable", "psycopg", "sqlite3")
    assert [each for each in found if each.startswith(heavy)] == []
    assert f"amends.bindings.{name}" in found
