"""C11: the failing service and the environment of the probes."""

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


def send(service, method, body=None, path="/x"):
    """Send a request to the fixture; return status, headers and body."""
    connection = http.client.HTTPConnection(urlsplit(service.url).netloc, timeout=20)
    try:
        connection.request(method, path, body)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


@pytest.mark.parametrize("status", [429, 503, 401, 404, 422])
@pytest.mark.parametrize(("method", "body"), [("GET", None), ("POST", b"x" * 100_000), ("HEAD", None)])
def test_every_status_for_every_method(service, status, method, body):
    """Request bodies are read, HEAD gets no body, 429 has Retry-After, and all requests are recorded."""
    service.begin(str(status))
    status_received, headers, text = send(service, method, body)
    assert status_received == status
    assert (text == b"") is (method == "HEAD")
    assert headers["Retry-After"] == (str(RETRY_AFTER) if status == 429 else None)
    (request,) = service.requests
    assert (request.method, request.path) == (method, "/x")


def test_a_request_to_a_proxy(service):
    """A tool that uses the fixture as an HTTP proxy gets the scenario's response for any host."""
    service.begin("503")
    assert send(service, "GET", path="http://api.service.localhost/user")[0] == 503
    assert service.requests[0].path == "http://api.service.localhost/user"


def test_a_connection_that_breaks(service):
    """ "drop" closes the connection without a response."""
    service.begin("drop")
    with pytest.raises(http.client.RemoteDisconnected):
        send(service, "GET")
    assert len(service.requests) == 1


def test_the_end_of_the_fixture_ends_a_hang():
    """Stopping the fixture ends a request that hangs."""
    with fixture() as running:
        running.begin("hang")
        connection = http.client.HTTPConnection(urlsplit(running.url).netloc, timeout=20)
        connection.request("GET", "/")
        running.stopping.set()
        with pytest.raises(http.client.RemoteDisconnected):
            connection.getresponse()
        connection.close()


def test_a_network_that_cannot_be_cut_off_is_reported():
    """A process with threads cannot move to a namespace; the report says so."""
    program = (
        "import threading\nfrom amends.audit.sandbox import cut_network\ndone = threading.Event()\n"
        "threading.Thread(target=done.wait).start()\nprint(cut_network())\ndone.set()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)
    assert done.stdout.startswith("not enforced: "), done.stderr


def test_a_json_flag_that_does_not_give_json(tmp_path):
    """A flag of the help text counts only if it turns a mistake into JSON; then the next flag is tried."""
    tool = tmp_path / "tool.sh"
    tool.write_text(
        '#!/bin/sh\n[ "$1" = --help ] && { echo "--output, --json, --format"; exit 0; }\n'
        '[ "$2" = --format ] && echo "{}"\nexit 2\n'
    )
    tool.chmod(0o755)
    assert observe([str(tool)]).json_flags == ["--format", "json"]
