"""
Is the gateway ever worse than no gateway? The same work without one, behind nginx, behind LiteLLM where it applies, and behind ours, in one run.

For each workload: how many calls succeed, how long a failure takes that no repeat can cure, and how much paced callers are slowed by a
disturbance. All servers are processes of their own; the callers of a comparison are the same.

    python -m bench.gateway_worse [FOLDER [PART …]]     # FOLDER/bin/litellm: LiteLLM's proxy, in a virtual environment of its own

Debian's nginx is used if it is installed. The table in docs/benchmarks.md is what this prints, without the rows that need a quiet machine.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import aiohttp
import openai

from bench.gateway import free_port, quantile, wait_for

UPSTREAM = r"""
import asyncio, json, sys, time
import uvicorn
CHAT = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [{"index": 0, "finish_reason": "stop",
        "message": {"role": "assistant", "content": "hi"}}], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}
ERROR = {"error": {"message": "failed", "type": "server_error", "code": None}}
tries, computed, limited, working = {}, {}, {"until": 0.0, "left": 0}, {"now": 0}
async def answer(send, status, body, *headers, kind=b"application/json"):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    await send({"type": "http.response.start", "status": status,
                "headers": [(b"content-type", kind), (b"content-length", b"%d" % len(body)), *headers]})
    await send({"type": "http.response.body", "body": body})
async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    body, more = b"", True
    while more:
        piece = await receive()
        body, more = body + piece.get("body", b""), piece.get("more_body", False)
    path = scope["path"]
    if path.endswith("/chat/completions"):
        text = json.loads(body)["messages"][-1]["content"]
        fault, _, id = text.partition(":")
        count = tries[id] = tries.get(id, 0) + 1
        statuses = fault.split(",")
        if count <= len(statuses) and statuses[count - 1]:
            status = statuses[count - 1]
            if status == "close":
                raise RuntimeError("closed")
            headers = [(b"retry-after", b"1")] if status == "429" else []
            await answer(send, int(status), ERROR, *headers)
            return
        computed[id] = computed.get(id, 0) + 1
        await answer(send, 200, CHAT)
    elif path == "/computed":
        await answer(send, 200, computed)
    elif path.startswith("/status/"):
        await answer(send, int(path.rpartition("/")[2]), {"error": "the real one"})
    elif path.startswith("/held"):
        await answer(send, 503, ERROR, (b"retry-after", b"15"))
    elif path.startswith("/hang"):
        await asyncio.sleep(3600)
    elif path.startswith("/drip"):
        await send({"type": "http.response.start", "status": 503, "headers": [(b"content-type", b"application/json")]})
        for _ in range(3600):
            await send({"type": "http.response.body", "body": b" ", "more_body": True})
            await asyncio.sleep(1)
    elif path.startswith("/rate"):
        now = time.monotonic()
        if now > limited["until"]:
            limited.update(until=now + 1, left=20)
        if limited["left"] <= 0:
            await answer(send, 429, ERROR, (b"retry-after", b"1"))
            return
        limited["left"] -= 1
        await answer(send, 200, {})
    elif path.startswith("/busy"):
        if working["now"] >= 8:
            await answer(send, 503, ERROR)
            return
        working["now"] += 1
        await asyncio.sleep(0.05)
        working["now"] -= 1
        await answer(send, 200, {})
    elif path.startswith("/stream"):
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        for number in range(20):
            await send({"type": "http.response.body", "body": b"data: %d\n\n" % number, "more_body": True})
            await asyncio.sleep(0.1)
        await send({"type": "http.response.body", "body": b""})
    else:
        await answer(send, 200, {"id": 17})
uvicorn.run(app, port=int(sys.argv[1]), loop="uvloop", http="httptools", log_level="critical", access_log=False, lifespan="off")
"""
LITELLM = """
model_list:
- model_name: m
  litellm_params: {{model: openai/m, api_key: x, api_base: "{url}/v1"}}
