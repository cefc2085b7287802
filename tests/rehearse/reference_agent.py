"""
An agent that reacts rightly to every failure, written without amends; and its mutants, each with one wrong reaction.

It asks a model what to order, places the order, reports to the model, and reads the model's last answer from a stream.
"""

import os
import time

import httpx2

MODEL = "https://api.openai.com/v1/chat/completions"
QUOTA = {"insufficient_quota", "usage_limit_reached", "QUOTA_EXCEEDED"}
TOOL = {
    "type": "function",
    "function": {
        "name": "create_order",
        "parameters": {
            "type": "object",
            "properties": {"item": {"type": "string"}, "quantity": {"type": "integer"}},
            "required": ["item", "quantity"],
        },
    },
}


class Stop(Exception):
    """The agent cannot go on; the text is what it tells."""


class Agent:
    """One run. `broken` names the reactions that are wrong."""

    def __init__(self, *broken, tell=print):
        self.broken = set(broken)
        self.tell = tell
        self.token = "first"
        self.timeout = None if "no-time-limit" in self.broken else 0.4
        self.client = httpx2.Client(timeout=self.timeout, trust_env=False)
        self.messages = [{"role": "user", "content": "Order tea. " + "Please. " * 20}]
        self.extra = {"temperature": 0.2}

    def run(self):
        """Do the job; return the exit code."""
        with self.client:
            try:
                self.job()
            except Stop as stop:
                if "silent-end" not in self.broken:
                    self.tell(f"stopped: {stop}")
                return 0 if "claims-success" in self.broken else 1
        return 0

    def job(self):
        answer = self.ask(tools=[TOOL])
        self.messages.append(answer)
        order = {"item": "tea", "quantity": 13}
        try:
            result = self.order(order)
        except Stop as stop:
            if "silent-end" in self.broken:
                raise
            self.say(f"failed: {stop}")
            raise
        self.say(f"order {result['id']}")

    def say(self, text):
        """Tell the model the result of its tool, and read what it says from a stream."""
        call = self.messages[-1]["tool_calls"][0]
        self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
        self.send("POST", MODEL, {"stream": True}, acts=False)

    def ask(self, **more):
        return self.send("POST", MODEL, more, acts=False)["choices"][0]["message"]

    def order(self, order):
        return self.send("POST", os.environ["ORDERS_URL"] + "/orders", order, acts=True)

    # --- reactions

    def send(self, method, url, content, *, acts):
        pause, sent = 0.2, 0
        tries = 12 if "layers" in self.broken else 4
        if "layers" in self.broken:
            pause = 0.05
        while True:
            sent += 1
            key = {"Idempotency-Key": "order-of-today"} if acts else {}
            if acts and sent > 1 and "loses-key" in self.broken:
                key = {}
            body = (
                content if acts else {"model": "gpt-4o", "messages": self.messages, **self.extra, **content}
            )
            headers = {"authorization": f"Bearer {self.token}", **key}
            try:
                answer = self.once(method, url, body, headers)
            except httpx2.ConnectError as error:
                if "gives-up-unconnected" in self.broken or sent == tries:
                    raise Stop(f"no connection: {error}") from None
                time.sleep(0.01)
                continue
            except (httpx2.TransportError, ValueError) as error:
                kind = type(error).__name__
                if sent == tries or self.gives_up_unknown(error, acts):
                    raise Stop("" if "silent-end" in self.broken else f"outcome unknown: {kind}") from None
                time.sleep(0.01)
                continue
            try:
                wait = self.react(answer, url, body, acts, sent, tries, pause)
            except ValueError as error:
                if sent == tries or self.gives_up_unknown(error, acts):
                    raise Stop("" if "silent-end" in self.broken else "outcome unknown: malformed") from None
                wait = 0.01
            if wait is None:
                return answer.document
            time.sleep(wait)

    def once(self, method, url, body, headers):
        if body.get("stream"):
            return self.stream(method, url, body, headers)
        response = self.client.request(method, url, json=body, headers=headers)
        return Answer(response, response.text)

    def stream(self, method, url, body, headers):
        with self.client.stream(method, url, json=body, headers=headers) as response:
            if response.status_code >= 400:
                response.read()
                return Answer(response, response.text)
            ended = "takes-cut-streams" in self.broken
            try:
                for line in response.iter_lines():
                    if "error" in line and "ignores-events" not in self.broken:
                        raise ValueError("an error in the stream")
                    ended = ended or line == "data: [DONE]"
            except httpx2.RemoteProtocolError:
                if not ended:
                    raise
            if not ended and "ignores-events" not in self.broken:
                raise ValueError("the stream has no end")
            return Answer(response, "{}")

    def gives_up_unknown(self, error, acts):
        if isinstance(error, ValueError) and "gives-up-malformed" in self.broken:
            return True
        return acts and bool({"silent-end", "gives-up-lost"} & self.broken)

    def react(self, answer, url, body, acts, sent, tries, pause):
        """Return the seconds until the next try; None if the answer is good."""
        status, text = answer.status, answer.text
        if status < 300:
            answer.parse()
            return None
        answer.parse_error()
        code = answer.code
        if code in QUOTA and "repeats-quota" not in self.broken:
            raise Stop(answer.said)
        if code in QUOTA:
            if sent == 3:
                raise Stop(answer.said)
            return 0.01
        if status in {429, 503}:
            if sent == tries or f"gives-up-{status}" in self.broken:
                raise Stop(answer.said)
            return 0.01 if "breaks-waits" in self.broken else answer.wait or pause
        if status >= 500:
            if "passes-trace" in self.broken:
                self.tell(f"a failure: {text}")
            if sent == tries or "gives-up-5xx" in self.broken:
                raise Stop(answer.said)
            return pause
        if sent < 3 and f"repeats-{status}" in self.broken:
            return 0.01
        if status == 401 and self.token == "first":
            self.token = "second"
            return 0.01
        if status in {400, 422} and self.repair(answer, body, acts):
            return 0.01
        raise Stop("" if "drops-reason" in self.broken else answer.said)

    def repair(self, answer, body, acts):
        if f"repeats-{answer.status}" in self.broken or "drops-reason" in self.broken:
            return False
        if answer.field == "quantity" and body.get("quantity") == 13:
            body["quantity"] = 12
            return True
        if answer.code == "context_length_exceeded":
            self.messages[0]["content"] = "Order tea."
            return True
        if answer.field in self.extra:
            del self.extra[answer.field]
            return True
        return False


class Answer:
    """An answer, with what its error says."""

    def __init__(self, response, text):
        self.status, self.text, self.headers = response.status_code, text, response.headers
        self.document = {}
        self.code = self.field = self.message = ""

    def parse(self):
        import json

        self.document = json.loads(self.text)

    def parse_error(self):
        try:
            self.parse()
        except ValueError:
            return
        error = self.document.get("error", self.document)
        self.code = error.get("code") or error.get("type") or ""
        self.field = error.get("param") or error.get("field") or ""
        self.message = error.get("message") or error.get("detail") or ""

    @property
    def wait(self):
        value = self.headers.get("retry-after")
        return float(value) if value else 0.0

    @property
    def said(self):
        return " ".join(filter(None, (str(self.status), self.code, self.field, self.message)))
