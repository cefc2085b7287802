"""An agent that is a model behind an OpenAI-compatible endpoint: the same tools, the same scenarios."""

from __future__ import annotations

import json
import os
import urllib.request

from bench.agents.scripted import Action

KEYS = ("AGENTS_API_KEY", "OPENAI_API_KEY")
SYSTEM = (
    "You use a tool for a customer. Call `act` with the given arguments until it succeeds. It must be done exactly once. "
    "If nothing can help, call `stop`. When it is done, call `finish`. Time passes only when you call `wait`."
)


def _tool(name, description, **properties):
    schema = {"type": "object", "properties": properties}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


TOOLS = [
    _tool("act", "Do it.", time={"type": "string"}, again={"type": "string"}),
    _tool("wait", "Let time pass.", seconds={"type": "number"}),
    _tool("check", "Look up whether it was done."),
    _tool("refresh", "Sign in again."),
    _tool("finish", "It is done."),
    _tool("stop", "Give up and tell the customer why.", reason={"type": "string"}),
]


def model_agent(endpoint: str, model: str, seed: int = 0):
    """Return a class of agents that ask the model for each next step."""
    key = next((os.environ[name] for name in KEYS if os.environ.get(name)), None)
    if key is None:
        raise SystemExit(f"set {' or '.join(KEYS)} to the endpoint's key")

    class Model:
        name = model

        def __init__(self, arguments):
            self.messages = [
                {"role": "system", "content": SYSTEM},
                {"role": "user", "content": f"Do it with these arguments: {json.dumps(arguments)}"},
            ]
            self.call_id = None

        def next(self, text):
            if text is not None:
                self.messages.append({"role": "tool", "tool_call_id": self.call_id, "content": text})
            reply = self._ask()
            calls = reply.get("tool_calls") or []
            if not calls:
                return Action("stop", {})
            first = calls[0]
            self.messages.append(
                {"role": "assistant", "content": reply.get("content") or "", "tool_calls": [first]}
            )
            self.call_id = first["id"]
            try:
                arguments = json.loads(first["function"]["arguments"] or "{}")
            except ValueError:
                arguments = {}
            return Action(first["function"]["name"], arguments if isinstance(arguments, dict) else {})

        def _ask(self):
            body = {"model": model, "messages": self.messages, "tools": TOOLS, "temperature": 0, "seed": seed}
            request = urllib.request.Request(
                f"{endpoint.rstrip('/')}/chat/completions",
                data=json.dumps(body).encode(),
                headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
            )
            with urllib.request.urlopen(request, timeout=120) as response:
                return json.load(response)["choices"][0]["message"]

    return Model
