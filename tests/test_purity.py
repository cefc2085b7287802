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
    """The modules a fresh interpreter has after running some code."""
    script = f"import sys\n{code}\nprint('\\n'.join(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


BASE = loaded("pass")
WITH_MSGSPEC = BASE | loaded("import msgspec")
"""msgspec loads uuid, and uuid, on this platform, a C module of the socket library. None of it is ours."""


def third_party(names):
    """What is neither ours nor the standard library's."""
    tops = {name.partition(".")[0] for name in names - BASE}
    return {top for top in tops if top not in sys.stdlib_module_names and top != "amends"}


def modules_of(package):
    """Every module below a package."""
    return [module.name for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")] or [
        package.__name__
    ]


@pytest.mark.parametrize(
    "package", [amends.core, amends.dialects, amends.carriers], ids=lambda package: package.__name__
)
def test_pure_packages_load_nothing_impure(package):
    """Design 2: core, dialects and carriers, every module of them."""
    names = loaded("\n".join(f"import {name}" for name in modules_of(package)))
    assert {name for name in IMPURE if name in names - WITH_MSGSPEC} == set()
    assert third_party(names) <= {"msgspec", "typing_extensions"}


def test_msgspec_itself_is_harmless():
    """The modules that msgspec imports are subtracted in these tests, so they must be harmless."""
    assert not {"asyncio", "socket", "ssl", "http.client", "pydantic"} & WITH_MSGSPEC


def test_importing_the_front_door_loads_nothing():
    """Issue 2: no asyncio, socket, ssl, http, pydantic or framework; not even msgspec, nor anything else of ours."""
    names = loaded("import amends") - BASE
    assert third_party(names) == set()
    assert {name for name in names if name.startswith("amends")} == {"amends", "amends._version"}
    assert {name for name in (*IMPURE, "http", "typing", "json", "dataclasses") if name in names} == set()


def test_touching_the_pure_names_loads_msgspec_and_nothing_else():
    """Design 10: the core needs msgspec alone (which may import typing_extensions)."""
    names = loaded("import amends\n" + "\n".join(f"amends.{name}" for name in PURE_NAMES))
    assert third_party(names) <= {"msgspec", "typing_extensions"}
    assert {name for name in IMPURE if name in names - WITH_MSGSPEC} == set()
    assert not {"asyncio", "socket", "ssl", "http.client", "pydantic"} & names


def test_using_the_pure_names_loads_nothing_impure_either():
    """Calling is as pure as importing: decoding, deciding, translating, writing, showing; redaction and dates too."""
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


def test_decoding_s4s_example_loads_nothing_impure():
    """The usual case: no date, no clock, no socket."""
    code = """
import amends
amends.decide(amends.extract(b'{"isError": true, "structuredContent": {"adcp_error": {"code": "RATE_LIMITED"}}}'))
"""
    assert {name for name in IMPURE if name in loaded(code) - WITH_MSGSPEC} == set()
