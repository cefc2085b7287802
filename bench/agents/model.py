"""An agent that is a model behind an OpenAI-compatible endpoint: the same tools, the same scenarios."""

from __future__ import annotations

import json
import os
import time
import urllib.error
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


TRIES, LONGEST_WAIT = 6, 60.0
"""How often a request is sent that the endpoint refused for a while, and the seconds before the next one, in real time."""


def model_agent(endpoint: str, model: str):
    """Return a class of agents that ask the model for each next step."""
    key = next((os.environ[name] for name in KEYS if os.environ.get(name)), None)
    if key is None:
        raise SystemExit(f"set {' or '.join(KEYS)} to the endpoint's key")

    class Model:
        name = model

        def __init__(self, arguments, seed=0):
            self.seed = seed
            self.messages = [
                {"role": "system", "content": SYSTEM},
                {"role": "user", "content": f"Do it with these arguments: {json.dumps(arguments)}"},
            ]
            self.call_id = None

        def next(self, text):
            if text is not None:
                self.messages.append({"role": "tool", "tool_call_id": self.call_id, "content": text})
            reply = self._ask()
            call = _first_call(reply)
            if call is None:
                return Action("stop", {})
            self.messages.append(
                {"role": "assistant", "content": reply.get("content") or "", "tool_calls": [call]}
            )
            self.call_id = call["id"]
            return Action(call["function"]["name"], _arguments(call["function"]["arguments"]))

        def _ask(self):
            body = {
                "model": model,
                "messages": self.messages,
                "tools": TOOLS,
                "temperature": 0,
                "seed": self.seed,
            }
            request = urllib.request.Request(
                f"{endpoint.rstrip('/')}/chat/completions",
                data=json.dumps(body).encode(),
                headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
            )
            return _send(request)["choices"][0]["message"]

    return Model


def _send(request):
    """Return the answer. A model may be asked again: without `recover`, whose clock is the scenario's."""
    for left in reversed(range(TRIES)):
        try:
            with urllib.request.urlopen(request, timeout=120) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                if left == 0 or (error.code < 500 and error.code not in {408, 429}):
                    text = error.read(500).decode("utf-8", "replace")
                    raise SystemExit(f"the endpoint answered {error.code}: {text}") from error
                asked = error.headers.get("retry-after", "")
        except OSError as error:
            if left == 0:
                raise SystemExit(f"the endpoint does not answer: {error}") from error
            asked = ""
        time.sleep(min(float(asked) if asked.isdigit() else 2.0 ** (TRIES - left - 1), LONGEST_WAIT))
    raise AssertionError


def _first_call(reply):
    """Return the first tool call of a reply in the form in which it is sent back; None if there is none."""
    for index, call in enumerate(reply.get("tool_calls") or ()):
        function = call.get("function") or {}
        if isinstance(function.get("name"), str):
            known = {"name": function["name"], "arguments": function.get("arguments") or "{}"}
            return {"id": call.get("id") or f"call-{index}", "type": "function", "function": known}
    return None


def _arguments(text):
    try:
        found = json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
