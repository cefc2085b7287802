"""C11: the failing service and the place the probes run in, each on its own."""

import http.client
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from amends.audit import observe
from amends.audit.fixture import RETRY_AFTER, fixture


@pytest.fixture(scope="module")
def service():
    with fixture() as running:
        yield running


def asked(service, method, body=None, path="/x"):
    connection = http.client.HTTPConnection(urlsplit(service.url).netloc, timeout=20)
    try:
        connection.request(method, path, body)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


@pytest.mark.parametrize("status", [429, 503, 401, 404, 422])
@pytest.mark.parametrize(("method", "body"), [("GET", None), ("POST", b"x" * 100_000), ("HEAD", None)])
def test_every_status_whatever_is_asked(service, status, method, body):
    """Bodies are read, HEAD is answered without one, a rate limit says how long; all of it is remembered."""
    service.begin(str(status))
    answered, headers, text = asked(service, method, body)
    assert answered == status
    assert (text == b"") is (method == "HEAD")
    assert headers["Retry-After"] == (str(RETRY_AFTER) if status == 429 else None)
    (request,) = service.requests
    assert (request.method, request.path) == (method, "/x")


def test_a_request_to_a_proxy(service):
    """A tool that was given the address as a proxy is answered in the name of whomever it asked."""
    service.begin("503")
    assert asked(service, "GET", path="http://api.service.localhost/user")[0] == 503
    assert service.requests[0].path == "http://api.service.localhost/user"


def test_a_connection_that_breaks(service):
    """Drop: no word of an answer."""
    service.begin("drop")
    with pytest.raises(http.client.RemoteDisconnected):
        asked(service, "GET")
    assert len(service.requests) == 1


def test_the_end_of_the_fixture_ends_a_hang():
    """Nobody waits for the fixture when the audit is over."""
    with fixture() as running:
        running.begin("hang")
        connection = http.client.HTTPConnection(urlsplit(running.url).netloc, timeout=20)
        connection.request("GET", "/")
        running.over.set()
        with pytest.raises(http.client.RemoteDisconnected):
            connection.getresponse()
        connection.close()


def test_a_network_that_cannot_be_cut_off_is_said():
    """A process with threads may not move to a namespace: the report says so instead of claiming it."""
    program = (
        "import threading\nfrom amends.audit.sandbox import cut_network\nover = threading.Event()\n"
        "threading.Thread(target=over.wait).start()\nprint(cut_network())\nover.set()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)
    assert done.stdout.startswith("not enforced: "), done.stderr


def test_a_flag_that_promises_json_and_keeps_nothing(tmp_path):
    """A flag in the help text that does not turn a mistake into JSON is no way to JSON; the next one may be."""
    tool = tmp_path / "tool.sh"
    tool.write_text(
        '#!/bin/sh\n[ "$1" = --help ] && { echo "--output, --json, --format"; exit 0; }\n'
        '[ "$2" = --format ] && echo "{}"\nexit 2\n'
    )
    tool.chmod(0o755)
    assert observe([str(tool)]).json_way == ["--format", "json"]
