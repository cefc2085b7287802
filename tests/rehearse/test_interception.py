"""Interception in the process: clients of every library meet the real thing, and afterwards everything is as it was."""

import asyncio
import http.client
import os
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import aiohttp
import httpx
import httpx2
import pytest
import requests
import urllib3

from amends.rehearse.plan import Failure, Plan
from amends.rehearse.rehearsal import Rehearsal

URL = "https://api.stripe.com/v1/customers"


def with_httpx():
    return httpx.post(URL, data={"name": "a"}, timeout=2).status_code


def with_httpx_async():
    async def call():
        async with httpx.AsyncClient(timeout=2) as client:
            return (await client.post(URL, data={"name": "a"})).status_code

    return asyncio.run(call())


def with_httpx2():
    return httpx2.post(URL, data={"name": "a"}, timeout=2).status_code


def with_httpx2_async():
    async def call():
        async with httpx2.AsyncClient(timeout=2) as client:
            return (await client.post(URL, data={"name": "a"})).status_code

    return asyncio.run(call())


def with_requests():
    return requests.post(URL, data={"name": "a"}, timeout=2).status_code


def with_urllib3():
    return urllib3.request("POST", URL, body=b"name=a", timeout=2, retries=False).status


def with_aiohttp():
    async def call():
        timeout = aiohttp.ClientTimeout(total=2)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.post(URL, data={"name": "a"}) as answer,
        ):
            await answer.read()
            return answer.status

    return asyncio.run(call())


CLIENTS = {
    each.__name__.removeprefix("with_"): each
    for each in (
        with_httpx,
        with_httpx_async,
        with_httpx2,
        with_httpx2_async,
        with_requests,
        with_urllib3,
        with_aiohttp,
    )
}
LOST = {
    "httpx": "RemoteProtocolError",
    "httpx_async": "RemoteProtocolError",
    "httpx2": "RemoteProtocolError",
    "httpx2_async": "RemoteProtocolError",
    "requests": "ConnectionError",
    "urllib3": "ProtocolError",
    "aiohttp": "ServerDisconnectedError",
}
UNCONNECTED = {
    "httpx": "ConnectError",
    "httpx_async": "ConnectError",
    "httpx2": "ConnectError",
    "httpx2_async": "ConnectError",
    "requests": ("ConnectionError", "SSLError"),
    "urllib3": ("NewConnectionError", "NameResolutionError", "SSLError"),
    "aiohttp": ("ClientConnectorError", "ClientConnectorDNSError", "ClientConnectorSSLError"),
}


def outcome(call):
    try:
        return call()
    except Exception as error:
        return type(error).__name__


@pytest.mark.parametrize("name", CLIENTS)
def test_every_client_meets_its_own_exceptions(name):
    """An answer, a status, a lost answer, and a connection that is refused, has no address or breaks its handshake."""
    call, expected = CLIENTS[name], {}
    kinds = {"": 201, "rate": 429, "html": 502, "lost": LOST[name]}
    kinds |= dict.fromkeys(("refused", "dns", "tls"), UNCONNECTED[name])
    for kind in kinds:
        failures = [Failure("stripe", kind, call=1)] if kind else [Failure("stripe", "rate", call=99)]
        with Rehearsal("stripe", plan=Plan(failure=failures)) as stage:
            expected[kind] = outcome(call)
        assert stage.violations == []
        assert bool(stage.incidents) is bool(kind), kind
    for kind, found in expected.items():
        assert found in (kinds[kind] if isinstance(kinds[kind], tuple) else (kinds[kind],)), kind


OWNERS = (
    *(httpx.HTTPTransport, httpx.AsyncHTTPTransport, httpx2.HTTPTransport, httpx2.AsyncHTTPTransport),
    *(urllib3.HTTPConnectionPool, urllib3.HTTPSConnectionPool, aiohttp.TCPConnector, aiohttp.BaseConnector),
    *(socket, socket.socket, subprocess.Popen, http.client.HTTPConnection),
)


def test_everything_is_removed_afterwards():
    """Every attribute of the clients, of the sockets and of the environment is the object that it was."""
    before = [dict(vars(each)) for each in OWNERS]
    environment, finders = dict(os.environ), list(sys.meta_path)
    with Rehearsal("stripe", "orders", kinds=["rate"]):
        assert [dict(vars(each)) for each in OWNERS] != before
        outcome(with_httpx)
    assert [dict(vars(each)) for each in OWNERS] == before
    assert (dict(os.environ), sys.meta_path) == (environment, finders)


def test_everything_is_removed_after_an_exception():
    """The same if the block raises."""
    before = [dict(vars(each)) for each in OWNERS]
    with pytest.raises(RuntimeError, match="broken"), Rehearsal("stripe", kinds=["rate"]):
        raise RuntimeError("broken")
    assert [dict(vars(each)) for each in OWNERS] == before


