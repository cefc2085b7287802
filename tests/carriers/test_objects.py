"""Objects of common libraries: real ones from a loopback server, and real subprocesses."""

import asyncio
import json
import subprocess
import sys
import threading
import types
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pydantic
import pytest

from amends.carriers.extraction import examine, extract
from amends.carriers.objects import read_object

PROBLEM = {
    "type": "https://e.com/slow",
    "title": "Slow down",
    "status": 429,
    "detail": "d",
    "retry_after_ms": 1500,
}
ADCP = {"code": "RATE_LIMITED", "message": "Request rate exceeded", "recovery": "transient", "retry_after": 5}


class Handler(BaseHTTPRequestHandler):
    """Answers 429 with a problem; /bare without a body."""

    def do_GET(self):
        body = b"" if self.path == "/bare" else json.dumps(PROBLEM).encode()
        self.send_response(429)
        self.send_header("Content-Type", "application/problem+json")
        self.send_header("Retry-After", "9")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        """Log nothing."""


@pytest.fixture(scope="module")
def url():
    """Start a server and return its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def assert_problem(response):
    """Check that the body was read."""
    via, reading = examine(response)
    assert (via, reading.path, reading.fault.retry_after) == ("http", "body", 1.5)
    assert reading.fault.type == PROBLEM["type"]


def assert_header(response):
    """Check that the fault comes from the status and the headers alone."""
    via, reading = examine(response)
    assert (via, reading.path, reading.fault.retry_after) == ("http", "header", 9.0)
    assert reading.fault.code == "RATE_LIMITED"


@pytest.mark.parametrize("name", ["httpx", "httpx2"])
def test_httpx_and_httpx2(url, name):
    """Design 4: read, without a body, and not read yet; a body that was not received is not fetched."""
    module = pytest.importorskip(name)
    with module.Client(trust_env=False) as client:
        assert_problem(client.get(url))
        assert_header(client.get(url + "/bare"))
        with client.stream("GET", url) as streamed:
            assert_header(streamed)
            assert not streamed.is_stream_consumed
            streamed.read()
            assert_problem(streamed)
    assert_problem(module.Response(429, json=PROBLEM, headers={"Retry-After": "9"}))


def test_requests(url):
    """Design 4: read, without a body, and streamed."""
    requests = pytest.importorskip("requests")
    with requests.Session() as session:
        session.trust_env = False
        assert_problem(session.get(url, timeout=5))
        assert_header(session.get(url + "/bare", timeout=5))
        with session.get(url, stream=True, timeout=5) as streamed:
            assert_header(streamed)
            assert streamed.raw.tell() == 0
            assert streamed.json() == PROBLEM
            assert_problem(streamed)


async def test_aiohttp(url):
    """Design 4: a body that was awaited is read, another is not."""
    aiohttp = pytest.importorskip("aiohttp")
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        assert_header(response)
        await response.read()
        assert_problem(response)
    await asyncio.sleep(0)


def test_urllib(url):
    """The standard library's HTTPError is a response."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with pytest.raises(urllib.error.HTTPError) as caught:
        opener.open(url, timeout=5)
    with caught.value as error:
        assert_header(error)
        assert json.loads(error.read()) == PROBLEM


def test_urllib3(url):
    """A preloaded body is read, a streamed one is not fetched."""
    urllib3 = pytest.importorskip("urllib3")
    with urllib3.PoolManager(retries=False) as pool:
        streamed = pool.request("GET", url, preload_content=False)
        assert_header(streamed)
        assert json.loads(streamed.read()) == PROBLEM
        streamed.release_conn()
        assert_problem(pool.request("GET", url))


def test_starlette():
    """A server's response object, before it is sent."""
    responses = pytest.importorskip("starlette.responses")
    assert_problem(responses.JSONResponse(PROBLEM, status_code=429, headers={"Retry-After": "9"}))


