"""The SDK of Anthropic with a loop of its own."""

import anthropic
from tools import PARAMETERS, PROMPT, WITH_AMENDS, create_order

options = {}
if WITH_AMENDS:
    from importlib import import_module

    from amends.bindings.httpx import Transport

    # The SDK names the library that its client has to be of.
    library = import_module(anthropic.DefaultHttpxClient.__mro__[1].__module__.partition(".")[0])
    transport = Transport(raises="nothing", vendor="anthropic")
    options = {"http_client": library.Client(transport=transport, timeout=10), "max_retries": 0}
client = anthropic.Anthropic(**options)
tool = {"name": "create_order", "input_schema": PARAMETERS}
messages = [{"role": "user", "content": PROMPT}]
while True:
    message = client.messages.create(
        model="claude-sonnet-4-5", max_tokens=100, messages=messages, tools=[tool]
    )
    messages.append(
        {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in message.content]}
    )
    calls = [block for block in message.content if block.type == "tool_use"]
    if not calls:
        break
    results = [
        {"type": "tool_result", "tool_use_id": call.id, "content": create_order(**call.input)}
        for call in calls
    ]
    messages.append({"role": "user", "content": results})
print(message.content[0].text)
