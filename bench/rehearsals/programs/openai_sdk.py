"""The SDK of OpenAI with a loop of its own."""

import json

import openai
from tools import MODEL, PARAMETERS, PROMPT, create_order, openai_options

client = openai.OpenAI(**openai_options())
tool = {"type": "function", "function": {"name": "create_order", "parameters": PARAMETERS}}
messages = [{"role": "user", "content": PROMPT}]
while True:
    message = client.chat.completions.create(model=MODEL, messages=messages, tools=[tool]).choices[0].message
    messages.append(message.model_dump(exclude_none=True))
    if not message.tool_calls:
        break
    for call in message.tool_calls:
        result = create_order(**json.loads(call.function.arguments))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
print(message.content)