@pytest.mark.parametrize("body", ["content", "body", "_body", "data", "text"])
@pytest.mark.parametrize("kind", [str, str.encode, lambda text: bytearray(text, "utf8")])
def test_bodies_under_other_names(body, kind):
    """Stand-ins for frameworks that are not installed here (Django, Flask, Litestar), with the same attributes."""
    response = types.SimpleNamespace(status_code=429, headers={}, **{body: kind(json.dumps(PROBLEM))})
    assert extract(response).type == PROBLEM["type"]


def test_a_status_without_headers_is_not_a_response():
    """Such objects are not recognised."""
    assert read_object(types.SimpleNamespace(status_code=429)) == (None, None)
    assert read_object(types.SimpleNamespace(status_code="429", headers={})) == (None, None)
    assert read_object(types.SimpleNamespace(status=True, headers={})) == (None, None)
    assert read_object(types.SimpleNamespace(status=429, headers=5)) == (None, None)


def test_mcp_results():
    """A2: the SDK's CallToolResult, structured and by text."""
    mcp_types = pytest.importorskip("mcp_types")
    text = mcp_types.TextContent(type="text", text=json.dumps({"adcp_error": ADCP}))
    structured = mcp_types.CallToolResult(
        content=[text], structured_content={"adcp_error": ADCP}, is_error=True
    )
    via, reading = examine(structured)
    assert (via, reading.path, reading.fault.code) == ("mcp", "structuredContent", "RATE_LIMITED")
    older = mcp_types.CallToolResult(content=[text], is_error=True)
    assert examine(older)[1].path == "text_fallback"
    assert extract(mcp_types.CallToolResult(content=[text])) is None


def test_mcp_errors():
    """A3: the SDK's exception carries the error of a gateway."""
    mcp = pytest.importorskip("mcp")
    error = mcp.MCPError(code=-32029, message="Rate limit exceeded", data={"adcp_error": ADCP})
    via, reading = examine(error)
    assert (via, reading.path, reading.fault.code) == ("jsonrpc", "jsonrpc_error", "RATE_LIMITED")
    assert extract(error, via="mcp").code == "RATE_LIMITED"


@pytest.mark.parametrize("names", [("isError", "structuredContent"), ("is_error", "structured_content")])
@pytest.mark.parametrize("wrap", [list, tuple])
def test_results_of_either_spelling(names, wrap):
    """Stand-ins for SDK 1.x, SDK 2.x and FastMCP's client: camelCase and snake_case, items as objects or dicts."""
    failed, structured = names
    item = types.SimpleNamespace(type="text", text=json.dumps({"adcp_error": ADCP}))
    plain_item = {"type": "text", "text": json.dumps({"adcp_error": ADCP})}
    for content in ([item], [plain_item], [types.SimpleNamespace(), item]):
        result = types.SimpleNamespace(**{failed: True, structured: None, "content": wrap(content)})
        assert examine(result)[1].path == "text_fallback"
    result = types.SimpleNamespace(**{failed: True, structured: {"adcp_error": ADCP}, "content": wrap([])})
    assert examine(result)[1].path == "structuredContent"
    assert read_object(types.SimpleNamespace(**{failed: "true", "content": []})) == (None, None)
    assert read_object(types.SimpleNamespace(**{failed: True, "content": "x"})) == (None, None)


@pytest.mark.parametrize("nested", [True, False])
def test_errors_with_a_jsonrpc_code(nested):
    """Stand-ins for SDK 1.x's McpError (with .error) and others': code, message and data."""
    inner = types.SimpleNamespace(code=-32029, message="no", data={"adcp_error": ADCP})
    error = types.SimpleNamespace(error=inner) if nested else inner
    assert examine(error)[1].path == "jsonrpc_error"
    assert read_object(types.SimpleNamespace(code=-32029, message="no")) == (None, None)
    assert read_object(types.SimpleNamespace(code=-32029, data={})) == (None, None)
    assert read_object(types.SimpleNamespace(code="x", message="no", data={})) == (None, None)