litellm_settings: {{num_retries: 2, request_timeout: 600}}
"""
KEY = "sk-" + "0123456789abcdef" * 4
FAULTS = ("500", "502", "503", "504", "408", "409", "429", "529", "500,500", "503,503", "close", "429,500")
TOKEN = "the-token-of-this-benchmark"
SECONDS, RUNS = 2.0, 5


class Servers:
    """The processes of one run, by name."""

    def __init__(self) -> None:
        self.scratch = Path(tempfile.mkdtemp())
        self.processes: list[subprocess.Popen] = []
        self.urls: dict[str, str] = {}

    def start(self, name: str, port: int, *command: str, **env: str) -> None:
        """Start a server and wait until it listens."""
        self.processes.append(
            subprocess.Popen(
                list(command), env={**os.environ, **env}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
        )
        for _ in range(6):
            try:
                wait_for(port)
                break
            except RuntimeError:
                continue
        self.urls[name] = f"http://127.0.0.1:{port}"

    def end(self) -> None:
        """End all of them."""
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()

    def start_all(self, litellm: Path | None) -> None:
        """Start the upstream and the proxies in front of it."""
        scratch, python = self.scratch, sys.executable
        upstream, second, nginx, gateway, peer = (free_port() for _ in range(5))
        self.start("without", upstream, python, "-c", UPSTREAM, str(upstream))
        self.start("second", second, python, "-c", UPSTREAM, str(second))
        url = self.urls["without"]
        if shutil.which("nginx"):
            paths = " ".join(
                f"{name}_temp_path {scratch}/{name};"
                for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
            )
            (scratch / "nginx.conf").write_text(
                f"daemon off; pid {scratch}/pid; error_log stderr crit; events {{}} http {{ access_log off; {paths}"
                f" upstream u {{ server 127.0.0.1:{upstream} max_fails=0; keepalive 64; }}"
                f" server {{ listen 127.0.0.1:{nginx}; proxy_http_version 1.1; proxy_set_header Connection ''; proxy_buffering off;"
                f" location / {{ proxy_pass http://u; }} }} }}\n"
            )
            self.start("nginx", nginx, "nginx", "-c", f"{scratch}/nginx.conf", "-p", str(scratch))
        (scratch / "gateway.toml").write_text(
            f'listen = "127.0.0.1:{gateway}"\nrecord = "sqlite:///{scratch}/record.db"\n'
            f'[upstream.all]\nurl = "{url}"\nprefix = "/all"\n'
            f'[upstream.models]\nurl = "{url}"\nvendor = "openai"\n'
            f'[upstream.second]\nurl = "{self.urls["second"]}"\nvendor = "openai"\n'
            '[route.chat]\nto = ["models", "second"]\n'
        )
        self.start(
            "ours",
            gateway,
            python,
            "-m",
            "amends",
            "gateway",
            f"{scratch}/gateway.toml",
            AMENDS_PAGE_TOKEN=TOKEN,
        )
        if litellm is not None:
            (scratch / "litellm.yaml").write_text(LITELLM.format(url=url))
            command = [
                str(litellm),
                "--config",
                f"{scratch}/litellm.yaml",
                "--host",
                "127.0.0.1",
                "--port",
                str(peer),
            ]
            self.start("LiteLLM", peer, *command, LITELLM_MASTER_KEY=KEY, LITELLM_LOG="ERROR")

    def base(self, name: str, upstream: str = "all") -> str:
        """Return the address under which the upstream is reached by way of a proxy."""
        return f"{self.urls[name]}/{upstream}" if name == "ours" else self.urls[name]

    @property
    def plain(self) -> list[str]:
        """The ways for any HTTP work."""
        return [name for name in ("without", "nginx", "ours") if name in self.urls]


def row(work: str, measure: str, found: dict[str, str]) -> None:
    """Print a row of the table."""
    columns = ("without", "nginx", "LiteLLM", "ours")
    print(
        f"| {work} | {measure} | " + " | ".join(found.get(name, "–") for name in columns) + " |", flush=True
    )


async def status_of(
    session: aiohttp.ClientSession, url: str, timeout: float = 10.0, **options: object
) -> tuple[int, float]:
    """Return the status of a call, 0 if there is none in time, and the seconds until it was there."""
    began = time.perf_counter()
    try:
        async with asyncio.timeout(timeout), session.get(url, **options) as response:
            found = response.status
            await response.read()
    except (aiohttp.ClientError, TimeoutError):
        found = 0
    return found, time.perf_counter() - began


async def models(servers: Servers) -> None:
    """The SDK against faults of a model: its own defaults without a gateway, and without retries behind one."""
    success, doubled = {}, {}
    async with aiohttp.ClientSession() as session:
        for name, retries in (("without", 2), ("nginx", 2), ("LiteLLM", 0), ("ours", 0)):
            if name not in servers.urls:
                continue
            base = f"{servers.base(name, 'models')}/v1"
            good = 0
            async with openai.AsyncOpenAI(base_url=base, api_key=KEY, max_retries=retries) as client:
                for number in range(2 * len(FAULTS)):
                    text = f"{FAULTS[number % len(FAULTS)]}:{name}-{number}"
                    try:
                        await client.chat.completions.create(
                            model="m", messages=[{"role": "user", "content": text}]
                        )
                        good += 1
                    except openai.OpenAIError:
                        pass
            async with session.get(f"{servers.urls['without']}/computed") as response:
                counts = [count for id, count in (await response.json()).items() if id.startswith(f"{name}-")]
            success[name] = f"{good} of {2 * len(FAULTS)}"
            doubled[name] = f"{sum(counts) / max(1, good):.2f}"
    row(
        "model faults (12 kinds); the SDK's 2 retries without a gateway, none behind one",
        "successes",
        success,
    )
    row("", "models' answers computed per success", doubled)


async def incurable(servers: Servers) -> None:
    """Failures that no repeat can cure: how much longer they take."""
    async with aiohttp.ClientSession() as session:
        for status in (400, 401, 404, 500):
            times: dict[str, list[float]] = {name: [] for name in servers.plain}
            right = dict.fromkeys(servers.plain, 0)
            for number in range(30):
                for name in servers.plain:
                    found, seconds = await status_of(session, f"{servers.base(name)}/status/{status}")
                    right[name] += found == status
                    if number >= 10:  # a route that always fails is known by then
                        times[name].append(seconds)
            middle = {name: statistics.median(each) for name, each in times.items()}
            shown = {
                name: f"{1000 * (middle[name] - middle['without']):+.1f} ms; {right[name]} of 30"
                for name in servers.plain
            }
            row(f"a GET that always answers {status}", "added at the median; the real status", shown)


async def paced(session: aiohttp.ClientSession, url: str, seconds: float = SECONDS) -> tuple[int, int, float]:
    """Call at a steady pace, and return the successes, the calls and the p99."""
    times: list[float] = []
    good = 0
    end = time.perf_counter() + seconds

    async def one() -> None:
        nonlocal good
        while time.perf_counter() < end:
            found, took = await status_of(session, url)
            times.append(took)
            good += found == 200
            await asyncio.sleep(0.02)

    await asyncio.gather(*(one() for _ in range(4)))
    return good, len(times), quantile(times, 0.99)


async def beside(servers: Servers, work: str, disturb: Callable[[str], tuple[str, int, str]]) -> None:
    """Measure paced callers of a good route without and beside a disturbance, interleaved."""
    shown = {}
    async with aiohttp.ClientSession(headers={"authorization": "Bearer good"}) as session:
        rows: dict[str, list[tuple[int, int, float, float]]] = {name: [] for name in servers.plain}
        for _ in range(RUNS):
            for name, found in rows.items():
                *_, before = await paced(session, f"{servers.base(name)}/good")
                url, number, token = disturb(name)
                command = ("nice", "-n", "15", sys.executable, "-c", DISTURB, url, str(number), token)
                process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                await asyncio.sleep(1.5)
                good, calls, after = await paced(session, f"{servers.base(name)}/good")
                process.kill()
                process.wait()
                found.append((good, calls, before, after))
        for name, found in rows.items():
            ratio = statistics.median(after / before for _, _, before, after in found)
            good, calls = sum(each[0] for each in found), sum(each[1] for each in found)
            middle = statistics.median(each[3] for each in found)
            shown[name] = f"{good} of {calls}; {ratio:.2f} × ({1000 * middle:.0f} ms)"
    row(work, "good calls; p99 beside it ÷ without", shown)


DISTURB = r"""
import asyncio, sys
import aiohttp
async def main(url, number, token):
    headers = {"authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), headers=headers) as session:
        async def one():
            while True:
                try:
                    async with session.get(url, timeout=aiohttp.ClientTimeout(600)) as response:
                        async for _ in response.content.iter_any():
                            pass
                except aiohttp.ClientError:
                    pass
                await asyncio.sleep(0.5)
        await asyncio.gather(*(one() for _ in range(number)))
asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
"""
"""The callers of a disturbance: a process of its own, of low priority, so that its CPU is not the gateway's."""


async def disturbances(servers: Servers) -> None:
    """A broken route beside good callers."""
    for work, path, number in (
        ("100 callers of a route that asks for 15 s", "/held/x", 100),
        ("100 callers of a route that hangs", "/hang/x", 100),
        ("50 callers of a route that always answers 500", "/status/500", 50),
    ):
        await beside(
            servers,
            work,
            lambda name, path=path, number=number: (f"{servers.base(name)}{path}", number, "bad"),
        )


async def watched(servers: Servers) -> None:
    """The page, with events, watched by 50 browsers."""
    async with aiohttp.ClientSession() as session:
        for _ in range(200):
            await status_of(session, f"{servers.base('ours')}/status/404")
    live = f"{servers.urls['ours']}/_amends/live"
    await beside(
        servers, "50 viewers of the page (ours only)", lambda name: (live, 50 if name == "ours" else 0, TOKEN)
    )


async def slow_failures(servers: Servers) -> None:
    """An error body that drips; a failure within the limit of its caller."""
    async with aiohttp.ClientSession() as session:
        shown = {}
        for name in servers.plain:
            began = time.perf_counter()
            try:
                async with (
                    asyncio.timeout(20),
                    session.post(f"{servers.base(name)}/drip", data=b"{}") as response,
                ):
                    shown[name] = f"{response.status} after {time.perf_counter() - began:.1f} s"
            except (aiohttp.ClientError, TimeoutError):
                shown[name] = "nothing in 20 s"
        row("a 503 whose body drips, POST", "status", shown)


async def bursts(servers: Servers) -> None:
    """A batch at a service with a rate limit, and an overload: how many calls succeed."""
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:
        shown = {}
        for name in servers.plain:
            await asyncio.sleep(1.2)
            found = await asyncio.gather(
                *(status_of(session, f"{servers.base(name)}/rate", 60) for _ in range(60))
            )
            shown[name] = f"{sum(status == 200 for status, _ in found)} of 60"
        row("60 calls at once, 20 per second allowed (429, Retry-After: 1)", "successes", shown)
        shown = {}
        for name in servers.plain:
            calls = []
            for _ in range(300):
                calls.append(asyncio.create_task(status_of(session, f"{servers.base(name)}/busy", 30)))
                await asyncio.sleep(0.004)
            found = await asyncio.gather(*calls)
            shown[name] = f"{sum(status == 200 for status, _ in found)} of 300"
        row("overload: 250 calls per second, 160 can be served (503 at once)", "successes", shown)
        shown = {}
        for name in servers.plain:

            async def stream(name: str = name) -> bool:
                try:
                    async with session.get(f"{servers.base(name)}/stream") as response:
                        return (await response.read()).count(b"data:") == 20
                except aiohttp.ClientError:
                    return False

            shown[name] = f"{sum(await asyncio.gather(*(stream() for _ in range(100))))} of 100"
        row("100 streams of events for two seconds", "whole", shown)


async def failover(servers: Servers) -> None:
    """The upstream is killed while models are called: without a gateway, and with a route."""
    bases = {"without": f"{servers.urls['without']}/v1", "ours": f"{servers.urls['ours']}/chat/v1"}
    counts = dict.fromkeys(bases, 0)

    async def calls(name: str) -> None:
        retries = 2 if name == "without" else 0
        async with openai.AsyncOpenAI(base_url=bases[name], api_key=KEY, max_retries=retries) as client:
            for number in range(40):
                try:
                    content = f":failover-{name}-{number}"
                    await client.chat.completions.create(
                        model="m", messages=[{"role": "user", "content": content}]
                    )
                    counts[name] += 1
                except openai.OpenAIError:
                    pass
                await asyncio.sleep(0.02)

    tasks = [asyncio.create_task(calls(name)) for name in bases]
    await asyncio.sleep(0.6)
    servers.processes[0].kill()
    await asyncio.gather(*tasks)
    row(
        "the upstream is killed; a second one is configured",
        "successes",
        {name: f"{each} of 40" for name, each in counts.items()},
    )


PARTS = {
    each.__name__: each
    for each in (models, incurable, slow_failures, bursts, disturbances, watched, failover)
}


async def run(servers: Servers, parts: list[str]) -> None:
    print("| workload | measured | without | nginx | LiteLLM | ours |\n|---|---|---|---|---|---|", flush=True)
    for name, part in PARTS.items():
        if not parts or name in parts:
            await part(servers)


def main(folder: str = "", *parts: str) -> None:
    """Print the table."""
    litellm = Path(folder, "bin", "litellm") if folder else None
    servers = Servers()
    try:
        servers.start_all(litellm if litellm is not None and litellm.exists() else None)
        asyncio.run(run(servers, list(parts)))
    finally:
        servers.end()


if __name__ == "__main__":
    main(*sys.argv[1:])
