"""The benchmark of agents: its scenarios, and the harness with a model behind a local endpoint."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from bench.agents.harness import play, wilson
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


def test_a_model_behind_an_endpoint(monkeypatch):
    """The key comes from the environment, tools are called by name, and the run ends with `finish`."""
    monkeypatch.setenv("AGENTS_API_KEY", "k")
    seen = []

    class Endpoint(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            seen.append((self.headers["authorization"], body["model"]))
            last = body["messages"][-1]["content"]
            tool = "finish" if last.startswith("ok") else "act"
            call = {"id": "c", "function": {"name": tool, "arguments": "{}"}}
            answer = json.dumps({"choices": [{"message": {"tool_calls": [call]}}]}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Endpoint)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        agent = model_agent(f"http://127.0.0.1:{server.server_port}", "m")
        service = next(each for each in scenarios(0) if each.name == "unavailable")
        assert play(agent, Raw, service).finished
    finally:
        server.shutdown()
        server.server_close()
    assert seen == [("Bearer k", "m")] * 3
    monkeypatch.delenv("AGENTS_API_KEY")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(SystemExit):
        model_agent("http://127.0.0.1", "m")
