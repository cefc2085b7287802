"""The benchmark of agents: its scenarios, and the harness with a model behind a local endpoint."""

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from bench.agents.harness import play, table, wilson
from bench.agents.model import model_agent
from bench.agents.presentations import Ours, Raw
from bench.agents.scenarios import scenarios
from bench.agents.scripted import AGENTS, FollowsInstructions, RepeatsBlindly


def test_sixty_scenarios_and_no_duplicates_with_the_ledger():
    """The blind agent pays twice with raw text; with the ledger no agent does, and the one that follows finishes everywhere."""
    assert len(scenarios(0)) == 60
    assert sum(play(RepeatsBlindly, Raw, service).duplicates for service in scenarios(0)) > 0
    for agent in AGENTS:
        found = [play(agent, Ours, service) for service in scenarios(0)]
        assert sum(each.duplicates for each in found) == 0
        if agent is FollowsInstructions:
            assert all(each.finished and not each.wrong for each in found)


def test_the_interval():
    """Wilson's interval, against published values."""
    low, high = wilson(8, 10)
    assert (round(low, 1), round(high, 1)) == (49.0, 94.3)
    assert wilson(0, 10)[0] == 0


class Endpoint(ThreadingHTTPServer):
    """An OpenAI-compatible endpoint: a scripted agent plays the model from the messages alone."""

    daemon_threads = True

    def __init__(self, answer):
        self.answer, self.seen, self.failures = answer, [], []
        super().__init__(("127.0.0.1", 0), EndpointHandler)
        self.url = f"http://127.0.0.1:{self.server_port}/v1/"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class EndpointHandler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.seen.append((self.path, self.headers["authorization"], body["model"], body["seed"]))
        status = self.server.failures.pop(0) if self.server.failures else 200
        message = self.server.answer(body) if status == 200 else {}
        answer = json.dumps({"choices": [{"message": message}]}).encode()
        self.send_response(status)
        self.send_header("retry-after", "0")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def calls(tool, arguments):
    call = {
        "id": "c",
        "type": "function",
        "function": {"name": tool, "arguments": json.dumps(arguments)},
    }
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def follows(body):
    """Answer as the scripted agent that follows instructions, after the texts that it has read so far."""
    assert {each["function"]["name"] for each in body["tools"]} >= {"act", "wait", "finish", "stop"}
    asked = body["messages"][1]["content"].partition(": ")[2]
    agent = FollowsInstructions(json.loads(asked))
    action = agent.next(None)
    for message in body["messages"]:
        if message["role"] == "tool":
            action = agent.next(message["content"])
    return calls(action.tool, action.arguments)


def test_a_model_behind_an_endpoint_from_the_command_line():
    """Sixty scenarios with two seeds: the same table as for the scripted agent that plays the model."""
    with Endpoint(follows) as endpoint:
        command = ["-m", "bench.agents", "--endpoint", endpoint.url, "--model", "m", "--seeds", "2"]
        done = subprocess.run(
            [sys.executable, *command],
            capture_output=True,
            text=True,
            check=False,
            cwd=Path(__file__).parents[2],
            env={**os.environ, "AGENTS_API_KEY": "k"},
        )
    assert (done.returncode, done.stderr) == (0, "")
    expected = [line.replace("| follows instructions |", "| m |") for line in table([FollowsInstructions], 2)]
    assert done.stdout.splitlines() == expected
    assert {each[:3] for each in endpoint.seen} == {("/v1/chat/completions", "Bearer k", "m")}
    assert {each[3] for each in endpoint.seen} == {0, 1}


def test_a_model_that_answers_oddly(monkeypatch):
    """Unknown tools, arguments that are no JSON, text instead of a call, and refusals for a while do not end the run."""
    monkeypatch.setenv("AGENTS_API_KEY", "k")
    odd = {"tool_calls": [{}, {"function": {"name": "pay", "arguments": "{"}}]}
    replies = [odd, calls("act", []), {"content": "I am done"}]
    with Endpoint(lambda body: replies.pop(0)) as endpoint:
        endpoint.failures += [429, 503]
        service = next(each for each in scenarios(0) if each.name == "unavailable")
        outcome = play(model_agent(endpoint.url, "m"), Raw, service)
        assert (outcome.finished, service.calls, len(endpoint.seen)) == (False, 1, 5)
        endpoint.failures += [401]
        with pytest.raises(SystemExit, match="401"):
            play(model_agent(endpoint.url, "m"), Raw, scenarios(0)[0])


def test_without_a_key(monkeypatch):
    """The message names the variables."""
    for name in ("AGENTS_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SystemExit, match="AGENTS_API_KEY"):
        model_agent("http://127.0.0.1", "m")