def test_a2a_messages():
    """A4, design 8: the SDK's 1.0 protobuf task; whole numbers are floats."""
    pytest.importorskip("a2a")
    a2a = pytest.importorskip("a2a.types")
    from google.protobuf.json_format import ParseDict

    document = {
        "id": "t",
        "contextId": "c",
        "status": {"state": "TASK_STATE_FAILED"},
        "artifacts": [{"artifactId": "e", "parts": [{"text": "no"}, {"data": {"adcp_error": ADCP}}]}],
    }
    task = ParseDict(document, a2a.Task())
    via, reading = examine(task)
    assert (via, reading.path, reading.fault.retry_after) == ("a2a", "artifact", 5.0)
    assert type(reading.fault.retry_after) is float


def test_a_descriptor_without_its_library():
    """An object that only looks like protobuf is not recognised, whatever the library raises."""
    assert read_object(types.SimpleNamespace(DESCRIPTOR=None)) == (None, None)


class Part(pydantic.BaseModel):
    """Like the A2A 0.3 SDK's: pydantic, with aliases."""

    kind: str = "data"
    data: dict


class Artifact(pydantic.BaseModel):
    artifact_id: str = pydantic.Field(default="a", alias="artifactId")
    parts: list[Part]


class Status(pydantic.BaseModel):
    state: str


class Task(pydantic.BaseModel):
    id: str
    status: Status
    artifacts: list[Artifact]
    metadata: dict | None = None


def test_pydantic_models():
    """A4: the 0.3 SDK's types; the shape of the dumped model decides."""
    task = Task(
        id="t", status=Status(state="failed"), artifacts=[Artifact(parts=[Part(data={"adcp_error": ADCP})])]
    )
    via, reading = examine(task)
    assert (via, reading.fault.code) == ("a2a", "RATE_LIMITED")
    assert read_object(Task) == (None, None)
    assert read_object(pydantic.RootModel[int](5)) == (None, None)


def test_finished_commands():
    """C12: a CompletedProcess, as text and as bytes, and the exception that subprocess raises."""
    code = 'import json; print(json.dumps({"ok": False, "error": {"code": "TIMEOUT"}})); exit(7)'
    for text in (True, False):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=text, check=False)
        assert (extract(done).code, examine(done)[0]) == ("TIMEOUT", "cli")
    with pytest.raises(subprocess.CalledProcessError) as caught:
        subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)
    assert extract(caught.value).code == "TIMEOUT"
    silent = subprocess.run([sys.executable, "-c", "exit(3)"], check=False)
    assert extract(silent).details == {"exit": 3}
    assert extract(subprocess.run([sys.executable, "-c", ""], check=False)) is None


def test_a_command_that_took_too_long():
    """C12: TimeoutExpired has no exit code, and the command may still run."""
    with pytest.raises(subprocess.TimeoutExpired) as caught:
        subprocess.run([sys.executable, "-c", "import time; time.sleep(30)"], timeout=0.05, check=False)
    via, reading = examine(caught.value)
    assert (via, reading.path, reading.fault.code) == ("cli", "timeout", "TIMEOUT")


class Angry:
    """An object whose attributes all raise."""

    def __getattr__(self, name):
        raise RuntimeError(name)


class Half:
    """A response whose body raises, as httpx's does before it is read."""

    status_code = 503
    headers = {"Retry-After": "9"}

    @property
    def content(self):
        raise RuntimeError

    text = json.dumps(PROBLEM)


class Liar(Mapping):
    """A mapping that cannot be iterated."""

    def __getitem__(self, key):
        raise KeyError(key)

    def __iter__(self):
        raise RuntimeError

    def __len__(self):
        return 1


@pytest.mark.parametrize("via", [None, "mcp", "http", "cli"])
@pytest.mark.parametrize(
    "make", [Angry, Liar, object, lambda: object, lambda: print, Exception, lambda: types, lambda: 1j, set]
)
def test_objects_that_raise_are_not_recognised(make, via):
    """Reading an object runs its code, so every access is guarded."""
    assert extract(make(), via=via) is None


def test_a_body_that_raises_is_read_from_another_attribute():
    """If one property raises, the next is read."""
    assert extract(Half()).type == PROBLEM["type"]
