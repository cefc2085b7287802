"""Programs under test, which `test_command.py` runs as processes."""

CAREFUL = """
import os, sys
sys.path.insert(0, os.environ["ROOT"])
from tests.rehearse.reference_agent import Agent
sys.exit(Agent().run())
"""

IGNORES = """
import contextlib, os, urllib.request, httpx2
def post(url, document):
    with contextlib.suppress(Exception):
        return httpx2.post(url, json=document, timeout=1).json()
post("https://api.openai.com/v1/chat/completions", {"model": "m", "messages": [{"role": "user", "content": "hi"}]})
order = post(os.environ["ORDERS_URL"] + "/orders", {"item": "tea"}) or {}
with open(os.environ["RESULT"], "w") as file:
    file.write(str(order.get("id", "")) if isinstance(order, dict) else "")
"""

REPEATS = """
import os, httpx2
for _ in range(5):
    try:
        answer = httpx2.post(os.environ["ORDERS_URL"] + "/orders", json={"item": "tea"}, timeout=1)
        if answer.status_code < 300 and "id" in answer.json():
            break
    except Exception:
        pass
"""

ONE_ORDER = """
import os, sys, httpx2
sys.exit(len(httpx2.get(os.environ["ORDERS_URL"] + "/orders").json()["data"]) != 1)
"""

HAS_RESULT = """
import os, sys
sys.exit(not open(os.environ["RESULT"]).read())
"""

BEYOND = """
import os, httpx2, urllib.request
httpx2.post(os.environ["ORDERS_URL"] + "/orders", json={"item": "tea"})
try:
    urllib.request.urlopen("https://example.com/", timeout=2)
except OSError:
    pass
"""

WITHOUT_AMENDS = """
import json, os, urllib.request
assert "amends" not in __import__("sys").modules
request = urllib.request.Request(os.environ["ORDERS_URL"] + "/orders", b'{"item": "tea"}', {"content-type": "application/json"})
print(urllib.request.urlopen(request, timeout=2).status)
"""