class Recording(BaseHTTPRequestHandler):
    """A service of the user: it keeps the bytes that it receives, and answers with odd but allowed headers."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.server.received.append(
            (self.path, sorted((k.lower(), v) for k, v in self.headers.items()), body)
        )
        answer = b'{"odd":  "spacing",\n"n":1}'
        self.send_response_only(201)
        self.send_header("X-Odd-Case", "a, b")
        self.send_header("Set-Cookie", "one=1")
        self.send_header("Set-Cookie", "two=2")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args):
        pass


@pytest.fixture
def service():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Recording)
    server.received = []
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def raw(address, path="/orders"):
    """Return the bytes of one answer."""
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(
            f"POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{{}}".encode()
        )
        received = b""
        while piece := connection.recv(65536):
            received += piece
            if received.endswith(b'"n":1}'):
                return received
    return received


def test_a_plan_without_failures_changes_no_byte(service):
    """A forwarded answer has the same bytes: status line, headers in their order and case, body."""
    address = f"http://127.0.0.1:{service.server_address[1]}"
    direct = raw(address)
    with Rehearsal(f"shop={address}", plan=Plan(failure=[Failure("shop", "rate", route="/never")])) as stage:
        through = raw(stage.address("shop"))
    assert through == direct
    assert [(path, body) for path, _, body in service.received] == [("/orders", b"{}")] * 2
    assert stage.effects == 1


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_is_the_same_before_and_after(name, service):
    """What a client sends to a service of one's own has the same bytes before, during and after a rehearsal."""
    global URL
    old, URL = URL, f"http://127.0.0.1:{service.server_address[1]}/orders"
    try:
        CLIENTS[name]()
        with Rehearsal("stripe", kinds=["rate"]):
            CLIENTS[name]()
        CLIENTS[name]()
    finally:
        URL = old
    first, during, after = service.received
    assert first == during == after


class TestBeyondThisMachine:
    """Connections beyond loopback are refused and named, and there is no score."""

    def refused(self, call, host):
        with Rehearsal("stripe", kinds=["rate"]) as stage:
            with_httpx2()
            found = outcome(call)
        assert isinstance(found, str), found
        assert [each for each in stage.violations if each.startswith(host)], stage.violations
        assert stage.score() is None
        assert stage.rows[0].note == "void: connections beyond this machine were refused"

    @pytest.mark.parametrize("client", [httpx.get, httpx2.get, requests.get])
    def test_intercepted_clients_and_unknown_hosts(self, client):
        """A host of no service of the stage."""
        self.refused(lambda: client("https://example.com/"), "example.com")

    def test_http_client(self):
        """http.client is not intercepted, so even a known host is refused."""
        self.refused(
            lambda: http.client.HTTPSConnection("api.stripe.com", timeout=2).request("GET", "/"),
            "api.stripe.com",
        )

    def test_a_plain_socket(self):
        """An address without a name."""
        self.refused(lambda: socket.create_connection(("192.0.2.1", 443), timeout=2), "192.0.2.1:443")

    def test_asyncio(self):
        """The event loop uses the same sockets."""
        self.refused(lambda: asyncio.run(asyncio.open_connection("192.0.2.1", 443)), "192.0.2.1:443")

    def test_datagrams(self):
        """A datagram is no connection, and leaves the machine all the same."""

        def send():
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                sender.sendto(b"x", ("192.0.2.1", 53))

        self.refused(send, "192.0.2.1:53")

    def test_botocore(self):
        """botocore has pools of its own."""
        from botocore.awsrequest import AWSRequest
        from botocore.httpsession import URLLib3Session

        def call():
            request = AWSRequest("GET", "https://sts.eu-west-9.example.com/").prepare()
            return URLLib3Session(timeout=2).send(request).status_code

        self.refused(call, "sts.eu-west-9.example.com")

    @pytest.mark.parametrize(
        "command",
        [
            [
                sys.executable,
                "-c",
                "import urllib.request as u; u.urlopen('https://example.com/', timeout=2)",
            ],
            [
                sys.executable,
                "-S",
                "-c",
                "import urllib.request as u; u.urlopen('https://example.com/', timeout=2)",
            ],
        ],
        ids=["a Python with amends", "a Python that begins no interception"],
    )
    def test_child_processes(self, command):
        """A child with amends is guarded in its process; any other meets a proxy that refuses."""

        def call():
            return subprocess.run(command, check=True, capture_output=True, timeout=60).returncode

        self.refused(call, "example.com")


def test_a_child_takes_part():
    """A child process in Python is intercepted, too, and its environment is the one that it was given."""
    code = (
        "import httpx2, os; print(httpx2.get('https://api.stripe.com/v1/charges').status_code, os.environ['OWN'], "
        "'AMENDS_REHEARSAL' in os.environ, 'HTTPS_PROXY' in os.environ, 'PYTHONPATH' in os.environ)"
    )
    with Rehearsal("stripe", plan=Plan(failure=[Failure("stripe", "rate", call=1)])) as stage:
        environment = {"OWN": "mine", "PATH": os.environ["PATH"]}
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=60
        )
    assert done.stdout.split() == ["429", "mine", "False", "False", "False"], done.stderr
    assert len(stage.incidents) == 1


def test_an_address_that_the_program_names_is_left_as_it_is():
    """So a program may start a proxy of its own, and name it to its children."""
    code = "import os; print(os.environ['ORDERS_URL'])"
    with Rehearsal("orders", kinds=["rate"]):
        environment = {**os.environ, "ORDERS_URL": "http://127.0.0.1:9"}
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=60
        )
        same = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        assert same.stdout.strip() == os.environ["ORDERS_URL"]
    assert done.stdout.strip() == "http://127.0.0.1:9", done.stderr


def test_one_rehearsal_at_a_time():
    """A second one in the same process is refused, and leaves the first as it is."""
    with Rehearsal("stripe", kinds=["rate"]) as stage:
        with pytest.raises(RuntimeError, match="running in this process already"), Rehearsal("orders"):
            pass
        assert with_httpx2() == 429
    assert stage.incidents


def test_requests_retries_see_each_connection():
    """urllib3's own retries meet the failure once, and then succeed."""
    session = requests.Session()
    session.mount("https://", requests.adapters.HTTPAdapter(max_retries=urllib3.Retry(3, backoff_factor=0)))
    with session, Rehearsal("stripe", plan=Plan(failure=[Failure("stripe", "refused", call=1)])) as stage:
        assert session.get(URL, timeout=2).status_code == 200
    assert [call.failure for call in stage.record.calls] == ["stripe/refused", None]
