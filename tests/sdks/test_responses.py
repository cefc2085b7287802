"""Every SDK against a server that answers with the fixtures: its own exception is read as the fixture says."""

from importlib.metadata import PackageNotFoundError, version

import pytest

from amends import from_exception, vectors
from amends.core.executed import executed_by_status
from tests.sdks.clients import SDKS
from tests.sdks.server import Answer, serving

FIXTURES = [
    each for each in vectors.load_vendors() if isinstance(each.input, dict) and "status" in each.input
]
ROOTS = {"ec2": "<Response>", "s3": "<Error>"}
"""The clients of AWS services that send XML, and the root of their errors; the others get the fixtures in JSON."""


FEW = 12
"""aiobotocore makes a client in 0.3 s, so it gets a few fixtures; it raises the classes of botocore."""


UNKNOWN = {"twilio": {"retry_after"}}
"""What the exceptions of an SDK do not keep: Twilio's have no headers."""


def installed(name):
    try:
        version({"s3": "botocore", "ec2": "botocore"}.get(name, name))
    except PackageNotFoundError:
        return False
    return True


def fits(name, fixture):
    """Return whether a fixture is one that this SDK can receive."""
    status, body = fixture.input["status"], fixture.input.get("body")
    if fixture.vendor == "aws":
        xml = isinstance(body, str) and body.lstrip().startswith("<")
        root = ROOTS.get(name)
        if xml != (root is not None) or (
            xml and next(each for each in ROOTS.values() if each in body) != root
        ):
            return False
    return fixture.vendor in SDKS[name][1] and (status >= 400 or name == "slack-sdk")


def difference(fault, expected, status):
    """
    Return the facts that differ.

    The server is not the service's host. An exception that shows this proves nothing under a status that may have had its effect.
    """
    found = {}
    if fault.executed == "maybe" and executed_by_status(status) == "maybe":
        expected = {name: value for name, value in expected.items() if (name, value) != ("executed", "no")}
    for name in ("code", "recovery", "executed", "retry_after"):
        if name in expected:
            seen = getattr(getattr(fault, name), "value", getattr(fault, name))
            if (
                seen != pytest.approx(expected[name])
                if isinstance(expected[name], float)
                else seen != expected[name]
            ):
                found[name] = (expected[name], seen)
    return found


@pytest.mark.parametrize("name", [name for name, (_, vendors) in SDKS.items() if vendors])
def test_the_exceptions_of_an_sdk(name):
    """One call, one exception of the SDK's own, and the fault of the fixture; nothing of the body's prose."""
    if not installed(name):
        pytest.skip(f"{name} is not installed")
    call, wrong, tried = SDKS[name][0], {}, 0
    with serving(Answer(500)) as server:
        for fixture in FIXTURES:
            if not fits(name, fixture) or (name == "aiobotocore" and tried == FEW):
                continue
            headers = {key: str(value) for key, value in (fixture.input.get("headers") or {}).items()}
            if name == "elasticsearch":
                headers["X-Elastic-Product"] = "Elasticsearch"
            server.script, server.requests = (
                [Answer(fixture.input["status"], fixture.input.get("body"), headers)],
                [],
            )
            try:
                call(server.url)
            except Exception as error:
                tried += 1
                known = {
                    key: value
                    for key, value in fixture.expected["fault"].items()
                    if key not in UNKNOWN.get(name, ())
                }
                found = difference(from_exception(error), known, fixture.input["status"])
                if len(server.requests) != 1:
                    found["calls"] = len(server.requests)
            else:
                found = {"raised": None}
            if found:
                wrong[fixture.id] = found
    assert wrong == {}
    assert tried


@pytest.mark.parametrize("name", SDKS)
def test_without_a_response(name):
    """Nothing listens: the exception has no response, and the call was certainly not executed."""
    if not installed(name):
        pytest.skip(f"{name} is not installed")
    with serving(Answer(500)) as server:
        url = server.url
    with pytest.raises(Exception) as caught:
        SDKS[name][0](url)
    fault = from_exception(caught.value)
    assert (fault.code, fault.recovery.value) == ("SERVICE_UNAVAILABLE", "transient")
